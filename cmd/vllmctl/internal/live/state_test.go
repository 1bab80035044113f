package live

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

var first = labels{"engine": "0", "model_name": "llama"}

// rows are the rows of a state, the worst first.
func rows(s *State) []Row {
	t := s.Table(noon.Add(time.Hour), true)
	Sort(t.Rows, Order{})
	return t.Rows
}

func only(t *testing.T, s *State) *Row {
	t.Helper()
	all := rows(s)
	require.Len(t, all, 1)
	return &all[0]
}

func TestARowHasWhatABatchHas(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "vllm-0:8000", labels{"service.version": "0.20.0", "k8s.pod.name": "chat-0", "k8s.namespace.name": "chat"}).up().
		is("degraded", 2, first).
		with("vllm.diagnosis.condition", 0, labels{"engine": "0", "model_name": "llama", "condition": "healthy"}).
		with("vllm.diagnosis.cause", 1, labels{"engine": "0", "model_name": "llama", "cause": "slow_steps", "role": "primary", "detail": "since_version"}).
		with("vllm.diagnosis.cause", 0, labels{"engine": "0", "model_name": "llama", "cause": "kv_pressure", "role": "primary"}).
		with("vllm.diagnosis.cause", 1, labels{"engine": "0", "model_name": "llama", "cause": "decode_load", "role": "contributing"}).
		with("vllm.diagnosis.cause_share", 0.3, labels{"engine": "0", "model_name": "llama", "cause": "decode_load"}).
		with("vllm.diagnosis.signal", 30, labels{"engine": "0", "model_name": "llama", "signal": "running"}).
		with("vllm.diagnosis.signal_ratio", 2, labels{"engine": "0", "model_name": "llama", "signal": "running"}).
		with("vllm.num_requests.running", 30, first).
		with("vllm.time_to_first_token_mean", 0.25, first).
		with("vllm.time_to_first_token_quantile", 0.5, labels{"engine": "0", "model_name": "llama", "quantile": "0.95"}).
		with("vllm.http.error_ratio", 0.125, labels{"status_class": "5xx"}).
		with("vllm.http.error_ratio", 0.5, labels{"status_class": "4xx"}).
		metrics)
	r := only(t, s)
	assert.Equal(t, "chat-0", r.Name())
	assert.Equal(t, []string{"vllm-0:8000", "chat", "0.20.0", "llama", "0"}, []string{r.Address, r.Namespace, r.Version, r.Model, r.Engine})
	assert.Equal(t, "degraded: slow_steps", r.Verdict.String())
	assert.Equal(t, "since_version", r.Detail)
	assert.Equal(t, 2, r.Severity)
	assert.Equal(t, noon, r.Since)
	require.Len(t, r.Also, 1)
	assert.Equal(t, "decode_load", r.Also[0].Cause)
	assert.InDelta(t, 0.3, r.Also[0].Share, 0)
	assert.Contains(t, strings.Join(r.Evidence(), "\n"), "running 30 requests (usual 15)")
	assert.InDelta(t, 30, r.Values[Running], 0)
	assert.InDelta(t, 0.25, r.Values[TTFT], 0)
	assert.InDelta(t, 0.125, r.Values[Errors], 0)
	assert.True(t, math.IsNaN(r.Values[Waiting]))
	assert.Equal(t, []Quantile{{0.95, 0.5}}, r.Details.Quantiles[QuantilesTTFT])
}

func TestAnEndedSeriesIsUnknownAndNotZero(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "a:1", nil).up().is("healthy", 0, first).
		with("vllm.time_to_first_token_mean", 0.25, first).with("vllm.generation_throughput", 0, first).
		with("vllm.time_to_first_token_quantile", 0.5, labels{"engine": "0", "model_name": "llama", "quantile": "0.95"}).metrics)
	s.Take(scrape(5, "a:1", nil).up().is("idle", 0, first).
		end("vllm.time_to_first_token_mean", first).
		end("vllm.time_to_first_token_quantile", labels{"engine": "0", "model_name": "llama", "quantile": "0.95"}).metrics)
	r := only(t, s)
	assert.Equal(t, "-", r.cell(ByTTFT, noon))
	assert.Equal(t, "0", r.cell(ByTokens, noon), "a rate of 0 is known")
	assert.Empty(t, r.Details.Quantiles[QuantilesTTFT])
	assert.Contains(t, strings.Join(r.latencies(), "\n"), "time to first token: -, no request in the window")
}

