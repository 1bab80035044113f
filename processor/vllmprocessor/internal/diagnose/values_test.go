package diagnose

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// values are those of an engine, by metric and own attributes, joined by spaces.
func (r *rig) values(engine string, rows map[*derive.Row]bool) map[string]float64 {
	r.t.Helper()
	all := map[string]float64{}
	for _, v := range r.state.Values(r.window, rows) {
		require.False(r.t, v.Pending)
		if (&input.Group{Attributes: v.Attributes}).Engine() != engine {
			continue
		}
		name := strings.TrimSpace(strings.TrimPrefix(v.Row.Metric, "vllm.diagnosis.") + " " + strings.Join(v.Extra[:], " "))
		require.NotContains(r.t, all, name)
		all[name] = v.Number
	}
	return all
}

// A condition and a cause that an engine had report 0, so that its end is a number and not a gap.
func TestInactiveSeriesReport0(t *testing.T) {
	t.Parallel()
	rows := map[*derive.Row]bool{engineRows.severity: true, engineRows.condition: true, engineRows.cause: true}
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	assert.Equal(t, map[string]float64{"severity": 0, "condition healthy": 1, "condition unknown": 0}, r.values("0", rows))
	dropping := serves("0")
	dropping.counts[input.Dropped] = 2
	r.minutes(3, answers(1), dropping)
	assert.Equal(t, map[string]float64{
		"severity": 2, "condition healthy": 0, "condition unknown": 0, "condition degraded": 1, "cause requests_dropped primary": 1,
	}, r.values("0", rows))
	well := serves("0")
	well.counts[input.Dropped] = 0
	r.minutes(4, answers(1), well)
	assert.Equal(t, map[string]float64{
		"severity": 0, "condition healthy": 1, "condition degraded": 0, "cause requests_dropped primary": 0,
	}, r.values("0", rows), "unknown ended more than 15 minutes before")
	frozen := rests("0")
	frozen.gauges[input.KVCacheUtilization] = 0.9
	r.minutes(5, answers(1), frozen)
	got := r.values("0", rows)
	assert.Equal(t, 1., got["cause frozen_gauges notice"])
	assert.Equal(t, 1., got["condition idle"])
	assert.Equal(t, 1., got["severity"])
}

// Shares begin with the harm, follow it, and are 0 when it is over. A healthy engine has none,
// and a cause that explains nothing has none either.
func TestSharesAreReportedWhereThereIsOrWasHarm(t *testing.T) {
	t.Parallel()
	rows := map[*derive.Row]bool{engineRows.share: true}
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	assert.Empty(t, r.values("0", rows))
	wrong := serves("0")
	wrong.counts[input.Dropped] = 2
	wrong.labelledCounts[input.RequestSuccess]["error"] = 8
	r.minutes(4, answers(1), wrong)
	got := r.values("0", rows)
	assert.Len(t, got, 2)
	assert.InDelta(t, 1, got["cause_share requests_dropped"]+got["cause_share erroring"], 1e-9)
	assert.InDelta(t, r.engine("0").Shares[Erroring], got["cause_share erroring"], 1e-12)
	assert.Positive(t, got["cause_share erroring"])
	wrong.counts[input.Dropped] = 0
	r.minutes(10, answers(1), wrong)
	got = r.values("0", rows)
	assert.InDelta(t, 1, got["cause_share erroring"], 0.01, "nothing is dropped any more")
	assert.InDelta(t, 0, got["cause_share requests_dropped"], 0.01)
	well := serves("0")
	well.counts[input.Dropped] = 0
	r.minutes(6, answers(1), well)
	require.Equal(t, Healthy, r.verdict("0").Condition)
	assert.Equal(t, map[string]float64{"cause_share requests_dropped": 0, "cause_share erroring": 0}, r.values("0", rows))
	assert.Empty(t, r.values("0", map[*derive.Row]bool{engineRows.ratio: true, engineRows.share: false})["cause_share erroring"])
}

