package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server needs 50 ms until it says something, and 50 ms more. The gateway holds requests back for
// 100 ms.
func TestTheGatewayMeasuresWhatItAdds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if !strings.Contains(string(raw), `"prompt"`) {
			http.Error(w, "no prompt", http.StatusBadRequest)
			return
		}
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(w, "data: two\n\n")
	}))
	defer server.Close()
	g, err := New(server.URL)
	require.NoError(t, err)
	g.Hold.Store(int64(100 * time.Millisecond))
	listening := httptest.NewServer(g)
	defer listening.Close()
	for _, body := range []string{`{"model":"m","prompt":"x"}`, `{"model":"m","prompt":"y"}`, `{"model":"m"}`} {
		response, err := http.Post(listening.URL+"/v1/completions", "application/json", strings.NewReader(body)) //nolint:noctx // Of a test.
		require.NoError(t, err)
		all, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.NotEmpty(t, all)
	}
	metrics, err := g.Metrics(t.Context(), time.Now())
	require.NoError(t, err)
	counts, means := map[string]uint64{}, map[string]float64{}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		assert.Equal(t, "s", m.Unit())
		for _, p := range m.Histogram().DataPoints().All() {
			name := m.Name()
			if model, has := p.Attributes().Get("gen_ai.request.model"); has {
				name += " " + model.Str()
			}
			if _, has := p.Attributes().Get("error.type"); has {
				name += " failed"
			}
			counts[name], means[name] = p.Count(), p.Sum()/float64(p.Count())
		}
	}
	const whole, first = "gen_ai.server.request.duration m", "gen_ai.server.time_to_first_token m"
	assert.Equal(t, map[string]uint64{whole: 2, whole + " failed": 1, first: 2}, counts)
	assert.GreaterOrEqual(t, means[first], 0.15)
	assert.GreaterOrEqual(t, means[whole], means[first]+0.04, "the first token is passed on at once")
}
