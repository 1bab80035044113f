package scrape

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A server that counts its requests is asked with each scrape, also while it answers 0. One that does not is
// asked once a minute, and one without the path every ten minutes.
func TestTheLoadIsAskedOfServersThatCountIt(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000_000, 0)
	var l loadCheck
	asks := func() bool { return l.counts || !at.Before(l.next) }
	take := func(requests float64, answered bool) *float64 {
		l.take(at, loaded{requests, true, answered})
		return l.value(at)
	}
	assert.True(t, asks())
	assert.Nil(t, take(0, true), "0 says nothing")
	at = at.Add(59 * time.Second)
	assert.False(t, asks())
	at = at.Add(time.Second)
	assert.True(t, asks())
	assert.Nil(t, take(0, false))
	at = at.Add(9 * time.Minute)
	assert.False(t, asks())
	at = at.Add(time.Minute)
	assert.True(t, asks())
	assert.InDelta(t, 3, *take(3, true), 0)
	at = at.Add(time.Second)
	assert.Nil(t, l.value(at), "the answer of another scrape")
	assert.True(t, asks())
	assert.InDelta(t, 0, *take(0, true), 0)
	at = at.Add(time.Second)
	assert.Nil(t, take(0, false), "no answer")
	assert.True(t, asks(), "it has counted before")
}

func TestTheLoadIsAMetric(t *testing.T) {
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	for body, want := range map[string][]string{
		`{"server_load":3}`:      {"gauge {request} {} @0 3"},
		`{"server_load":0}`:      nil,
		`{"server_load":-1}`:     nil,
		`{"server_load":"many"}`: nil,
		`{"server_load":null}`:   nil,
		`{"load":3}`:             nil,
		`<html>no</html>`:        nil,
		`{"server_load":1e999}`:  nil,
		``:                       nil,
	} {
		r := newRig(t)
		r.answerLoad(answer(body))
		assert.Equal(t, want, points(r.scrape(gauge("1")), "vllm.server_load"), body)
	}
	off := false
	r := newRig(t, func(cfg *Config) { cfg.Metrics = map[string]MetricConfig{"vllm.server_load": {Enabled: &off}} })
	r.answerLoad(answer(`{"server_load":3}`))
	assert.Empty(t, points(r.scrape(gauge("1")), "vllm.server_load"))
	assert.Zero(t, r.asked["/load"], "off, it is not asked")
}