func TestTheHistoryHasEachChangeOnce(t *testing.T) {
	s := NewState()
	cause := labels{"engine": "0", "model_name": "llama", "cause": "slow_steps", "role": "primary"}
	for second, condition := range []string{"healthy", "healthy", "degraded", "degraded", "healthy"} {
		b := scrape(second, "a:1", nil).up().is(condition, 0, first)
		active := 0.0
		if condition == "degraded" {
			active = 1
		}
		s.Take(b.with("vllm.diagnosis.cause", active, cause).metrics)
		if second == 3 {
			assert.Equal(t, noon.Add(2*time.Second), only(t, s).Since, "since it began, not since the last scrape")
		}
	}
	r := only(t, s)
	assert.Equal(t, []Transition{
		{noon, "healthy", "", ""}, {noon.Add(2 * time.Second), "degraded", "slow_steps", ""}, {noon.Add(4 * time.Second), "healthy", "", ""},
	}, r.Details.History)
	assert.Equal(t, noon.Add(4*time.Second), r.Since)
	for second := range 3 * maxHistory {
		s.Take(scrape(10+second, "a:1", nil).up().is([]string{"idle", "healthy"}[second%2], 0, first).metrics)
	}
	assert.Len(t, only(t, s).Details.History, maxHistory)
}

func TestAServerThatVanishesKeepsARowWithTheReason(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "a:1", nil).up().is("healthy", 0, first).with("vllm.num_requests.running", 3, first).metrics)
	s.notes.failures["a:1"] = "connection refused"
	for second := range 3 {
		s.Take(scrape(5+second, "a:1", nil).with("vllm.up", 0, nil).with("vllm.scrape.failure", 1, labels{"outcome": "refused"}).
			is("unreachable", 3, first).end("vllm.num_requests.running", first).metrics)
	}
	r := only(t, s)
	assert.Equal(t, "connection refused", r.Unread)
	assert.Equal(t, "refused", r.UnreadKind)
	assert.Equal(t, noon.Add(5*time.Second), r.UnreadSince)
	assert.Equal(t, "-", r.cell(ByRunning, noon))
	assert.Equal(t, "connection refused", r.Why())
	table := s.Table(noon, false)
	assert.Equal(t, 1, table.Failing)

	s.Take(scrape(9, "a:1", nil).up().is("healthy", 0, first).end("vllm.scrape.failure", labels{"outcome": "refused"}).metrics)
	r = only(t, s)
	assert.Empty(t, r.Unread)
	assert.Zero(t, s.Table(noon, false).Failing)
}

func TestAServerThatIsNoTargetAnyMoreHasNoRow(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "a:1", nil).up().is("healthy", 0, first).is("healthy", 0, labels{"engine": "1"}).metrics)
	s.Take(scrape(0, "b:1", nil).up().metrics)
	assert.Equal(t, 3, s.rows)
	s.Take(scrape(5, "a:1", nil).end("vllm.up", nil).
		end("vllm.diagnosis.condition", labels{"engine": "0", "model_name": "llama", "condition": "healthy"}).metrics)
	assert.Equal(t, "b:1", only(t, s).Address)
	assert.Equal(t, 1, s.rows)
}

func TestAnotherVersionIsTheSameServer(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "a:1", labels{"service.version": "0.9.0"}).up().is("healthy", 0, first).metrics)
	// The receiver ends the series of the old resource and begins those of the new one.
	b := scrape(5, "a:1", labels{"service.version": "0.9.0"}).end("vllm.up", nil).
		end("vllm.diagnosis.condition", labels{"engine": "0", "model_name": "llama", "condition": "healthy"})
	renewed := scrape(5, "a:1", labels{"service.version": "0.20.0"}).up().is("healthy", 0, first)
	renewed.metrics.ResourceMetrics().MoveAndAppendTo(b.metrics.ResourceMetrics())
	s.Take(b.metrics)
	r := only(t, s)
	assert.Equal(t, "0.20.0", r.Version)
	assert.Equal(t, 1, s.rows)
}

func TestAServerThatEndsAndBeginsInOneBatchIsKept(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "a:1", nil).up().is("healthy", 0, first).metrics)
	s.Take(scrape(5, "a:1", nil).end("vllm.up", nil).up().is("healthy", 0, first).metrics)
	assert.Len(t, only(t, s).Details.History, 1)
	assert.Equal(t, noon, only(t, s).Since)
}

