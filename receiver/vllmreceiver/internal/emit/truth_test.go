package emit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// server is a vLLM server as an operator knows it: events happen, and now and
// then it restarts and forgets them.
type server struct {
	random  *rand.Rand
	now     time.Time
	created time.Time
	// withCreated makes it expose its own start times.
	withCreated bool
	// events counts since the last restart, by engine; an engine shows its series
	// only after its first event, as lazily created ones do.
	events []int
	// worked is true once a scrape has seen it work since the last restart. Two
	// restarts without that between them could not be distinguished from work.
	worked bool
}

func (s *server) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for i := range s.events {
		// Much work, so that a restart always shows: after it there is less.
		s.events[i] += 100 + s.random.IntN(100)
	}
}

func (s *server) restart(d time.Duration) {
	s.now = s.now.Add(d)
	s.created, s.worked = s.now, false
	for i := range s.events {
		s.events[i] = 0
	}
	s.now = s.now.Add(time.Second)
	for i := range s.events {
		s.events[i] = s.random.IntN(50)
	}
}

func (s *server) body() string {
	var b strings.Builder
	line := func(name, labels string, value any) { fmt.Fprintf(&b, "%s{%s} %v\n", name, labels, value) }
	b.WriteString("# TYPE vllm:generation_tokens_total counter\n")
	for i, n := range s.events {
		if n > 0 {
			line("vllm:generation_tokens_total", fmt.Sprintf("engine=%q", fmt.Sprint(i)), n)
		}
	}
	if s.withCreated {
		b.WriteString("# TYPE vllm:generation_tokens_created gauge\n")
		for i, n := range s.events {
			if n > 0 {
				line("vllm:generation_tokens_created", fmt.Sprintf("engine=%q", fmt.Sprint(i)), float64(s.created.UnixNano())/1e9)
			}
		}
	}
	b.WriteString("# TYPE vllm:request_params_max_tokens histogram\n")
	for i, n := range s.events {
		if n == 0 {
			continue
		}
		engine := fmt.Sprintf("engine=%q", fmt.Sprint(i))
		line("vllm:request_params_max_tokens_bucket", engine+`,le="1.0"`, n/2)
		line("vllm:request_params_max_tokens_bucket", engine+`,le="+Inf"`, n)
		line("vllm:request_params_max_tokens_count", engine, n)
		line("vllm:request_params_max_tokens_sum", engine, 2*n)
	}
	return b.String()
}

// consumer converts cumulative points to deltas as the OTLP data model says: a
// later start time means that the series began again, and its whole value counts.
type consumer struct {
	last  map[string]lastPoint
	total map[string]float64
}

type lastPoint struct {
	start pcommon.Timestamp
	value float64
}

func (c *consumer) consume(t *testing.T, metrics pmetric.Metrics, first bool) {
	t.Helper()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						c.point(t, m.Name(), p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.DoubleValue(), first)
					}
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						c.point(t, m.Name(), p.Attributes(), p.StartTimestamp(), p.Timestamp(), float64(p.Count()), first)
					}
				}
			}
		}
	}
}

func (c *consumer) point(
	t *testing.T, name string, attributes pcommon.Map, start, at pcommon.Timestamp, value float64, first bool,
) {
	t.Helper()
	require.LessOrEqual(t, start, at)
	engine, _ := attributes.Get("engine")
	key := name + engine.AsString()
	before, known := c.last[key]
	switch {
	case first:
		// What was before the first scrape is not counted.
	case !known || start > before.start:
		require.Less(t, start, at, "a point whose start is its own time would be dropped")
		c.total[key] += value
	default:
		require.Equal(t, before.start, start, "a start time never goes back")
		require.GreaterOrEqual(t, value, before.value)
		c.total[key] += value - before.value
	}
	c.last[key] = lastPoint{start, value}
}

// Whatever happens to a server, a consumer of deltas counts each event that a
// scrape has seen exactly once. The truth is kept by the server's own side: what
// each life of the process had reached at its last scrape.
func TestDeltasAddUpToWhatTheScrapesSaw(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := &server{
			random: random, withCreated: seed%2 == 0, events: make([]int, 1+random.IntN(3)),
			now: time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC),
		}
		s.created = s.now.Add(-time.Hour)
		// Half of the servers begin with an engine that has done nothing yet.
		for i := range s.events {
			if random.IntN(2) == 0 {
				s.events[i] = 1000 + random.IntN(1000)
			}
		}
		target := New(Settings{ScopeName: "test", MaxSeries: 1000})
		reader := exposition.NewReader(exposition.NewMemory(0))
		plans := map[string]*normalize.Plan{}
		c := &consumer{last: map[string]lastPoint{}, total: map[string]float64{}}
		truth := make([]int, len(s.events))
		seen := make([]int, len(s.events))

		for step := range 40 {
			switch random.IntN(8) {
			case 0:
				if step > 0 && s.worked {
					for i := range truth {
						truth[i] += seen[i]
						seen[i] = 0
					}
					s.restart(5 * time.Second)
				}
			case 1:
				out := pmetric.NewMetrics()
				s.pass(15 * time.Second)
				target.Fail(s.now, Own{}, out)
				continue
			default:
				s.pass(15 * time.Second)
				s.worked = true
			}
			body := s.body()
			snapshot := reader.Read([]byte(body), exposition.DialectText)
			shape := ""
			for _, f := range snapshot.Layout.Families {
				for _, series := range f.Series {
					shape += fmt.Sprint(f.Name, series.Labels)
				}
			}
			if plans[shape] == nil {
				plans[shape] = normalize.Make(snapshot.Layout, normalize.Options{})
			}
			first := !target.Known()
			out := pmetric.NewMetrics()
			target.Emit(Scrape{Time: s.now, Plan: plans[shape], Snapshot: snapshot}, Own{Up: true}, out)
			c.consume(t, out, first)
			copy(seen, s.events)
			if first {
				for i := range truth {
					truth[i] = -s.events[i]
				}
			}
		}
		for i := range truth {
			want := float64(truth[i] + seen[i])
			assert.InDelta(t, want, c.total[fmt.Sprintf("vllm.generation_tokens%d", i)], 0, "counter of engine %d, seed %d", i, seed)
			assert.InDelta(t, want, c.total[fmt.Sprintf("vllm.request.params_max_tokens%d", i)], 0, "histogram of engine %d, seed %d", i, seed)
		}
		if t.Failed() {
			return
		}
	}
}
