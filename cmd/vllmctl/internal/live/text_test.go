package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// named returns a healthy row of a server.
func named(address string) Row {
	r := Row{Key: address, ServerKey: address, Address: address, Model: "llama", Reads: 5, Since: noon}
	r.Condition = "healthy"
	for i := range r.Values {
		r.Values[i] = math.NaN()
	}
	return r
}

func judgedAs(r Row, condition, cause string, severity int) Row {
	r.Verdict = verdict.Verdict{Diagnosis: wording.Diagnosis{Condition: condition, Cause: cause}}
	r.Severity = severity
	return r
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aZ9-./模型例え한국어é\u0301😀👩‍🚀")
	word := func() string {
		var b strings.Builder
		for range random.IntN(60) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	for range 50 {
		var all []Row
		for range 1 + random.IntN(5) {
			r := named(word())
			r.Model, r.Pod, r.Cause = word(), word(), word()
			for i := range r.Values {
				r.Values[i] = math.Exp(40*random.Float64() - 10)
			}
			all = append(all, r)
		}
		for width := 1; width < 220; width++ {
			layout := NewLayout(width, all, noon.Add(time.Hour))
			assert.LessOrEqual(t, uniseg.StringWidth(layout.Head(Order{By: ByTTFT})), width)
			for i := range all {
				line := layout.Line(&all[i], noon.Add(time.Hour))
				require.LessOrEqual(t, uniseg.StringWidth(line), width, line)
				require.NotContains(t, line, "\n")
			}
		}
	}
}

func TestColumnsLineUp(t *testing.T) {
	long := judgedAs(named("模型-0:8000"), "degraded", "demand_exceeds_capacity", 2)
	long.Values[Waiting], long.Values[TTFT] = 12, 1.5
	all := []Row{named("a:1"), long}
	layout := NewLayout(80, all, noon)
	head := layout.Head(Order{})
	end := strings.Index(head, "WAIT") + len("WAIT")
	line := layout.Line(&long, noon)
	var before strings.Builder
	for g := uniseg.NewGraphemes(line); g.Next() && uniseg.StringWidth(before.String()) < end; {
		before.WriteString(g.Str())
	}
	assert.True(t, strings.HasSuffix(before.String(), "  12"), "%q\n%q", head, line)
	assert.Contains(t, line, "demand_exceeds_capa", "the cause matters more than rates at 80 columns")
	assert.Contains(t, line, " 1500 ")
}

func TestWhatNarrowScreensKeep(t *testing.T) {
	all := []Row{judgedAs(named("vllm-0:8000"), "degraded", "slow_steps", 2)}
	for width, want := range map[int]string{
		40:  "SERVER CONDITION CAUSE",
		80:  "SERVER CONDITION CAUSE FOR RUN WAIT KV% TTFT ITL TOK/S",
		160: "SERVER MODEL CONDITION CAUSE FOR RUN WAIT KV% TTFT ITL TOK/S REQ/S 5XX%",
	} {
		layout := NewLayout(width, all, noon)
		assert.Equal(t, want, strings.Join(strings.Fields(layout.Head(Order{})), " "), width)
	}
	layout := NewLayout(80, all, noon)
	assert.Contains(t, layout.Head(Order{By: ByTTFT}), "TTFT↓")
	assert.Contains(t, layout.Head(Order{By: ByTTFT, Reverse: true}), "TTFT↑")
}

func TestEnginesOfOneServerCanBeToldApartOnEveryScreen(t *testing.T) {
	for _, name := range []string{"127.0.2.1:28310", "chat-production-vllm-7d9c6b4f-x2x9k", "模型服务器-生产环境-0"} {
		one, two := named(name), named(name)
		one.Engine, two.Engine, one.Several, two.Several = "0", "1", true, true
		for width := 30; width < 200; width += 7 {
			layout := NewLayout(width, []Row{one, two}, noon)
			assert.NotEqual(t, layout.Line(&one, noon), layout.Line(&two, noon), width)
			assert.Contains(t, layout.Line(&two, noon), " #1 ")
		}
	}
}

func TestNumbersFitTheirColumns(t *testing.T) {
	for _, c := range []struct {
		value  float64
		format string
		width  int
		want   string
	}{
		{math.NaN(), "%.0f", 4, "-"},
		{math.Inf(1), "%.0f", 4, "-"},
		{0, "%.0f", 4, "0"},
		{12.34, "%.1f", 5, "12.3"},
		{123456, "%.1f", 5, "123k"},
		{12345.6, "%.0f", 5, "12346"},
		{1234567, "%.0f", 6, "1235k"},
		{1234567, "%.0f", 4, "1.2M"},
		{1e18, "%.0f", 4, ">1P"},
	} {
		assert.Equal(t, c.want, show(c.value, c.format, c.width), "%v", c)
		assert.LessOrEqual(t, len(c.want), c.width)
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 99 * time.Second: "99s", 99900 * time.Millisecond: "100s", 5 * time.Minute: "5m", 3 * time.Hour: "3h", 240 * time.Hour: "10d",
	} {
		assert.Equal(t, want, Age(d))
		assert.LessOrEqual(t, len(want), 4)
	}
}

func TestTheWorstIsFirst(t *testing.T) {
	unread := judgedAs(named("unread:1"), "unknown", "", 1)
	unread.Unread = "connection refused"
	all := []Row{
		judgedAs(named("b:1"), "healthy", "", 0), judgedAs(named("a:1"), "healthy", "", 0), judgedAs(named("idle:1"), "idle", "", 0),
		judgedAs(named("unknown:1"), "unknown", "", 1), unread, judgedAs(named("degraded:1"), "degraded", "slow_steps", 2),
		judgedAs(named("stalled:1"), "stalled", "", 3), judgedAs(named("unreachable:1"), "unreachable", "", 3),
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	Sort(all, Order{})
	var names []string
	for _, r := range all {
		names = append(names, strings.TrimSuffix(r.Address, ":1"))
	}
	assert.Equal(t, []string{"unreachable", "stalled", "degraded", "unread", "unknown", "idle", "a", "b"}, names)
}

// Whatever is sorted by, the order is total, and what is not known is last in both directions.
func TestEveryOrderIsTotalAndPutsUnknownsLast(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var all []Row
	for i := range 60 {
		r := judgedAs(named(fmt.Sprintf("s%d:1", random.IntN(20))), []string{"healthy", "degraded", "idle", "from_the_future"}[i%4],
			[]string{"", "slow_steps", "kv_pressure"}[i%3], i%4)
		r.Key, r.Engine, r.Model = fmt.Sprint(i), fmt.Sprint(random.IntN(12)), []string{"x", "y"}[i%2]
		if i%5 > 0 {
			for f := range r.Values {
				r.Values[f] = float64(random.IntN(4))
			}
			r.Since = noon.Add(time.Duration(random.IntN(9)) * time.Second)
		} else {
			r.Since = time.Time{}
		}
		all = append(all, r)
	}
	for _, by := range Columns() {
		for _, reverse := range []bool{false, true} {
			order := Order{by, reverse}
			one, two := slices.Clone(all), slices.Clone(all)
			rand.Shuffle(len(two), func(i, j int) { two[i], two[j] = two[j], two[i] })
			Sort(one, order)
			Sort(two, order)
			for i := range one {
				require.Equal(t, one[i].Key, two[i].Key, "%s: the order before must not matter", by.Name())
			}
			if by < ByRunning {
				continue
			}
			field := columns[by].field
			for i := 1; i < len(one); i++ {
				before, after := one[i-1].Values[field], one[i].Values[field]
				switch {
				case math.IsNaN(after):
				case math.IsNaN(before):
					require.Fail(t, "unknown before known", by.Name())
				case reverse:
					require.LessOrEqual(t, before, after)
				default:
					require.GreaterOrEqual(t, before, after)
				}
			}
		}
	}
}

func TestEnginesAreOrderedByNumber(t *testing.T) {
	var all []Row
	for _, engine := range []string{"10", "9", "0", "2"} {
		r := named("a:1")
		r.Key, r.Engine, r.Several = engine, engine, true
		all = append(all, r)
	}
	Sort(all, Order{By: ByServer})
	assert.Equal(t, "a:1 #0 a:1 #2 a:1 #9 a:1 #10", all[0].Name()+" "+all[1].Name()+" "+all[2].Name()+" "+all[3].Name())
}

func TestTheFilterLooksAtWhatIsShown(t *testing.T) {
	slow := judgedAs(named("b:1"), "degraded", "slow_steps", 2)
	slow.Pod, slow.Namespace, slow.Model = "chat-7", "prod", "Mixtral"
	all := []Row{named("a:1"), slow}
	for text, want := range map[string]int{"": 2, "  ": 2, "SLOW": 1, "mixtral": 1, "prod": 1, "b:1": 1, "chat-7": 1, "a": 2, "healthy": 1, "zzz": 0} {
		assert.Len(t, Filter(all, text), want, text)
	}
}

func TestRemarksSayWhatMattersMost(t *testing.T) {
	for want, table := range map[string]Table{
		"No server has been found yet.":    {},
		"The first scrape is under way.":   {Targets: 1},
		"No server can be read.":           {Targets: 1, Servers: 1, Failing: 1},
		"Rates and latencies need two scr": {Targets: 1, Servers: 1, Reads: 1, Interval: time.Second},
		"1 server cannot be read.":         {Targets: 2, Servers: 2, Failing: 1, Reads: 2},
		"5 more engines or servers are":    {Targets: 2, Servers: 2, Failing: 1, Reads: 2, LeftOut: 5},
	} {
		assert.Contains(t, table.Remark(), want)
	}
	healthy := Table{Targets: 1, Servers: 1, Reads: 2, Rows: []Row{named("a:1")}}
	assert.Empty(t, healthy.Remark())
	healthy.Rows = append(healthy.Rows, judgedAs(named("b:1"), "unknown", "", 1), judgedAs(named("c:1"), "", "", 0))
	assert.Contains(t, healthy.Remark(), "2 of 3 rows cannot be judged")
}

func TestTheSummaryFits(t *testing.T) {
	table := Table{Servers: 1, Engines: 3, Pools: 2, Conditions: []Count{{"unreachable", 1}, {"degraded", 2}}}
	assert.Equal(t, "1 server, 3 engines, 2 pools: 1 unreachable, 2 degraded", table.Summary(80))
	assert.Equal(t, "1 unreachable, 2 degraded", table.Summary(40), "a narrow screen has what is wrong")
	for width := range 80 {
		if width > 20 {
			assert.LessOrEqual(t, uniseg.StringWidth(table.Summary(width)), width)
		}
	}
}

func TestTheExitStatus(t *testing.T) {
	unread := named("b:1")
	unread.Unread = "connection refused"
	for name, c := range map[string]struct {
		table Table
		want  status.Status
	}{
		"nothing was scraped": {Table{}, status.Failed},
		"nothing can be read": {Table{Servers: 2, Failing: 2, Rows: []Row{judgedAs(unread, "unreachable", "", 3)}}, status.Failed},
		"one cannot be read":  {Table{Servers: 2, Failing: 1, Rows: []Row{named("a:1"), judgedAs(unread, "starting", "", 0)}}, status.Problem},
		"degraded":            {Table{Servers: 1, Rows: []Row{judgedAs(named("a:1"), "degraded", "", 2)}}, status.Problem},
		"nothing is judged":   {Table{Servers: 2, Rows: []Row{judgedAs(named("a:1"), "unknown", "", 1), judgedAs(named("b:1"), "", "", 0)}}, status.Failed},
		"one is not judged":   {Table{Servers: 2, Rows: []Row{judgedAs(named("a:1"), "unknown", "", 1), named("c:1")}}, status.OK},
		"well":                {Table{Servers: 1, Rows: []Row{named("a:1")}}, status.OK},
	} {
		assert.Equal(t, c.want, c.table.Status(), name)
	}
}

func TestThePlainTableHasNoControlSequencesAndExplainsWhatIsUrgent(t *testing.T) {
	slow := judgedAs(named("slow:1"), "degraded", "slow_steps", 2)
	slow.Signals = map[string]verdict.Measure{"step_time_factor": {Value: 3, Usual: 1}}
	unread := judgedAs(named("unread:1"), "unknown", "", 1)
	unread.Unread, unread.UnreadSince = "connection refused: nothing listens", noon
	table := &Table{
		At: noon.Add(time.Minute), Servers: 3, Failing: 1, Engines: 3, Reads: 2, Window: 15 * time.Second,
		Conditions: []Count{{"degraded", 1}, {"unknown", 1}, {"healthy", 1}}, Rows: []Row{named("well:1"), unread, slow},
	}
	var out bytes.Buffer
	require.NoError(t, table.WritePlain(&out, 100))
	text := out.String()
	for _, r := range text {
		assert.True(t, r == '\n' || r >= ' ', "%q", r)
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "https://") {
			assert.LessOrEqual(t, uniseg.StringWidth(strings.TrimSuffix(line, "\n")), 100, line)
		}
	}
	assert.Less(t, strings.Index(text, "slow:1"), strings.Index(text, "unread:1"))
	for _, want := range []string{
		"3 servers, 3 engines: 1 degraded, 1 unknown, 1 healthy\n", "cannot be read. The reasons are below.",
		"evidence: step_time_factor 3 (usual 1)\n", "not read: connection refused: nothing listens\n", "runbooks/slow_steps.md", "last 15s",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "\nwell:1  healthy\n", "what is well is not explained")

	for i := range 40 {
		r := slow
		r.Key = fmt.Sprint(i)
		table.Rows = append(table.Rows, r)
	}
	out.Reset()
	require.NoError(t, table.WritePlain(&out, 100))
	assert.Equal(t, MostExplained, strings.Count(out.String(), "\n  found:")+strings.Count(out.String(), "\n  not read:"))
	assert.Contains(t, out.String(), "22 more need action; --json explains all")
}

func TestADocumentHasNoNumberThatIsNotKnown(t *testing.T) {
	r := judgedAs(named("a:1"), "degraded", "slow_steps", 2)
	r.Values[Running], r.Values[TTFT], r.Values[ITL] = 0, math.NaN(), math.Inf(1)
	r.Also, r.Notices = []wording.Share{{Cause: "decode_load", Share: 0.25}}, []string{"workload_shift"}
	r.Signals = map[string]verdict.Measure{"running": {Value: 3, Usual: math.NaN()}, "waiting": {Value: math.NaN()}}
	r.Details = &Details{
		Sentence: "More precise.", Defects: Defects{Sure: []string{"x"}},
		Quantiles: [numLatencies][]Quantile{{{0.95, 1.5}, {0.99, math.Inf(1)}}},
	}
	pool := judgedAs(Row{Key: "p", Pool: "chat", Replicas: 2}, "healthy", "", 0)
	unread := named("b:1")
	unread.Unread, unread.UnreadKind, unread.UnreadSince = "no", "refused", noon
	table := &Table{At: noon, Interval: 5 * time.Second, Window: 15 * time.Second, Rows: []Row{pool, unread, r}}
	text, err := json.Marshal(table.Document())
	require.NoError(t, err)
	var d map[string]any
	require.NoError(t, json.Unmarshal(text, &d))
	assert.InDelta(t, 1, d["version"], 0)
	assert.InDelta(t, 15, d["window_seconds"], 0)
	assert.Len(t, d["pools"], 1)
	engines := d["engines"].([]any)
	require.Len(t, engines, 2)
	worst := engines[0].(map[string]any)
	assert.Equal(t, "degraded", worst["condition"])
	assert.InDelta(t, 0, worst["running"], 0, "0 is known")
	assert.NotContains(t, worst, "time_to_first_token_mean_seconds")
	assert.NotContains(t, worst, "inter_token_latency_mean_seconds")
	assert.Equal(t, "More precise.", worst["sentence"])
	assert.Len(t, worst["time_to_first_token_quantiles"], 1)
	assert.Equal(t, map[string]any{"running": map[string]any{"value": 3.0}}, worst["signals"])
	assert.Equal(t, []any{map[string]any{"cause": "decode_load", "share": 0.25}}, worst["contributing"])
	servers := d["servers"].([]any)
	require.Len(t, servers, 2)
	assert.Equal(t, map[string]any{"kind": "refused", "reason": "no", "since": "2026-01-02T12:00:00Z"}, servers[1].(map[string]any)["failure"])
	assert.Equal(t, true, servers[0].(map[string]any)["readable"])

	text, err = json.Marshal((&Table{At: noon}).Document())
	require.NoError(t, err)
	assert.Contains(t, string(text), `"engines":[]`, "an empty list and not null")
}

func TestThePageOfAnEngineHasEverything(t *testing.T) {
	r := judgedAs(named("a:1"), "degraded", "slow_steps", 2)
	r.Version, r.Engine, r.Detail = "0.20.0", "3", "since_version"
	r.Values[TTFT], r.Values[Running] = 0.0421, 7
	r.Signals = map[string]verdict.Measure{"step_time_factor": {Value: 3, Usual: 1}}
	r.Details = &Details{
		Quantiles: [numLatencies][]Quantile{{{0.5, 0.04}, {0.95, 0.9}, {0.99, 2}}},
		History:   []Transition{{noon, "healthy", "", ""}, {noon.Add(time.Minute), "degraded", "slow_steps", "since_version"}},
		Defects:   Defects{Sure: []string{"gauges-trail-steps"}, Possible: []string{"ray-last-engine"}},
	}
	var text strings.Builder
	for _, p := range r.Page(noon.Add(2 * time.Minute)) {
		text.WriteString(p.Head + ": " + strings.Join(p.Texts, "\n") + "\n")
	}
	for _, want := range []string{
		"condition: degraded (severity 2) since ", "for 2m in this session", "found: Users wait longer", "cause: slow_steps, since_version",
		"evidence: step_time_factor 3 (usual 1)", "next: ", "runbook: https://", "engine 3", "vLLM 0.20.0", "7 running",
		"time to first token: mean 42.1 ms, p50 40 ms, p95 900 ms, p99 2000 ms", "between tokens: -, no request in the window",
		"degraded: slow_steps, since_version", "gauges-trail-steps", "ray-last-engine",
	} {
		assert.Contains(t, text.String(), want)
	}
	assert.Less(t, strings.Index(text.String(), "degraded: slow_steps"), strings.LastIndex(text.String(), " healthy"), "the newest change first")
}

func TestWordsAreWrappedAndLongOnesStayWhole(t *testing.T) {
	assert.Equal(t, []string{"one two", "three", "verylongword", "x"}, Wrap("one  two\nthree verylongword x", 8))
	assert.Equal(t, []string{""}, Wrap("", 8))
}

func TestTheLogIsARingOfPrintableLines(t *testing.T) {
	log := NewLog()
	for i := range maxLines + 5 {
		log.Logger().Info(fmt.Sprintf("line %d \x1b[2J", i))
	}
	log.Logger().Debug("not shown")
	lines := log.Lines()
	require.Len(t, lines, maxLines)
	assert.Equal(t, "line 5 ?[2J", lines[0].Message)
	assert.Equal(t, fmt.Sprintf("line %d ?[2J", maxLines+4), lines[maxLines-1].Message)
	log.Logger().Warn(strings.Repeat("x", 1<<20))
	assert.LessOrEqual(t, len(log.Lines()[maxLines-1].Message), maxLineText)
}
