package soak

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// batch has an answer with two engines, an end of a series, and a derived metric.
func batch(id int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(receiverScope)
	at := pcommon.Timestamp(id)
	number := func(name string, sum bool, engines ...string) {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		var points pmetric.NumberDataPointSlice
		if sum {
			points = m.SetEmptySum().DataPoints()
		} else {
			points = m.SetEmptyGauge().DataPoints()
		}
		for _, engine := range engines {
			p := points.AppendEmpty()
			p.SetTimestamp(at)
			if engine != "" {
				p.Attributes().PutStr("engine", engine)
			}
			if sum {
				p.SetIntValue(100)
			} else {
				p.SetDoubleValue(float64(id))
			}
		}
	}
	number(servedMetric, false, "")
	number(tokensMetric, true, "0", "1")
	number(enginesMetric, false, "0", "1")
	h := sm.Metrics().AppendEmpty()
	h.SetName(firstMetric)
	points := h.SetEmptyHistogram().DataPoints()
	for _, engine := range []string{"0", "1"} {
		p := points.AppendEmpty()
		p.SetTimestamp(at)
		p.Attributes().PutStr("engine", engine)
	}
	gone := points.AppendEmpty()
	gone.SetTimestamp(at)
	gone.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	derived := rm.ScopeMetrics().AppendEmpty()
	derived.Scope().SetName("processor")
	m := derived.Metrics().AppendEmpty()
	m.SetName(tokensMetric)
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(at)
	return md
}

func post(t *testing.T, s *fleet.Backend, md pmetric.Metrics) (int, error) {
	t.Helper()
	content, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+"/v1/metrics", &b)
	require.NoError(t, err)
	request.Header.Set("Content-Encoding", "gzip")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestTheSinkReportsWhatArrives(t *testing.T) {
	l := newLedger()
	s, err := fleet.NewBackend(t.Context(), l.take)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	a := served(7, 0)
	l.serve(a)

	require.NoError(t, s.Become(t.Context(), fleet.Unavailable))
	status, err := post(t, s, batch(7))
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, 1, l.balance().Lost)

	require.NoError(t, s.Become(t.Context(), fleet.Unreachable))
	_, err = post(t, s, batch(7))
	require.Error(t, err)
	assert.Equal(t, 1, l.balance().Lost)

	// The data of a lost answer is taken, and comes again.
	require.NoError(t, s.Become(t.Context(), fleet.Losing))
	_, err = post(t, s, batch(7))
	require.Error(t, err)
	assert.Equal(t, balance{Served: 1, Received: 1, Points: 7, Compared: 1, Excused: map[string]int{}}, l.balance())

	require.NoError(t, s.Become(t.Context(), fleet.Working))
	status, err = post(t, s, batch(7))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, balance{Served: 1, Received: 1, Duplicates: 1, Points: 7, Compared: 1, Excused: map[string]int{}}, l.balance())
	assert.Equal(t, 1, s.Taken().Repeated)

	require.NoError(t, s.Become(t.Context(), fleet.Slow))
	began := time.Now()
	_, err = post(t, s, batch(8))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), fleet.Delay)
	assert.Equal(t, 1, l.balance().Unknown)
}