// What does not explain half a percent has no series, and no cause has two.
func TestOnlyWhatCanBeReadAsAShareHasASeries(t *testing.T) {
	t.Parallel()
	e := &engine{saved: saved{Reported: Verdict{Condition: Degraded}}}
	e.Shares = Shares{SlowSteps: 0.9, PrefillHeavy: 0.004, DecodeLoad: 0.006}
	series := func() map[string]float64 {
		all := map[string]float64{}
		for _, v := range e.values(engineRows, map[*derive.Row]bool{engineRows.share: true}, nil) {
			assert.NotContains(t, all, v.Extra[0])
			all[v.Extra[0]] = v.Number
		}
		return all
	}
	e.memory.share(&e.Shares)
	assert.Equal(t, map[string]float64{"slow_steps": 0.9, "decode_load": 0.006}, series())
	e.Shares = Shares{SlowSteps: 0.001, PrefillHeavy: 0.7}
	e.memory.share(&e.Shares)
	assert.Equal(t, map[string]float64{"slow_steps": 0.001, "decode_load": 0, "prefill_heavy": 0.7}, series())
	e.Reported.Condition = Unreachable
	assert.Equal(t, map[string]float64{"slow_steps": 0, "decode_load": 0, "prefill_heavy": 0}, series())
}

// What has ended reports 0 for a while, and then has no series. It gets one again when it is reported again.
func TestWhatEndedLongAgoHasNoSeries(t *testing.T) {
	t.Parallel()
	e := &engine{baseline: learned(10)}
	at := func(minute int, v Verdict) map[string]float64 {
		e.at = int64(minute) * int64(time.Minute)
		e.Reported = v
		e.memory.add(e)
		all := map[string]float64{}
		for _, v := range e.values(engineRows, map[*derive.Row]bool{engineRows.condition: true, engineRows.cause: true}, nil) {
			all[strings.Join(v.Extra[:], " ")] = v.Number
		}
		return all
	}
	well := Verdict{Condition: Healthy}
	slow := Verdict{Condition: Degraded, Severity: 2, Explained: true, Primary: SlowSteps}
	assert.Equal(t, map[string]float64{"healthy  ": 1}, at(1, well))
	assert.Equal(t, map[string]float64{"healthy  ": 0, "degraded  ": 1, "slow_steps primary ": 1}, at(2, slow))
	ended := map[string]float64{"healthy  ": 1, "degraded  ": 0, "slow_steps primary ": 0}
	assert.Equal(t, ended, at(3, well))
	assert.Equal(t, ended, at(18, well), "15 minutes after the end")
	assert.Equal(t, map[string]float64{"healthy  ": 1}, at(19, well))
	assert.Equal(t, map[string]float64{"healthy  ": 0, "degraded  ": 1, "slow_steps primary ": 1}, at(20, slow))
}

// The causes after the primary one are named in the order of their shares.
func TestTheNextCausesAreRanked(t *testing.T) {
	t.Parallel()
	change := Transition{To: Verdict{Condition: Degraded, Severity: 2, Explained: true, Primary: SlowSteps}}
	change.Shares = Shares{DemandExceedsCapacity: 0.13, PrefillHeavy: 0.25, SlowSteps: 0.4, DecodeLoad: 0.11}
	enabled := func(string) bool { return true }
	assert.Contains(t, change.Words("", enabled).Sentence, "Also: prefill_heavy 25 %, demand_exceeds_capacity 13 %.")
	change.To.Explained = false
	assert.Contains(t, change.Words("", enabled).Sentence, "In part: slow_steps 40 %, prefill_heavy 25 %, demand_exceeds_capacity 13 %.")
	change.Shares = Shares{}
	assert.NotContains(t, change.Words("", enabled).Sentence, "%")
}

