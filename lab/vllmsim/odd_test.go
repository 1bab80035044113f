package vllmsim

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The hand-written bodies are odd on purpose. This test has the result of two well-kept
// parsers for each, so that none is odd by mistake.
func TestOddBodiesAreOddInTheWayTheyClaim(t *testing.T) {
	const text, open = "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0"
	for _, c := range []struct {
		name, media string
		// expfmt and textparse are true if that parser reads the whole body; samples is the
		// number that textparse reads before it ends or stops.
		expfmt, textparse bool
		samples           int
	}{
		{"escapes", text, true, true, 3},
		{"utf8-quoted-names", text, true, true, 2},
		{"crlf", text, false, false, 0},
		{"no-final-newline", text, false, true, 1},
		{"duplicate-help-type", text, false, true, 3},
		{"type-after-samples", text, false, true, 2},
		{"split-family", text, true, true, 3},
		{"duplicate-series", text, true, true, 4},
		{"cut-in-the-middle", text, false, false, 2},
		{"bad-lines", text, false, false, 1},
		{"nan-and-inf", text, true, true, 5},
		{"three-digit-exponent", text, true, true, 4},
		{"le-integer-and-float", text, true, true, 10},
		{"decreasing-buckets", text, true, true, 10},
		{"nan-bucket", text, true, true, 10},
		{"count-below-bucket", text, true, true, 10},
		{"no-inf-bucket", text, true, true, 9},
		{"router-gauges", text, true, true, 8},
		{"colon-mismatch", open, true, true, 7},
		{"exemplars", open, false, true, 6},
		{"html", text, false, false, 0},
		{"empty", text, true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(testdata, "odd", c.name+".txt"))
			require.NoError(t, err)
			parser := expfmt.NewTextParser(model.UTF8Validation)
			_, err = parser.TextToMetricFamilies(strings.NewReader(string(body)))
			assert.Equal(t, c.expfmt, err == nil, "expfmt: %v", err)
			samples, err := readAll(t, body, c.media)
			assert.Equal(t, c.textparse, err == nil, "textparse: %v", err)
			assert.Equal(t, c.samples, samples)
		})
	}
}

func readAll(t *testing.T, body []byte, media string) (samples int, err error) {
	t.Helper()
	p, err := textparse.New(body, media, labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return samples, err
		}
		if entry == textparse.EntrySeries {
			samples++
		}
	}
}
