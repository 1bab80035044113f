package exposition

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDialectOf(t *testing.T) {
	for contentType, want := range map[string]Dialect{
		"":                          DialectText,
		"text/plain":                DialectText,
		"text/plain; version=0.0.4": DialectText,
		"text/plain; version=1.0.0; charset=utf-8":                       DialectText,
		"text/plain; version=0.0.4; charset=utf-8; escaping=underscores": DialectText,
		"text/html":                    DialectText,
		"application/json":             DialectText,
		"nonsense":                     DialectText,
		";;;":                          DialectText,
		"application/openmetrics-text": DialectOpenMetrics,
		"application/openmetrics-text; version=1.0.0; charset=utf-8":              DialectOpenMetrics,
		"Application/OpenMetrics-Text;version=0.0.1":                              DialectOpenMetrics,
		"application/openmetrics-text; version=1.0.0; escaping=allow-utf-8; bad=": DialectOpenMetrics,
		"application/openmetrics-text; =":                                         DialectOpenMetrics,
	} {
		require.Equal(t, want, DialectOf(contentType), contentType)
	}
}

// Telemetry counts by these words, so each must be there and unlike the others.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range Reasons() {
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, reason.String())
		require.False(t, seen[reason.String()], reason)
		seen[reason.String()] = true
	}
	require.Len(t, seen, int(reasonEnd)-1)
	require.NotContains(t, seen, ReasonNone.String())
	require.Equal(t, "bad_value", ReasonBadValue.String())
	for kind := KindUntyped; kind <= KindGaugeHistogram; kind++ {
		back, ok := kindOf(kind.String())
		require.True(t, ok)
		require.Equal(t, kind, back)
	}
	require.Equal(t, []string{"text", "openmetrics"}, []string{DialectText.String(), DialectOpenMetrics.String()})
}