// Signals are reported where they are enabled and known, and their ratio where what is
// usual is known.
func TestSignalsAreReportedWhereTheyAreEnabled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	slow := serves("0")
	slow.observed[input.TimeToFirstToken] = [2]float64{15, 0.3}
	r.minutes(2, answers(1), slow)
	all := r.values("0", allRows())
	assert.InDelta(t, 0.3, all["signal time_to_first_token_mean"], 1e-9)
	assert.InDelta(t, 3, all["signal_ratio time_to_first_token_mean"], 0.01)
	assert.InDelta(t, 2, all["signal running"], 1e-9)
	assert.NotContains(t, all, "signal kv_transfer_failures", "the server does not report it")
	assert.NotContains(t, all, "signal_ratio queue_wait_estimate", "what is usual is 0")
	only := r.values("0", map[*derive.Row]bool{engineRows.signal: true})
	assert.Contains(t, only, "signal running")
	assert.NotContains(t, only, "signal_ratio running")
	assert.NotContains(t, only, "severity")
	only = r.values("0", map[*derive.Row]bool{engineRows.ratio: true})
	assert.Contains(t, only, "signal_ratio time_to_first_token_mean")
	assert.NotContains(t, only, "signal running")
}

// An operator is informed of a change of the condition, the primary cause, the notices or
// the reason, and of an engine that is seen first only where it is harmed.
func TestNewsIsWhatAnOperatorHasToKnow(t *testing.T) {
	t.Parallel()
	healthy, degraded := Verdict{Condition: Healthy}, Verdict{Condition: Degraded, Severity: 2}
	slow, other := degraded, degraded
	slow.Explained, slow.Primary = true, SlowSteps
	other.Explained, other.Primary = true, DecodeLoad
	contributing := slow
	contributing.Contributing[DecodeLoad] = true
	notice := Verdict{Condition: Healthy, Severity: 1}
	notice.Notices[WorkloadShift] = true
	unseen, farApart := notReported, Verdict{Condition: Unknown, Because: FarApart, Severity: 1}
	for _, test := range []struct {
		from, to  Verdict
		relearned bool
		refined   bool
		want      bool
	}{
		{from: healthy, to: healthy},
		{from: healthy, to: degraded, want: true},
		{from: degraded, to: healthy, want: true},
		{from: degraded, to: slow, want: true},
		{from: slow, to: other, want: true},
		{from: slow, to: contributing},
		{from: healthy, to: notice, want: true},
		{from: notice, to: healthy, want: true},
		{from: unseen, to: healthy},
		{from: unseen, to: degraded, want: true},
		{from: unseen, to: notice, want: true},
		{from: healthy, to: unseen},
		{from: unseen, to: farApart, want: true},
		{from: farApart, to: healthy, want: true},
		{from: healthy, to: healthy, relearned: true, want: true},
		{from: slow, to: slow, refined: true, want: true},
	} {
		transition := Transition{From: test.from, To: test.to, Relearned: test.relearned, Refined: test.refined}
		assert.Equal(t, test.want, transition.News(), "%+v", test)
	}
}

// store is a Keeper in memory.
type store struct {
	baselines map[string][]byte
	diagnoses map[string][]byte
	server    []byte
	ended     int
}

func storeKey(attributes []input.Attribute) string {
	group := input.GroupOf(attributes)
	return group.Key
}

func (s *store) Begin(kind Kept, attributes []input.Attribute) []byte {
	switch kind {
	case Baseline:
		return s.baselines[storeKey(attributes)]
	case Diagnosis:
		return s.diagnoses[storeKey(attributes)]
	default:
		return s.server
	}
}

func (s *store) End(kind Kept, attributes []input.Attribute, data []byte) {
	if kind == Baseline {
		s.ended++
	}
	s.put(kind, attributes, data)
}

func (s *store) put(kind Kept, attributes []input.Attribute, data []byte) {
	switch kind {
	case Baseline:
		s.baselines[storeKey(attributes)] = data
	case Diagnosis:
		s.diagnoses[storeKey(attributes)] = data
	default:
		s.server = data
	}
}