func TestAnEngineThatEndsHasNoRow(t *testing.T) {
	s := NewState()
	second := labels{"engine": "1", "model_name": "llama"}
	s.Take(scrape(0, "a:1", nil).up().is("healthy", 0, first).is("healthy", 0, second).metrics)
	assert.Len(t, rows(s), 2)
	assert.Equal(t, "a:1 #0", rows(s)[0].Name())
	s.Take(scrape(5, "a:1", nil).up().is("healthy", 0, first).
		end("vllm.diagnosis.condition", labels{"engine": "1", "model_name": "llama", "condition": "healthy"}).metrics)
	assert.Equal(t, "a:1", only(t, s).Name(), "the only engine needs no number")
	assert.Equal(t, 1, s.rows)
}

func TestPoolsHaveRows(t *testing.T) {
	s := NewState()
	chat := labels{"model_name": "llama", "k8s.namespace.name": "chat"}
	s.Take(scrape(0, "", labels{"service.name": "collector"}).
		with("vllm.pool.running", 5, labels{"model_name": "other"}). // before its condition
		with("vllm.pool.diagnosis.condition", 1, labels{"model_name": "llama", "k8s.namespace.name": "chat", "condition": "degraded"}).
		with("vllm.pool.diagnosis.severity", 2, chat).with("vllm.pool.running", 7, chat).with("vllm.pool.replicas", 3, chat).
		with("vllm.pool.diagnosis.cause", 1, labels{"model_name": "llama", "k8s.namespace.name": "chat", "cause": "imbalanced", "role": "primary"}).
		metrics)
	r := only(t, s)
	assert.Equal(t, "pool chat llama", r.Name(), "in the order of the names of its attributes")
	assert.Equal(t, "degraded: imbalanced", r.Verdict.String())
	assert.Equal(t, []string{"pool chat", "llama"}, []string{r.cell(ByServer, noon), r.cell(ByModel, noon)}, "each once, and the model is not cut")
	assert.Equal(t, 3, r.Replicas)
	assert.InDelta(t, 7, r.Values[Running], 0)
	table := s.Table(noon, false)
	assert.Equal(t, 1, table.Pools)
	assert.Zero(t, table.Servers)
}

func TestRowsHaveALimitThatIsSaid(t *testing.T) {
	s := NewState()
	for i := range MaxRows + 7 {
		s.Take(scrape(0, fmt.Sprintf("s%d:1", i), nil).up().is("healthy", 0, first).metrics)
	}
	// A server without room is scraped again and counted once.
	s.Take(scrape(5, fmt.Sprintf("s%d:1", MaxRows+3), nil).up().is("healthy", 0, first).metrics)
	table := s.Table(noon, false)
	assert.Len(t, table.Rows, MaxRows)
	assert.Equal(t, 7, table.LeftOut)
	assert.Contains(t, table.Remark(), "7 more engines or servers are not shown")
	assert.Contains(t, table.Remark(), "2000")
	assert.Contains(t, table.Remark(), "256 for one server")
	assert.Equal(t, status.Failed, table.Status(), "those without a row may not be well")

	// A place that becomes free goes to the next one that comes.
	s.Take(scrape(9, "s0:1", nil).end("vllm.up", nil).metrics)
	s.Take(scrape(9, fmt.Sprintf("s%d:1", MaxRows+3), nil).up().is("healthy", 0, first).metrics)
	table = s.Table(noon, false)
	assert.Len(t, table.Rows, MaxRows)
	assert.Equal(t, 6, table.LeftOut)
}

func TestOneServerCannotTakeAllRows(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "good:1", nil).up().is("healthy", 0, first).metrics)
	for scrapes := range 3 {
		b := scrape(scrapes, "evil:1", nil).up()
		for i := range 2 * MaxRows {
			b.is("healthy", 0, labels{"engine": fmt.Sprint(i + scrapes*MaxRows)})
		}
		s.Take(b.metrics)
	}
	s.Take(scrape(5, "late:1", nil).up().is("healthy", 0, first).metrics)
	table := s.Table(noon, false)
	assert.Len(t, table.Rows, maxEngines+2)
	assert.Positive(t, table.LeftOut)
	assert.Equal(t, len(table.Rows), s.rows)
}

func TestNamesOfServersArePrintableAndCut(t *testing.T) {
	evil := "\x1b[31m\x07ev\u202eil\xff" + strings.Repeat("x", 5000)
	s := NewState()
	s.Take(scrape(0, evil, labels{"service.version": evil, "k8s.pod.name": evil, "k8s.namespace.name": evil, "vllm.server.kind": evil}).
		up().is("healthy", 0, labels{"engine": evil, "model_name": evil}).metrics)
	s.Take(scrape(0, "", nil).with("vllm.pool.diagnosis.condition", 1, labels{"model_name": evil, "condition": "healthy"}).metrics)
	s.Note(&Line{Message: "Scraping failed: " + evil, fields: map[string]any{"target": "a", "outcome": "refused"}})
	texts := []string{s.notes.failures["a"]}
	for _, r := range rows(s) {
		texts = append(texts, r.Address, r.Version, r.Pod, r.Namespace, r.Kind, r.Model, r.Engine, r.Pool, r.Name())
	}
	for _, text := range texts {
		assert.LessOrEqual(t, len(text), maxSentence)
		for _, c := range text {
			assert.True(t, unicode.IsPrint(c), "%q", text)
		}
	}
	assert.Equal(t, "ab", printable("ab", 2))
	assert.Equal(t, "ää...", printable("ääääääää", 8), "no half of a character")
}

