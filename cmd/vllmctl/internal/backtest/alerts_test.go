package backtest

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
)

func sampled(step time.Duration, minutes ...float64) promapi.Series {
	s := promapi.Series{Labels: labels.FromStrings("__name__", "ALERTS", "alertname", "A", "alertstate", "firing", "instance", "i")}
	for i := 0; i+1 < len(minutes); i += 2 {
		for at := minutes[i]; at <= minutes[i+1]; at += step.Minutes() {
			s.Times, s.Values = append(s.Times, int64(at*60000)), append(s.Values, 1)
		}
	}
	return s
}

// Prometheus writes a sample of ALERTS at each evaluation; one that is missing is no end.
func TestSamplesOfAlertsBecomeTimesOfFiring(t *testing.T) {
	var a alertLog
	whole := sampled(time.Minute, 1, 10, 12, 20, 30, 31)
	// In two windows.
	for _, cut := range [][2]int{{0, 7}, {7, len(whole.Times)}} {
		part := whole
		part.Times, part.Values = whole.Times[cut[0]:cut[1]], whole.Values[cut[0]:cut[1]]
		a.see([]promapi.Series{part})
	}
	got := a.finish()
	require.Len(t, got, 2)
	at := func(m float64) time.Time { return time.UnixMilli(int64(m * 60000)).UTC() }
	assert.Equal(t, "A", got[0].Alert)
	assert.Equal(t, `{instance="i"}`, got[0].Labels.String())
	assert.Equal(t, []time.Time{at(1), at(21), at(30), at(32)}, []time.Time{got[0].From, got[0].To, got[1].From, got[1].To})
	assert.Zero(t, a.dropped)
}

func TestTheNumberOfAlertsIsBounded(t *testing.T) {
	var a alertLog
	for i := range maxFirings + 10 {
		s := sampled(time.Minute, 1, 1)
		s.Labels = labels.FromStrings("alertname", "A", "n", time.Duration(i).String())
		a.see([]promapi.Series{s})
	}
	assert.Len(t, a.finish(), maxFirings)
	assert.Equal(t, 10, a.dropped)
}
