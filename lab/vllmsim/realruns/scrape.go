package realruns

import (
	"math"
	"sort"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// counter is a counter of a row, by the name that the receiver gives it.
type counter struct {
	name  string
	label [2]string
	read  func(*Row) float64
	has   func(Counts) bool
}

var always = func(Counts) bool { return true }

var counters = []counter{
	{name: "vllm.prompt_tokens", read: func(r *Row) float64 { return r.Prompt }, has: always},
	{name: "vllm.generation_tokens", read: func(r *Row) float64 { return r.Generated }, has: always},
	{name: "vllm.prefix_cache.queries", read: func(r *Row) float64 { return r.Queries }, has: func(c Counts) bool { return c.Lookups }},
	{name: "vllm.prefix_cache.hits", read: func(r *Row) float64 { return r.Hits }, has: func(c Counts) bool { return c.Lookups }},
	{name: "vllm.num_preemptions", read: func(r *Row) float64 { return r.Preempted }, has: func(c Counts) bool { return c.Preemptions }},
	{
		// The recordings do not say how requests ended.
		name: "vllm.request.success", label: [2]string{"finished_reason", "stop"},
		read: func(r *Row) float64 { return r.Finished }, has: func(c Counts) bool { return c.Finished },
	},
}

// distribution is a histogram, by its names on the wire and from the receiver.
type distribution struct {
	family, name string
	// clients is true where only requests of the clients have it, phases where only those
	// with the times of the engine.
	clients, phases bool
	observe         func(l *latencies, from, to float64) []observation
}

func ofEnded(value func(*Request) float64) func(*latencies, float64, float64) []observation {
	return func(l *latencies, from, to float64) []observation { return l.ended(from, to, value) }
}

var distributions = []distribution{
	{family: "vllm:time_to_first_token_seconds", name: "vllm.time_to_first_token", observe: (*latencies).timesToFirstToken},
	{family: "vllm:inter_token_latency_seconds", name: "vllm.inter_token_latency", observe: (*latencies).timesBetweenTokens},
	{
		family: "vllm:e2e_request_latency_seconds", name: "vllm.e2e_request_latency", clients: true,
		observe: ofEnded(func(q *Request) float64 { return q.Last - q.Sent }),
	},
	{
		family: "vllm:request_prompt_tokens", name: "vllm.request.prompt_tokens", clients: true,
		observe: ofEnded(func(q *Request) float64 { return q.Prompt }),
	},
	{
		family: "vllm:request_generation_tokens", name: "vllm.request.generation_tokens", clients: true,
		observe: ofEnded(func(q *Request) float64 { return q.Output }),
	},
	{
		family: "vllm:request_queue_time_seconds", name: "vllm.request.queue_time", phases: true,
		observe: ofEnded(func(q *Request) float64 { return q.Scheduled - q.Queued }),
	},
	{
		family: "vllm:request_prefill_time_seconds", name: "vllm.request.prefill_time", phases: true,
		observe: ofEnded(func(q *Request) float64 { return q.First - q.Scheduled }),
	},
	{
		family: "vllm:request_decode_time_seconds", name: "vllm.request.decode_time", phases: true,
		observe: ofEnded(func(q *Request) float64 { return q.Last - q.First }),
	},
	{
		family: "vllm:request_inference_time_seconds", name: "vllm.request.inference_time", phases: true,
		observe: ofEnded(func(q *Request) float64 { return q.Last - q.Scheduled }),
	},
}

// unknownVersion has the buckets that a server of unknown version is given.
const unknownVersion = "0.15.0"

// longestModel is a context length that has all buckets of lengths.
const longestModel = 131072

// scraper converts rows to what the receiver emits for a scrape.
type scraper struct {
	recording *Recording
	latencies *latencies
	source    Source
	// histograms are by the names of their families. They have what was observed up to a
	// time, by a process that began at another.
	histograms  map[string]*sums
	until, born float64
	restarts    []int
	begin       time.Time
	// last is the last scrape that succeeded, while the series live.
	last pmetric.Metrics
	live bool
	// failed is true where the last scrape failed.
	failed bool
}

func newScraper(r *Recording, source Source, begin time.Time) (*scraper, error) {
	if len(r.Requests) == 0 {
		source = Gauges
	}
	text := r.Version
	if text == "" {
		text = unknownVersion
	}
	version, err := surface.ParseVersion(text)
	if err != nil {
		return nil, err
	}
	shown := surface.Server{Dialect: surface.V1, Version: version, MaxModelLen: longestModel, KVTokens: longestModel, BlockSize: 16}
	if err := surface.Check(shown.Dialect, version); err != nil {
		return nil, err
	}
	s := &scraper{
		recording: r, latencies: r.latencies(source), source: source, histograms: map[string]*sums{},
		restarts: r.restarts(), begin: begin, until: -math.MaxFloat64, born: -math.MaxFloat64,
	}
	shown.Engines = []*observed.Stats{observed.NewStats(0)}
	for _, f := range shown.Families() {
		if len(f.Points) > 0 && len(f.Points[0].Bounds) > 0 {
			s.histograms[f.Name] = &sums{bounds: f.Points[0].Bounds}
		}
	}
	return s, nil
}

// since is when the process began that answers with a row, in seconds; below 0 where it is
// the first one.
func (s *scraper) since(row int) float64 {
	n := sort.SearchInts(s.restarts, row+1)
	if n == 0 {
		return -math.MaxFloat64
	}
	return s.recording.Rows[s.restarts[n-1]].At - 1
}

// beforeFirst is how long before the recording the first process is said to have begun.
const beforeFirst = time.Minute

func (s *scraper) time(at float64) time.Time {
	return s.begin.Add(time.Duration(at * float64(time.Second)))
}

// scrape returns the metrics of a scrape at a time, and the time of the answer.
func (s *scraper) scrape(at, timeout float64) (pmetric.Metrics, float64) {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", s.recording.Name)
	if s.recording.Version != "" {
		rm.Resource().Attributes().PutStr("service.version", s.recording.Version)
	}
	scope := rm.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName("recording")
	row, answered, ok := s.recording.answer(at, timeout)
	b := &batch{to: scope.Metrics(), now: pcommon.NewTimestampFromTime(s.time(answered))}
	if !ok {
		if s.live {
			b.end(s.last)
		}
		s.live, s.failed = false, true
		b.gauge("vllm.up", 0)
		b.labelled("vllm.scrape.failure", "outcome", "timeout", 1)
		return metrics, answered
	}
	s.fill(b, row)
	s.last = pmetric.NewMetrics()
	metrics.CopyTo(s.last)
	b.gauge("vllm.up", 1)
	if s.failed {
		b.gone("vllm.scrape.failure", "outcome", "timeout")
	}
	s.live, s.failed = true, false
	return metrics, answered
}

func (s *scraper) fill(b *batch, i int) {
	r, row := s.recording, &s.recording.Rows[i]
	since := s.since(i)
	b.start = pcommon.NewTimestampFromTime(s.begin.Add(-beforeFirst))
	if since > 0 {
		b.start = pcommon.NewTimestampFromTime(s.time(since))
	}
	b.engine, b.model = "0", r.Model
	b.ofEngine("vllm.num_requests.running", row.Running)
	b.ofEngine("vllm.num_requests.waiting", row.Waiting)
	if !math.IsNaN(row.Usage) {
		b.ofEngine("vllm.kv_cache.utilization", row.Usage)
	}
	if r.Capacity > 0 {
		b.ofEngine("vllm.kv_cache.capacity", r.Capacity)
	}
	for _, c := range counters {
		if c.has(r.Counts) {
			b.counter(c, c.read(row))
		}
	}
	if since != s.born {
		for _, h := range s.histograms {
			*h = sums{bounds: h.bounds}
		}
		s.born, s.until = since, since
	}
	for _, d := range distributions {
		if (d.clients || d.phases) && s.source == Gauges || d.phases && !r.Counts.Phases {
			continue
		}
		h := s.histograms[d.family]
		h.add(d.observe(s.latencies, s.until, row.At))
		b.histogram(d.name, h)
	}
	s.until = row.At
}
