package lint_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
)

// source is what a comparison is made with; it does something when it is asked.
type source struct{ asked func(name string) }

func (s source) Metric(_ context.Context, name string, _ []string) (*live.Metric, error) {
	s.asked(name)
	return &live.Metric{Labels: map[string][]string{}}, nil
}
func (source) Version() string { return "" }
func (source) Where() string   { return "the source" }
func (source) Stored() bool    { return true }

func panelOf(title, expr string) lint.Input {
	board, _ := json.Marshal(map[string]any{"title": title, "panels": []any{map[string]any{
		"title": title, "type": "timeseries", "targets": []any{map[string]any{"refId": "A", "expr": expr}},
	}}})
	return lint.Input{Name: "board.json", Content: board, Listed: true}
}

func TestAMistakeOfTheProgramEndsTheCheckOfOneFileOnly(t *testing.T) {
	o := lint.Options{Live: source{func(name string) {
		if name == "vllm:num_requests_swapped" {
			panic("a mistake")
		}
	}}}
	report := lint.Check(t.Context(), []lint.Input{panelOf("A", "vllm:num_requests_swapped"), panelOf("B", "rate(vllm:num_requests_waiting[5m])")}, o)
	assert.Contains(t, report.Files[0].Error, "mistake")
	require.Len(t, report.Files[1].Findings, 1, "the findings of the other file are there")
	assert.EqualValues(t, "rate-of-gauge", report.Files[1].Findings[0].Code)
}

// A signal ends the check whatever it does at that moment.
func TestTheEndOfTheContextEndsACheckAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	begin := time.Now()
	report := lint.Check(ctx, []lint.Input{panelOf("A", "vllm:num_requests_waiting")}, lint.Options{Live: source{func(string) {
		cancel()
		<-stuck
	}}})
	assert.Less(t, time.Since(begin), 5*time.Second)
	assert.Contains(t, report.Files[0].Error, "interrupted")
	assert.EqualValues(t, 2, report.Status(false))
}

// Texts of a file are repeated by each finding, so they are short and can be printed.
func TestHostileTextsOfAFileAreNotRepeatedAtLength(t *testing.T) {
	hostile := "\u009b2J\u0085\u202e" + strings.Repeat("A", 60_000)
	var all []string
	for range 50 {
		all = append(all, `vllm:num_requests_runnin{model_name="`+"\u009b2J"+`"}`)
	}
	in := panelOf(hostile, strings.Join(all, " + "))
	kind := lint.Input{Name: "kind.yaml", Listed: true, Content: []byte("apiVersion: v1\nkind: " + strings.Repeat("K", 60_000) + "\nspec: {groups: [{name: g, rules: [{record: a, expr: b}]}]}\n")}
	keys := lint.Input{Name: "keys.yaml", Listed: true, Content: []byte(strings.Repeat("K", 60_000) + ": 1\n")}
	report := lint.Check(t.Context(), []lint.Input{in, kind, keys}, lint.Options{})
	require.Len(t, report.Files[0].Findings, 50)
	var text, document strings.Builder
	require.NoError(t, report.Print(&text, lint.Style{Skipped: true}))
	require.NoError(t, plain.JSON(&document, report))
	assert.Less(t, text.Len(), 40_000)
	assert.Less(t, document.Len(), 60_000)
	for _, forbidden := range []string{"\u009b", "\u0085", "\u202e"} {
		assert.NotContains(t, text.String()+document.String(), forbidden)
	}
}