// restartCollector begins with a new state and what was stored of the old one.
func (r *rig) restartCollector(s *store) {
	s.diagnoses, s.server = map[string][]byte{}, nil
	r.state.Learned(s.put)
	r.state.Diagnoses(s.put)
	r.state = &State{Keeper: s}
	r.window = newRig(r.t).window
}

// What was learned is there again after a restart of the collector: the first window is
// compared with it. So is when the server was seen first.
func TestABaselineIsThereAfterARestartOfTheCollector(t *testing.T) {
	t.Parallel()
	s := &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r := newRig(t)
	r.state.Keeper = s
	r.minutes(12, answers(1), serves("0"), serves("1"))
	first := r.engine("0").First
	r.restartCollector(s)
	slow := serves("0")
	slow.observed[input.InterTokenLatency] = [2]float64{1485, 0.06}
	r.minutes(5, answers(1), slow, serves("1"))
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	assert.Equal(t, Learned, r.verdict("0").Reference)
	assert.Equal(t, first, r.engine("0").First)
	assert.Nil(t, r.state.server.restored, "it has been seen what the server has now")

	// An engine that is there no more leaves its baseline in the store, and so does a
	// server that is forgotten.
	delete(s.baselines, storeKey(r.engine("1").attributes))
	s.ended = 0
	r.minutes(1, answers(1), slow)
	assert.Equal(t, 1, s.ended)
	assert.Nil(t, r.engine("1"))
	assert.NotEmpty(t, s.baselines)
	s.server = nil
	r.state.End()
	assert.Equal(t, 2, s.ended)
	_, sound := decodeServer(s.server)
	assert.True(t, sound)
}

// A collector that restarts while a server is down reports its engines as unreachable once
// more, without a second transition into harm, after the hold.
func TestAServerThatIsDownWhileTheCollectorRestartsIsNotNew(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"down before": true, "up before": false} {
		s := &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
		r := newRig(t)
		r.state.Keeper = s
		r.minutes(12, answers(1), serves("0"))
		if down {
			r.minutes(5, answers(0))
			require.Equal(t, Unreachable, r.verdict("0").Condition)
		}
		r.restartCollector(s)
		r.changes = nil
		r.scrape(answers(0))
		want := Healthy // One failed scrape is not a reading: what was reported stays.
		if down {
			want = Unreachable
		}
		assert.Equal(t, want, r.verdict("0").Condition, name)
		r.minutes(3, answers(0))
		assert.Equal(t, Unreachable, r.verdict("0").Condition, name)
		r.minutes(3, answers(1), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition, name)
		assert.Len(t, r.state.engines, 1)
	}
}

