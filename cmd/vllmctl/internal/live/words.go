package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// narrow is below which width the summary has only the conditions.
const narrow = 48

// Summary is one line about the whole, made of parts until the width is used up: what runs
// and in which conditions.
func (t *Table) Summary(width int) string {
	whole := plural(t.Servers, "server") + ", " + plural(t.Engines, "engine")
	if t.Pools > 0 {
		whole += ", " + plural(t.Pools, "pool")
	}
	line, separator := "", ""
	if width >= narrow || len(t.Conditions) == 0 {
		line, separator = whole, ": "
	}
	for _, c := range t.Conditions {
		part := fmt.Sprintf("%s%d %s", separator, c.Engines, c.Condition)
		if uniseg.StringWidth(line+part) >= width {
			return line + "…"
		}
		line, separator = line+part, ", "
	}
	return line
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Remark is the one sentence that a reader of the table has to know now; empty for none.
func (t *Table) Remark() string {
	switch {
	case t.Trouble != "":
		return "This is old: the collector does not answer. Key l shows why."
	case t.From != "" && t.Servers == 0:
		return "The collector knows no server yet."
	case t.Suspect:
		return "Most servers cannot be read: perhaps the collector has lost its network."
	case t.Servers == 0 && t.Targets == 0:
		return "No server has been found yet. Key l shows what discovery reports."
	case t.Servers == 0:
		return "The first scrape is under way."
	case t.LeftOut > 0 && t.From != "":
		return fmt.Sprintf("%d more engines or pools are not shown: the limit is %d.", t.LeftOut, mostFleet)
	case t.LeftOut > 0:
		return fmt.Sprintf("%d more engines or servers are not shown: the limit is %d, and %d for one server. Watch fewer servers.",
			t.LeftOut, MaxRows, maxEngines)
	case t.Failing == t.Servers:
		return "No server can be read. Enter shows why."
	case t.Reads < minScrapes:
		return "Rates and latencies need two scrapes; the second comes within " + t.Interval.String() + "."
	case t.Failing > 0:
		return plural(t.Failing, "server") + " cannot be read. Enter shows why."
	}
	switch n, early := t.notJudged(); {
	case n > early:
		return fmt.Sprintf("%d of %s cannot be judged: engine or metrics are missing. Such a row shows what is known.",
			n-early, plural(len(t.Rows), "row"))
	case early > 0:
		return fmt.Sprintf("%d of %s cannot be judged yet: that takes two scrapes with traffic.", early, plural(len(t.Rows), "row"))
	}
	return ""
}

// Learning says what the judgement rests on.
func (t *Table) Learning() string {
	if t.From != "" {
		return "The collector at " + t.From + " says this; means are over the window of its processor."
	}
	return fmt.Sprintf("Rates and means cover the last %s. Usual values are learned in this session, from five windows with traffic.", t.Window)
}

// Paragraph is a part of the page of an engine. Each text is a paragraph of its own.
type Paragraph struct {
	Head  string
	Texts []string
}

// Page is what is known of one engine, pool or server.
func (r *Row) Page(at time.Time) []Paragraph {
	var page []Paragraph
	add := func(head string, texts ...string) {
		var left []string
		for _, text := range texts {
			if text != "" {
				left = append(left, text)
			}
		}
		if len(left) > 0 {
			page = append(page, Paragraph{head, left})
		}
	}
	since := func(from time.Time) string {
		text := "since " + from.Local().Format(time.TimeOnly) + ", for " + Age(at.Sub(from))
		if r.Heard == nil {
			text += " in this session"
		}
		return text
	}
	state := cmp.Or(r.Condition, "no condition is reported")
	if r.Condition != "" {
		state += fmt.Sprintf(" (severity %d) ", r.Severity) + since(r.Since)
	}
	add("condition", state)
	if r.Unread != "" {
		add("not read", r.Unread, since(r.UnreadSince))
	}
	if r.Condition != "" {
		words, evidence := r.said()
		add("found", words.Sentence)
		cause := r.Cause
		if r.Detail != "" {
			cause += ", " + r.Detail
		}
		add("cause", cause)
		if words.NotSeparable != "" {
			add("looks alike", words.NotSeparable)
		}
		add("evidence", evidence...)
		add("next", words.Next...)
		add("runbook", words.Runbook)
	}
	add("server", r.server()...)
	if r.Heard != nil {
		add("dashboard", r.Heard.Board)
		add("now", r.heard()...)
	} else {
		add("now", r.numbers()...)
	}
	if r.Details != nil {
		if r.Heard == nil {
			add("latencies", r.latencies()...)
		}
		add("changes", r.changes()...)
		add("defects", r.defects()...)
	}
	return page
}

// server is what the server says of itself.
func (r *Row) server() (texts []string) {
	if r.Pool != "" && r.Heard != nil {
		return []string{"pool " + r.Pool + ", " + plural(r.Heard.Engines, "engine")}
	}
	if r.Pool != "" {
		return []string{"pool " + r.Pool + ", " + plural(r.Replicas, "server")}
	}
	address := r.Address
	if r.Namespace != "" || r.Pod != "" {
		address += " (" + strings.Trim(r.Namespace+"/"+r.Pod, "/") + ")"
	}
	texts = append(texts, address)
	if r.Model != "" {
		texts = append(texts, "model "+r.Model)
	}
	if r.Engine != "" {
		texts = append(texts, "engine "+r.Engine)
	}
	if r.Kind != "" {
		texts = append(texts, "kind "+r.Kind)
	}
	if r.Version != "" {
		texts = append(texts, "vLLM "+r.Version)
	} else if r.Reads > 0 {
		texts = append(texts, "the server does not report its version")
	}
	return texts
}

// numbers are the numbers of the row with their names.
func (r *Row) numbers() []string {
	n := func(field Field, factor float64, format string) string {
		return show(r.Values[field]*factor, format, 12)
	}
	return []string{
		"requests: " + n(Running, 1, "%.0f") + " running, " + n(Waiting, 1, "%.0f") + " waiting, " +
			n(Arrivals, 1, "%.2f") + " arrive and " + n(Requests, 1, "%.2f") + " end per s",
		"KV cache: " + n(KVCache, 100, "%.1f") + " % in use; prefix cache: " + n(Hits, 100, "%.1f") + " % found",
		"tokens per s: " + n(Tokens, 1, "%.0f") + " generated, " + n(Prompts, 1, "%.0f") + " of prompts",
		"HTTP responses with a status 5xx, of the server: " + n(Errors, 100, "%.2f") + " %",
	}
}

// latencies are a line for each latency.
func (r *Row) latencies() (texts []string) {
	for _, l := range []struct {
		name    string
		mean    Field
		latency Latency
	}{{"time to first token", TTFT, QuantilesTTFT}, {"between tokens", ITL, QuantilesITL}, {"whole request", E2E, QuantilesE2E}} {
		text := l.name + ": "
		quantiles := r.Details.Quantiles[l.latency]
		if mean := r.Values[l.mean]; len(quantiles) == 0 && math.IsNaN(mean) {
			texts = append(texts, text+"-, no request in the window")
			continue
		}
		parts := []string{"mean " + Milliseconds(r.Values[l.mean])}
		for _, q := range quantiles {
			parts = append(parts, fmt.Sprintf("p%g %s", 100*q.Quantile, Milliseconds(q.Seconds)))
		}
		texts = append(texts, text+strings.Join(parts, ", "))
	}
	return append(texts, "in the queue: mean "+Milliseconds(r.Values[Queue]))
}

// Milliseconds writes seconds as milliseconds with three digits.
func Milliseconds(seconds float64) string {
	switch ms := 1000 * seconds; {
	case math.IsNaN(ms):
		return "-"
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.3g ms", ms)
	}
}

// changes are the changes in this session, the newest first.
func (r *Row) changes() (texts []string) {
	for _, c := range slices.Backward(r.Details.History) {
		text := c.At.Local().Format(time.TimeOnly) + " " + c.Condition
		if c.Cause != "" {
			text += ": " + c.Cause
		}
		if c.Detail != "" {
			text += ", " + c.Detail
		}
		texts = append(texts, text)
	}
	return texts
}

// defects are what is known to be wrong in the server's own metrics.
func (r *Row) defects() (texts []string) {
	if sure := r.Details.Defects.Sure; len(sure) > 0 {
		texts = append(texts, "metrics of this version are affected by "+strings.Join(sure, ", "))
	}
	if possible := r.Details.Defects.Possible; len(possible) > 0 {
		texts = append(texts, "with some models, requests or deployments also by "+strings.Join(possible, ", "))
	}
	if texts != nil {
		texts = append(texts, "the processor corrects or withholds these values; see docs/what-vllm-gets-wrong.md")
	}
	return texts
}
