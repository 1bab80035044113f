package boards

import (
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAPI reads the API with the client of the Prometheus project.
func TestAPI(t *testing.T) {
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), tsdb.NewDBStats())
	require.NoError(t, err)
	defer func() { assert.NoError(t, db.Close()) }()
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	app := db.Appender(t.Context())
	for i := range 5 {
		for pod, value := range map[string]float64{"a": float64(i), "b": math.Inf(1)} {
			set := labels.FromStrings("__name__", "queue", "k8s.pod.name", pod)
			_, err := app.Append(0, set, start.Add(time.Duration(i)*time.Minute).UnixMilli(), value)
			require.NoError(t, err)
		}
	}
	require.NoError(t, app.Commit())
	end := start.Add(4 * time.Minute)
	server := httptest.NewServer(NewAPI(db, newEngine(), end))
	defer server.Close()
	client, err := api.NewClient(api.Config{Address: server.URL})
	require.NoError(t, err)
	prometheus := v1.NewAPI(client)

	vector, _, err := prometheus.Query(t.Context(), `queue{"k8s.pod.name"="a"}`, time.Time{})
	require.NoError(t, err)
	require.Len(t, vector, 1)
	assert.Equal(t, model.SampleValue(4), vector.(model.Vector)[0].Value, "without a time, the newest value")
	assert.Equal(t, model.LabelValue("a"), vector.(model.Vector)[0].Metric["k8s.pod.name"])

	vector, _, err = prometheus.Query(t.Context(), `queue{"k8s.pod.name"="b"}`, start)
	require.NoError(t, err)
	assert.True(t, math.IsInf(float64(vector.(model.Vector)[0].Value), 1))

	matrix, _, err := prometheus.QueryRange(t.Context(), `queue{"k8s.pod.name"="a"}`, v1.Range{Start: start, End: end, Step: 2 * time.Minute})
	require.NoError(t, err)
	require.Len(t, matrix, 1)
	require.Len(t, matrix.(model.Matrix)[0].Values, 3)
	for i, want := range []model.SampleValue{0, 2, 4} {
		assert.Equal(t, want, matrix.(model.Matrix)[0].Values[i].Value)
		assert.Equal(t, start.Add(time.Duration(2*i)*time.Minute), matrix.(model.Matrix)[0].Values[i].Timestamp.Time().UTC())
	}

	scalar, _, err := prometheus.Query(t.Context(), `1 / 4`, end)
	require.NoError(t, err)
	assert.Equal(t, model.SampleValue(0.25), scalar.(*model.Scalar).Value)

	values, _, err := prometheus.LabelValues(t.Context(), "U__k8s_2e_pod_2e_name", []string{`queue{"k8s.pod.name"!="b"}`}, start, end)
	require.NoError(t, err)
	assert.Equal(t, model.LabelValues{"a"}, values)

	series, _, err := prometheus.Series(t.Context(), []string{`queue{"k8s.pod.name"="a"}`, `nothing`}, start, end)
	require.NoError(t, err)
	assert.Equal(t, []model.LabelSet{{"__name__": "queue", "k8s.pod.name": "a"}}, series)

	_, _, err = prometheus.Query(t.Context(), `queue{`, end)
	assert.ErrorContains(t, err, "bad_data")
	_, _, err = prometheus.QueryRange(t.Context(), `queue`, v1.Range{Start: end, End: start, Step: time.Minute})
	assert.ErrorContains(t, err, "is not a range")
}
