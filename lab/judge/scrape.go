package judge

import (
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// modelName is the value of the attribute model_name.
const modelName = "meta-llama/Llama-3.1-8B-Instruct"

// scraper converts a server's numbers to the metrics that the receiver emits for a
// scrape of it. It is a hundred times as fast as writing a page and parsing it. A
// test compares the processor's output for the two.
type scraper struct {
	instance string
	// counted is a server that counts requests with corrupted logits.
	counted bool
	bounds  map[string][]float64
	static  []fixed
	// live is true if the last scrape succeeded.
	live bool
	last pmetric.Metrics
}

// fixed is a gauge that never changes.
type fixed struct {
	name  string
	value float64
}

// row is a number of an engine, as a gauge or a counter.
type row struct {
	name         string
	counter      bool
	label, value string
	read         func(*observed.Stats) float64
}

func gauge(name string, read func(*observed.Stats) float64) row { return row{name: name, read: read} }
func counter(name string, read func(*observed.Stats) float64) row {
	return row{name: name, counter: true, read: read}
}

func (r row) with(label, value string) row {
	r.label, r.value = label, value
	return r
}

func finished(reason observed.Reason) row {
	return counter("vllm.request.success", func(s *observed.Stats) float64 { return s.Finished[reason] }).
		with("finished_reason", reason.String())
}

func sleeping(level int, state string) row {
	return gauge("vllm.engine.sleep_state", func(s *observed.Stats) float64 {
		if s.SleepLevel == level {
			return 1
		}
		return 0
	}).with("sleep_state", state)
}

// rows are those of every server. Rows with the same name are consecutive.
var rows = []row{
	gauge("vllm.num_requests.running", func(s *observed.Stats) float64 { return float64(s.Running) }),
	gauge("vllm.num_requests.waiting", func(s *observed.Stats) float64 { return float64(s.Waiting()) }),
	gauge("vllm.num_requests.waiting_by_reason", func(s *observed.Stats) float64 { return float64(s.WaitingCapacity) }).with("reason", "capacity"),
	gauge("vllm.num_requests.waiting_by_reason", func(s *observed.Stats) float64 { return float64(s.WaitingDeferred) }).with("reason", "deferred"),
	sleeping(0, "awake"), sleeping(1, "weights_offloaded"), sleeping(2, "discard_all"),
	gauge("vllm.kv_cache.utilization", func(s *observed.Stats) float64 { return s.KVUsage }),
	counter("vllm.prefix_cache.queries", func(s *observed.Stats) float64 { return s.PrefixQueries }),
	counter("vllm.prefix_cache.hits", func(s *observed.Stats) float64 { return s.PrefixHits }),
	counter("vllm.external_prefix_cache.queries", func(s *observed.Stats) float64 { return s.ExternalQueries }),
	counter("vllm.external_prefix_cache.hits", func(s *observed.Stats) float64 { return s.ExternalHits }),
	counter("vllm.mm_cache.queries", func(s *observed.Stats) float64 { return s.MediaQueries }),
	counter("vllm.mm_cache.hits", func(s *observed.Stats) float64 { return s.MediaHits }),
	counter("vllm.num_preemptions", func(s *observed.Stats) float64 { return s.Preemptions }),
	counter("vllm.prompt_tokens", func(s *observed.Stats) float64 { return s.PromptTokens }),
	counter("vllm.prompt_tokens_by_source", func(s *observed.Stats) float64 { return s.PromptTokens - s.PromptCached }).with("source", "local_compute"),
	counter("vllm.prompt_tokens_by_source", func(s *observed.Stats) float64 { return s.PromptCached - s.PromptExternal }).with("source", "local_cache_hit"),
	counter("vllm.prompt_tokens_by_source", func(s *observed.Stats) float64 { return s.PromptExternal }).with("source", "external_kv_transfer"),
	counter("vllm.prompt_tokens_cached", func(s *observed.Stats) float64 { return s.PromptCached }),
	counter("vllm.generation_tokens", func(s *observed.Stats) float64 { return s.GenerationTokens }),
	finished(observed.ReasonStop), finished(observed.ReasonLength), finished(observed.ReasonAbort),
	finished(observed.ReasonError), finished(observed.ReasonRepetition),
	counter("vllm.estimated_flops_per_gpu", func(s *observed.Stats) float64 { return s.Flops }),
	counter("vllm.estimated_read_bytes_per_gpu", func(s *observed.Stats) float64 { return s.ReadBytes }),
	counter("vllm.estimated_write_bytes_per_gpu", func(s *observed.Stats) float64 { return s.WriteBytes }),
}

var (
	corruptedRow = counter("vllm.corrupted_requests", func(s *observed.Stats) float64 { return s.Corrupted })
	transferRow  = counter("vllm.nixl.num_failed_transfers", func(s *observed.Stats) float64 { return s.TransferFailures })
	draftRows    = []row{
		counter("vllm.spec_decode.num_drafts", func(s *observed.Stats) float64 { return s.Drafts }),
		counter("vllm.spec_decode.num_draft_tokens", func(s *observed.Stats) float64 { return s.DraftTokens }),
		counter("vllm.spec_decode.num_accepted_tokens", func(s *observed.Stats) float64 { return s.AcceptedTokens }),
	}
)

// distribution is a histogram by its wire name.
type distribution struct {
	family string
	read   func(*observed.Stats) *observed.Histogram
}

// blockDistributions are those of servers with --kv-cache-metrics.
var blockDistributions = []distribution{
	{"vllm:kv_block_lifetime_seconds", func(s *observed.Stats) *observed.Histogram { return s.BlockLifetime }},
	{"vllm:kv_block_idle_before_evict_seconds", func(s *observed.Stats) *observed.Histogram { return s.BlockIdle }},
	{"vllm:kv_block_reuse_gap_seconds", func(s *observed.Stats) *observed.Histogram { return s.BlockReuseGap }},
}

// distributions are those of every server.
var distributions = []distribution{
	{"vllm:request_prompt_tokens", func(s *observed.Stats) *observed.Histogram { return s.PromptLength }},
	{"vllm:request_generation_tokens", func(s *observed.Stats) *observed.Histogram { return s.GenerationLength }},
	{"vllm:iteration_tokens_total", func(s *observed.Stats) *observed.Histogram { return s.IterationTokens }},
	{"vllm:time_to_first_token_seconds", func(s *observed.Stats) *observed.Histogram { return s.FirstToken }},
	{"vllm:inter_token_latency_seconds", func(s *observed.Stats) *observed.Histogram { return s.InterToken }},
	{"vllm:request_time_per_output_token_seconds", func(s *observed.Stats) *observed.Histogram { return s.TokenMean }},
	{"vllm:e2e_request_latency_seconds", func(s *observed.Stats) *observed.Histogram { return s.EndToEnd }},
	{"vllm:request_queue_time_seconds", func(s *observed.Stats) *observed.Histogram { return s.Queue }},
	{"vllm:request_inference_time_seconds", func(s *observed.Stats) *observed.Histogram { return s.Inference }},
	{"vllm:request_prefill_time_seconds", func(s *observed.Stats) *observed.Histogram { return s.Prefill }},
	{"vllm:request_decode_time_seconds", func(s *observed.Stats) *observed.Histogram { return s.Decode }},
	{"vllm:request_prefill_kv_computed_tokens", func(s *observed.Stats) *observed.Histogram { return s.PrefillComputed }},
}

// newScraper reads the bounds of the histograms from the surface once.
func newScraper(w *world, server int, counted bool) *scraper {
	version, err := surface.ParseVersion(ShownVersion)
	if err != nil {
		panic(err) // The constant above.
	}
	shown := surface.Server{
		Dialect: surface.V1, Version: version, Model: modelName, MaxModelLen: w.modelLength(),
		KVTokens: w.blocks() * w.blockSize(), BlockSize: w.blockSize(), PrefixCaching: true, BlockMetrics: w.cfg.FollowBlocks > 0, Engines: w.stats(),
	}
	s := &scraper{instance: fmt.Sprintf("vllm-%d:8000", server), counted: counted, bounds: map[string][]float64{}, static: []fixed{
		{"vllm.kv_cache.block_size", float64(w.blockSize())},
		{"vllm.kv_cache.capacity", float64(w.blocks() * w.blockSize())},
		{"vllm.kv_cache.num_gpu_blocks", float64(w.blocks())},
	}}
	for _, f := range shown.Families() {
		if len(f.Points) > 0 && len(f.Points[0].Bounds) > 0 {
			s.bounds[f.Name] = f.Points[0].Bounds
		}
	}
	return s
}

// scrape returns the result of one scrape; false if the collector was away.
func (s *scraper) scrape(w *world, now, start time.Time) (pmetric.Metrics, bool) {
	if w.missed {
		return pmetric.Metrics{}, false
	}
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", s.instance)
	scope := rm.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName("judge")
	b := &batch{
		to: scope.Metrics(), now: pcommon.NewTimestampFromTime(now),
		start: pcommon.NewTimestampFromTime(start.Add(seconds(w.born) - 1250*time.Millisecond)),
	}
	if w.down() {
		if s.live {
			s.ends(b)
		}
		s.live = false
		b.gauge("vllm.up", 0)
		return metrics, true
	}
	s.fill(b, w)
	s.live = true
	s.last = pmetric.NewMetrics()
	metrics.CopyTo(s.last)
	b.gauge("vllm.up", 1)
	return metrics, true
}

func (s *scraper) fill(b *batch, w *world) {
	engines := w.stats()
	for i, st := range engines {
		b.engine = strconv.Itoa(i)
		for _, r := range rows {
			b.row(r, st)
		}
		if s.counted {
			b.row(corruptedRow, st)
		}
		if w.cfg.Transfer.Share > 0 {
			b.row(transferRow, st)
		}
		if len(w.cfg.Speculation.Acceptance) > 0 {
			for _, r := range draftRows {
				b.row(r, st)
			}
			for place := range st.AcceptedPerPosition {
				b.row(counter("vllm.spec_decode.num_accepted_tokens_per_pos", func(s *observed.Stats) float64 {
					return s.AcceptedPerPosition[place]
				}).with("position", strconv.Itoa(place)), st)
			}
		}
		for _, d := range distributions {
			b.histogram(d.family, d.read(st), s.bounds[d.family])
		}
		if w.cfg.FollowBlocks > 0 {
			for _, d := range blockDistributions {
				b.histogram(d.family, d.read(st), s.bounds[d.family])
			}
		}
	}
	for i := range engines {
		b.engine = strconv.Itoa(i)
		for _, f := range s.static {
			b.bare(f.name, f.value)
		}
	}
	if w.cfg.Semantics.FirstTokenAtEnd {
		b.bare("vllm:scheduler_policy_info", 1) // It comes with the change.
	}
	b.http(engines)
}