// A server that was never read is starting, then unreachable; at once where waiting does
// not mend it.
func TestAServerThatWasNeverReadIsStartingOrCannotBeRead(t *testing.T) {
	t.Parallel()
	failed := func(outcome string) scraped {
		s := answers(0)
		s.labelled = map[input.Metric]map[string]float64{input.ScrapeFailure: {outcome: 1}}
		return s
	}
	for outcome, because := range map[string]Because{
		"unauthorized": Unauthorized, "forbidden": Forbidden, "not_found": NotFound, "dns": NoAddress, "tls": NotTrusted, "plain_http": PlainHTTP,
		"redirect": NoMetrics, "not_prometheus": NoMetrics, "too_large": NoMetrics, "status": NoMetrics,
	} {
		r := newRig(t)
		r.scrape(failed(outcome))
		r.scrape(failed("connection_refused")) // This mends nothing.
		r.scrape(failed(outcome))
		assert.Equal(t, Unknown, r.verdict("").Condition, outcome)
		assert.Equal(t, because, r.verdict("").Because, outcome)
		assert.NotEmpty(t, because.Sentence())
		change := r.scrape(failed(outcome))
		assert.Equal(t, Unreachable, r.verdict("").Condition, outcome)
		require.Len(t, change, 1, outcome)
		assert.Contains(t, change[0].Words("", func(string) bool { return true }).Sentence, because.Sentence())
		assert.Equal(t, outcome, change[0].Failure)
		r.minutes(3, answers(1), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		assert.Nil(t, r.engine(""), "it has engines now")
	}
	r := newRig(t)
	for n := range 60 {
		r.scrape(failed("connection_refused"))
		want := Starting
		if time.Duration(n)*15*time.Second >= r.settings.StartTimeout+time.Minute {
			want = Unreachable
		}
		if age := time.Duration(n) * 15 * time.Second; age < r.settings.StartTimeout || want == Unreachable {
			assert.Equal(t, want, r.verdict("").Condition, age)
		}
	}
	assert.Equal(t, 2, r.verdict("").Severity, "a ticket")
	r = newRig(t)
	change := r.scrape(failed("connection_refused"))
	require.Len(t, change, 1)
	assert.True(t, change[0].News(), "at once")
	assert.Equal(t, 1, change[0].To.Severity)
	assert.Contains(t, change[0].To.Because.Sentence(), "has not answered since it was first seen")
	ready := failed("connection_refused")
	ready.gauges[input.PodReady] = 1
	for range 8 { // two minutes
		r.scrape(ready)
	}
	assert.Equal(t, Unreachable, r.verdict("").Condition, "Kubernetes says that it serves")
	assert.Equal(t, 2, r.verdict("").Severity)
	r.minutes(3, answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	r.minutes(5, answers(0))
	assert.Equal(t, 3, r.verdict("0").Severity, "a server that was read is a page")
	// Three scrapes that fail for another reason end the count.
	r = newRig(t)
	r.scrape(failed("tls"))
	r.scrape(failed("tls"))
	for range 3 {
		r.scrape(failed("timeout"))
	}
	r.scrape(failed("tls"))
	assert.NotEqual(t, Unreachable, r.verdict("").Condition)
}

// The gateway's queue is read on average over the window.
func TestTheQueueOfAGatewayIsReadAsAMean(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 8 {
		gateway := scraped{labelled: map[input.Metric]map[string]float64{input.GatewayQueue: {"0\x00m": float64(2 * (n % 2))}}}
		r.scrape(gateway)
	}
	require.Len(t, r.state.queues, 1)
	assert.InDelta(t, 1, r.state.queues[0].Requests, 1e-9)
	assert.Empty(t, r.state.engines)
}

// A server without a known engine is a member of no pool.
func TestAServerWithoutEnginesHasNoMembers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(20, answers(0))
	require.Equal(t, Unreachable, r.verdict("").Condition)
	for range r.state.Members() {
		assert.Fail(t, "a member")
	}
}

// A member has the reported diagnosis of its engine, and the details of its causes where
// users are harmed.
func TestAMemberIsItsEngineAsItIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	usual := finishes("0")
	usual.counts[input.PrefixCacheHits] = 6000
	r.minutes(12, answers(1), usual)
	slow := finishes("0")
	slow.counts[input.PrefixCacheHits] = 0
	slow.observed[input.TimeToFirstToken] = [2]float64{15, 5}
	slow.observed[input.PrefillTime] = [2]float64{15, 4.9}
	slow.observed[input.InferenceTime] = [2]float64{15, 6.9}
	slow.observed[input.E2ERequestLatency] = [2]float64{15, 7}
	for _, step := range []struct {
		scraped scraped
		detail  string
	}{{usual, ""}, {slow, "reuse_fell"}} {
		r.minutes(8, answers(1), step.scraped)
		n := 0
		for m := range r.state.Members() {
			n++
			assert.Equal(t, *r.verdict("0"), m.Verdict)
			assert.Equal(t, r.engine("0").Shares, m.Shares)
			assert.Equal(t, "0", (&input.Group{Attributes: m.Attributes}).Engine())
			assert.InDelta(t, 2, m.Signals[signal.Running], 1e-9)
			assert.Equal(t, step.detail, m.Details[PrefillHeavy])
			assert.Equal(t, step.detail != "", m.Harmed())
		}
		assert.Equal(t, 1, n)
	}
}
