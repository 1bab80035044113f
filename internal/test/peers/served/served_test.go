package served

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	return families
}

func original(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../../testdata/v1-0.20.0/metrics.txt")
	require.NoError(t, err)
	return text
}

func TestABodyAtTheBeginIsTheFile(t *testing.T) {
	text := original(t)
	body, err := NewBody(text, 1, "")
	require.NoError(t, err)
	want, first := parsed(t, text), parsed(t, body.Append(nil, 0))
	require.Len(t, first, len(want))
	for name, family := range want {
		assert.Equal(t, family.String(), first[name].String(), name)
	}
}

func TestNoCountFallsFromStepToStep(t *testing.T) {
	for engines, steps := range map[int]int{1: 60, 3: 20} {
		body, err := NewBody(original(t), engines, "")
		require.NoError(t, err)
		grown, before := 0, parsed(t, body.Append(nil, 0))
		for step := 1; step < steps; step++ {
			later := parsed(t, body.Append(nil, step))
			for name, family := range before {
				for i, m := range family.GetMetric() {
					now := later[name].GetMetric()[i]
					assert.GreaterOrEqual(t, now.GetCounter().GetValue(), m.GetCounter().GetValue(), name)
					assert.InDelta(t, m.GetGauge().GetValue(), now.GetGauge().GetValue(), 0, name)
					if h := now.GetHistogram(); h != nil && grew(t, name, m.GetHistogram(), h) {
						grown++
					}
				}
			}
			before = later
		}
		assert.Positive(t, grown)
	}
}

// grew reports whether a histogram has counted more. No count falls, that of a single bucket
// neither: a server that falls has restarted. The mean stays nearly
// the same.
func grew(t *testing.T, name string, was, is *dto.Histogram) bool {
	t.Helper()
	before, now := uint64(0), uint64(0)
	for i, b := range is.GetBucket() {
		a := was.GetBucket()[i]
		assert.GreaterOrEqual(t, b.GetCumulativeCount()-now, a.GetCumulativeCount()-before, "%s le %g", name, b.GetUpperBound())
		before, now = a.GetCumulativeCount(), b.GetCumulativeCount()
	}
	assert.Equal(t, is.GetSampleCount(), now, name)
	if was.GetSampleCount() > 0 {
		mean := was.GetSampleSum() / float64(was.GetSampleCount())
		assert.InEpsilon(t, 1+mean, 1+is.GetSampleSum()/float64(is.GetSampleCount()), 0.02, name)
	}
	return is.GetSampleCount() > was.GetSampleCount()
}

// Each series of the engine is there once for every engine, and families are whole.
func TestABodyOfSeveralEngines(t *testing.T) {
	text := original(t)
	body, err := NewBody(text, 8, "another/model")
	require.NoError(t, err)
	one, eight := parsed(t, text), parsed(t, body.Append(nil, 0))
	require.Len(t, eight, len(one))
	for name, family := range one {
		ofEngine := 0
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "engine" {
					ofEngine++
				}
			}
		}
		assert.Len(t, eight[name].GetMetric(), len(family.GetMetric())+7*ofEngine, name)
		for _, m := range eight[name].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "model_name" {
					assert.Equal(t, "another/model", l.GetValue())
				}
			}
		}
	}
}

// Whatever its form, an answer has the body of that time, and gzip only where it was asked for.
func TestAnswersHaveTheBody(t *testing.T) {
	body, err := NewBody(original(t), 1, "")
	require.NoError(t, err)
	for _, form := range []Form{Length, Chunked, Small} {
		for _, compress := range []bool{false, true} {
			fleet, err := NewFleet(2, func(int) *Body { return body }, form, compress)
			require.NoError(t, err)
			for step := range 3 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+fleet.Servers[1].Address()+"/metrics", http.NoBody)
				require.NoError(t, err)
				request.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[compress])
				client := &http.Client{Transport: &http.Transport{}}
				response, err := client.Do(request)
				require.NoError(t, err)
				var from io.Reader = response.Body
				if compress {
					require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
					from, err = gzip.NewReader(response.Body)
					require.NoError(t, err)
				}
				got, err := io.ReadAll(from)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				client.CloseIdleConnections()
				assert.Equal(t, string(body.Append(nil, step)), string(got))
			}
			assert.Eventually(t, func() bool { return fleet.Requests() == 3 && fleet.Asked(3) == 1 }, time.Minute, time.Millisecond)
			require.NoError(t, fleet.Close())
		}
	}
}
