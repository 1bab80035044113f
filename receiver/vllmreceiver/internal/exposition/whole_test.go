package exposition_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

func TestWholeLines(t *testing.T) {
	for _, tt := range []struct {
		body, want string
		dialect    exposition.Dialect
		complete   bool
	}{
		{"a 1\nb 2005000", "a 1\n", exposition.DialectText, false},
		{"a 1\nb 200\n", "a 1\nb 200\n", exposition.DialectText, false},
		{"b 200", "", exposition.DialectText, false},
		{"", "", exposition.DialectText, false},
		{"a 1\n# EOF", "a 1\n", exposition.DialectText, false},
		{"a 1\n# EOF", "a 1\n# EOF", exposition.DialectOpenMetrics, true},
		{"a 1\n# EOF\n", "a 1\n# EOF\n", exposition.DialectOpenMetrics, true},
		{"a 1\n# EO", "a 1\n", exposition.DialectOpenMetrics, false},
	} {
		whole, complete := exposition.WholeLines([]byte(tt.body), tt.dialect)
		assert.Equal(t, tt.want, string(whole), "%q", tt.body)
		assert.Equal(t, tt.complete, complete, "%q", tt.body)
	}
}
