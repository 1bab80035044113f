package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Heard is what only a collector says of a row.
type Heard struct {
	// Fitness is what its probes say of the server, and Serve whether they send requests there; of an engine only.
	Fitness string
	Serve   bool
	// DataAt is the time of the newest data of an engine.
	DataAt time.Time
	// New is true of an engine that has just been seen, and of a pool of such ones.
	New bool
	// Engines is how many a pool has.
	Engines int
	// Board is the address of a dashboard; empty without one.
	Board string
	// Words and Evidence take the place of those that are composed from the catalogue; nil where they were not asked for.
	Words    *wording.Words
	Evidence []string
}

// The documents, as the extension's schema has them.
type (
	fleetDocument struct {
		At      time.Time              `json:"at"`
		Suspect bool                   `json:"collector_suspect"`
		Engines fleetList[fleetEngine] `json:"engines"`
		Pools   fleetList[fleetPool]   `json:"pools"`
	}
	fleetDiagnosis struct {
		ID        string    `json:"id"`
		Condition string    `json:"condition"`
		Severity  int       `json:"severity"`
		Cause     string    `json:"cause"`
		Detail    string    `json:"cause_detail"`
		Since     time.Time `json:"since"`
	}
	fleetEngine struct {
		fleetDiagnosis
		Server    string    `json:"server"`
		Address   string    `json:"address"`
		Cluster   string    `json:"cluster"`
		Namespace string    `json:"namespace"`
		Pod       string    `json:"pod"`
		Model     string    `json:"model"`
		Engine    string    `json:"engine"`
		Version   string    `json:"server_version"`
		Fitness   string    `json:"fitness"`
		Serve     bool      `json:"serve"`
		Failure   string    `json:"scrape_failure"`
		New       bool      `json:"new"`
		DataAt    time.Time `json:"data_at"`
		Running   *float64  `json:"running"`
		Waiting   *float64  `json:"waiting"`
		KV        *float64  `json:"kv_cache_utilization"`
		TTFT      *float64  `json:"time_to_first_token_mean_seconds"`
		TTFTUsual *float64  `json:"time_to_first_token_usual_seconds"`
		ITL       *float64  `json:"inter_token_latency_mean_seconds"`
		ITLUsual  *float64  `json:"inter_token_latency_usual_seconds"`
	}
	fleetPool struct {
		fleetDiagnosis
		Name       string            `json:"name"`
		Attributes map[string]string `json:"attributes"`
		Engines    int               `json:"engines"`
	}
	fleetDetail struct {
		Sentence string   `json:"sentence"`
		Next     []string `json:"next"`
		Runbook  string   `json:"runbook"`
		Board    string   `json:"board"`
		Evidence []struct {
			Text string `json:"text"`
		} `json:"evidence"`
		Events []struct {
			At        time.Time `json:"at"`
			Condition string    `json:"condition"`
			Cause     string    `json:"cause"`
		} `json:"events"`
	}
)

// fleetList keeps the first entries of a list, which are the worst, and counts the others: an entry takes a hundred times
// as much memory as the shortest one in a document.
type fleetList[T any] struct {
	list    []T
	leftOut int
}

// mostFleet is how many engines and how many pools of a collector are shown.
const mostFleet = 20_000

func (f *fleetList[T]) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	f.list = make([]T, min(len(all), mostFleet))
	f.leftOut = len(all) - len(f.list)
	for i := range f.list {
		if err := json.Unmarshal(all[i], &f.list[i]); err != nil {
			return err
		}
	}
	return nil
}

// The signals of which the page shows what is usual.
const firstToken, tokenGap = "time_to_first_token_mean", "inter_token_latency_mean"

// table returns the document as a table.
func (d *fleetDocument) table(from string, interval time.Duration) *Table {
	t := &Table{At: d.At, Interval: interval, From: from, Suspect: d.Suspect, LeftOut: d.Engines.leftOut + d.Pools.leftOut, Pools: len(d.Pools.list), Reads: minScrapes, Scrapes: minScrapes}
	engines, unread, undecided := map[string]int{}, map[string]bool{}, 0
	for i := range d.Engines.list {
		r := d.Engines.list[i].row()
		t.Rows = append(t.Rows, r)
		engines[r.ServerKey]++
		if r.Unread != "" {
			unread[r.ServerKey] = true
		}
		if r.Model != "" || r.Engine != "" {
			t.Engines++
		}
		if r.Condition == "unknown" && !r.Heard.New {
			undecided++
		}
	}
	t.Servers, t.Targets, t.Failing = len(engines), len(engines), len(unread)
	for i := range t.Rows {
		t.Rows[i].Several = engines[t.Rows[i].ServerKey] > 1
	}
	for i := range d.Pools.list {
		p := &d.Pools.list[i]
		r := p.row("pools/")
		r.Pool, r.Heard.Engines = cmp.Or(printable(p.Name, maxName), "without a name"), p.Engines
		r.Verdict.Pool, r.Heard.New = r.Pool, undecided == 0
		r.Model, r.Others = modelOf(p.Attributes)
		t.Rows = append(t.Rows, r)
	}
	t.count()
	return t
}