func TestNotesAreLimitedAndForgotten(t *testing.T) {
	s := NewState()
	s.Take(scrape(0, "gone:1", nil).up().is("unknown", 1, first).metrics)
	s.Note(&Line{Message: "Scraping failed: why", fields: map[string]any{"target": "gone:1", "outcome": "refused"}})
	s.Note(&Line{Message: "diagnosis: It lacks `x`.", fields: map[string]any{
		"service.instance.id": "gone:1", "model_name": "llama", "engine": "0", "condition": "unknown",
	}})
	assert.Equal(t, "It lacks x.", only(t, s).Details.Sentence)
	s.Take(scrape(1, "gone:1", nil).up().is("healthy", 0, first).metrics)
	assert.Empty(t, only(t, s).Details.Sentence, "it is about the condition before")
	s.Note(&Line{Message: "diagnosis: It lacks `x`.", fields: map[string]any{
		"service.instance.id": "gone:1", "model_name": "other", "engine": "0", "condition": "unknown",
	}})
	other := labels{"model_name": "other", "engine": "0"}
	s.Take(scrape(1, "gone:1", nil).up().is("healthy", 0, other).metrics)
	s.Take(scrape(1, "gone:1", nil).up().end("vllm.diagnosis.condition", labels{"model_name": "other", "engine": "0", "condition": "healthy"}).metrics)
	assert.Len(t, s.notes.sentences, 1, "that of the other model left with it")
	s.Take(scrape(2, "gone:1", nil).end("vllm.up", nil).metrics)
	assert.Empty(t, s.notes.failures)
	assert.Empty(t, s.notes.sentences)
	for i := range 2 * maxNotes {
		s.Note(&Line{Message: "Scraping failed: why", fields: map[string]any{"target": fmt.Sprint(i), "outcome": "refused"}})
	}
	assert.Len(t, s.notes.failures, maxNotes)
}

// In the first minutes nothing can have been reported, so nothing is called healthy.
func TestHealthyNeedsTimeToBeJudged(t *testing.T) {
	s := NewState()
	for _, at := range []int{0, 300} {
		s.Take(scrape(at, "old:1", nil).up().is("healthy", 0, first).metrics)
	}
	s.Take(scrape(300, "new:1", nil).up().is("healthy", 0, first).metrics)
	s.Take(scrape(300, "bad:1", nil).up().is("degraded", 2, first).metrics)
	table := s.Table(noon.Add(5*time.Minute), false)
	table.markEarly(2 * time.Minute)
	assert.Equal(t, "3 servers, 3 engines: 1 degraded, 1 healthy, 1 not judged", table.Summary(200))
	for i := range table.Rows {
		r := &table.Rows[i]
		assert.Equal(t, map[string]string{"old:1": "healthy", "new:1": "not judged", "bad:1": "degraded"}[r.Address], r.cell(ByCondition, noon))
	}
	table = s.Table(noon.Add(5*time.Minute), false)
	table.markEarly(time.Hour)
	assert.Equal(t, "3 servers, 3 engines: 1 degraded, 2 not judged", table.Summary(200))
}

// The name of a model is whole where it has a column; where it has none, a pool has it beside its other attributes.
func TestTheModelOfAPoolIsNotCut(t *testing.T) {
	const model = "meta-llama/Llama-3.3-70B-Instruct"
	r := judgedAs(Row{Key: "p", Pool: "x", Others: "a-namespace", Model: model}, "healthy", "", 0)
	far := judgedAs(named("inference-"+strings.Repeat("x", 60)), "degraded", strings.Repeat("y", 60), 2)
	wide, narrow := NewLayout(160, []Row{r, far}, noon), NewLayout(80, []Row{r, far}, noon)
	assert.Regexp(t, `^pool a-namespace +`+model+` healthy`, wide.Line(&r, noon))
	assert.Regexp(t, `^….*70B-Instruct +healthy`, narrow.Line(&r, noon))
}