func (d *fleetDiagnosis) row(kind string) Row {
	r := Row{Key: kind + d.ID, Severity: d.Severity, Since: d.Since, Reads: minScrapes, Heard: &Heard{}}
	r.Verdict = verdict.Verdict{Diagnosis: wording.Diagnosis{
		Condition: printable(d.Condition, maxName), Cause: printable(d.Cause, maxName), Detail: printable(d.Detail, maxName),
	}}
	for i := range r.Values {
		r.Values[i] = math.NaN()
	}
	return r
}

func (e *fleetEngine) row() Row {
	r := e.fleetDiagnosis.row("engines/")
	r.Address, r.Namespace, r.Pod = printable(cmp.Or(e.Address, e.Server), maxName), printable(e.Namespace, maxName), printable(e.Pod, maxName)
	r.Model, r.Engine, r.Version = printable(e.Model, maxName), printable(e.Engine, maxName), printable(e.Version, maxName)
	r.ServerKey = strings.Join([]string{e.Cluster, e.Namespace, e.Pod, e.Server, e.Address}, "\x00")
	if e.Failure != "" {
		r.UnreadKind, r.UnreadSince = printable(e.Failure, maxName), e.DataAt
		r.Unread = "the scrape failed: " + r.UnreadKind
		if e.Condition == "unreachable" || e.Condition == "starting" {
			r.UnreadSince = e.Since
		}
	} else if e.Fitness == "old" && !r.Urgent() {
		r.Condition = "unknown" // It was so when the collector last heard of it.
	}
	r.Values[Running], r.Values[Waiting], r.Values[KVCache] = known(e.Running), known(e.Waiting), known(e.KV)
	r.Values[TTFT], r.Values[ITL] = known(e.TTFT), known(e.ITL)
	r.Signals = map[string]verdict.Measure{
		firstToken: {Value: r.Values[TTFT], Usual: known(e.TTFTUsual)},
		tokenGap:   {Value: r.Values[ITL], Usual: known(e.ITLUsual)},
	}
	r.Heard.New = e.New && e.Fitness == "undecided"
	r.Heard.Fitness, r.Heard.Serve, r.Heard.DataAt = printable(e.Fitness, maxName), e.Serve, e.DataAt
	return r
}

func known(value *float64) float64 {
	if value == nil {
		return math.NaN()
	}
	return *value
}

// explain takes the details of a row.
func (r *Row) explain(d *fleetDetail) {
	text := func(of string) string { return strings.ReplaceAll(printable(of, maxReason), "`", "") }
	words := r.Words() // It also has what looks alike.
	words.Sentence, words.Next, words.Runbook = cmp.Or(text(d.Sentence), words.Sentence), nil, text(d.Runbook)
	for _, step := range d.Next {
		words.Next = append(words.Next, text(step))
	}
	r.Heard.Words, r.Heard.Board, r.Heard.Evidence = &words, text(d.Board), []string{}
	for _, e := range d.Evidence {
		r.Heard.Evidence = append(r.Heard.Evidence, text(e.Text))
	}
	r.Details = &Details{}
	for _, e := range slices.Backward(d.Events) {
		r.Details.History = append(r.Details.History, Transition{At: e.At, Condition: printable(e.Condition, maxName), Cause: printable(e.Cause, maxName)})
	}
}

// said are the words and the evidence of a row: those of a collector where it gave them.
func (r *Row) said() (words wording.Words, evidence []string) {
	if r.Heard != nil && r.Heard.Words != nil {
		return *r.Heard.Words, r.Heard.Evidence
	}
	words = r.Words()
	if r.Details != nil {
		words.Sentence = cmp.Or(r.Details.Sentence, words.Sentence)
	}
	return words, r.Evidence()
}

// heard are the numbers that a collector gives.
func (r *Row) heard() []string {
	if r.Pool != "" {
		return nil
	}
	n := func(field Field, factor float64) string { return show(r.Values[field]*factor, "%.0f", 12) }
	mean := func(field Field, signal string) string {
		return Milliseconds(r.Values[field]) + ", usual " + Milliseconds(r.Signals[signal].Usual)
	}
	requests := "get requests"
	if !r.Heard.Serve {
		requests = "get no requests"
	}
	return []string{
		"requests: " + n(Running, 1) + " running, " + n(Waiting, 1) + " waiting; KV cache: " + n(KVCache, 100) + " % in use",
		"mean time to the first token: " + mean(TTFT, firstToken),
		"mean time between tokens: " + mean(ITL, tokenGap),
		fmt.Sprintf("probes: %s, it should %s; newest data at %s", r.Heard.Fitness, requests, r.Heard.DataAt.Local().Format(time.TimeOnly)),
	}
}
