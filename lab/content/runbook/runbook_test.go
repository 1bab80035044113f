package runbook

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

const root = "../../.."

// pages returns every page of the folder as it is on disk, by its name without ".md".
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, Folder, "*.md"))
	require.NoError(t, err)
	found := map[string]string{}
	for _, path := range paths {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		found[strings.TrimSuffix(filepath.Base(path), ".md")] = string(page)
	}
	return found
}

// The folder has the index, the page of symptoms, and one page for each alert, condition
// and cause; all generated pages are current.
func TestTheRunbooksAreCurrentAndComplete(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	want := []string{"symptoms"}
	for path, page := range files {
		onDisk, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(onDisk, page), "%s is out of date: run make generate", path)
		want = append(want, strings.TrimSuffix(filepath.Base(path), ".md"))
	}
	var have []string
	for name := range pages(t) {
		have = append(have, name)
	}
	assert.ElementsMatch(t, want, have)
	for _, c := range catalog.Conditions() {
		assert.Contains(t, have, c.Name)
	}
	for _, c := range catalog.Causes() {
		assert.Contains(t, have, c.Name)
	}
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			assert.Contains(t, have, g.Alerts[i].Name)
		}
	}
}

// sections are the same in every runbook, so that who knows one finds the way in all.
var sections = []string{"Check", "Do", "When it is something else"}

var heading = regexp.MustCompile(`(?m)^## (.*)$`)

func TestEveryRunbookHasTheSameSections(t *testing.T) {
	for name, page := range pages(t) {
		if name == "README" || name == "symptoms" || name == "flags" {
			continue
		}
		var found []string
		for _, match := range heading.FindAllStringSubmatch(page, -1) {
			found = append(found, match[1])
		}
		assert.Equal(t, sections, found, name)
		for i, part := range heading.Split(page, -1) {
			assert.Greater(t, len(strings.Fields(part)), 1, "%s: part %d is empty", name, i)
		}
	}
}

// Nothing stands in prose.yaml that no page has.
func TestTheProseIsOfConditionsAndCauses(t *testing.T) {
	proses, err := readProse()
	require.NoError(t, err)
	assert.Len(t, proses, len(catalog.Conditions())+len(catalog.Causes()))
	for name, text := range proses {
		_, condition := catalog.ConditionByName(name)
		_, cause := catalog.CauseByName(name)
		assert.True(t, condition || cause, name)
		assert.NotEmpty(t, text.Mitigation, name)
		for _, part := range append([]string{text.Impact, text.NotConclude, text.CannotFire}, text.Mitigation...) {
			part = strings.TrimSpace(part)
			assert.True(t, strings.HasSuffix(part, ".") || strings.HasSuffix(part, ")."), "%s: %q does not end as a sentence", name, part)
		}
	}
}

// A runbook with an empty part is not written.
func TestAGapInTheProseIsNamed(t *testing.T) {
	complete := prose{Impact: "b", Mitigation: []string{"c"}, NotConclude: "d", CannotFire: "e"}
	require.NoError(t, complete.gap("stalled"))
	for key, change := range map[string]func(p *prose){
		"impact": func(p *prose) { p.Impact = "" }, "mitigation": func(p *prose) { p.Mitigation = nil },
		"not_conclude": func(p *prose) { p.NotConclude = "" }, "cannot_fire": func(p *prose) { p.CannotFire = " " },
	} {
		p := complete
		change(&p)
		assert.EqualError(t, p.gap("stalled"), "prose.yaml: stalled has no "+key+", and its runbook would have an empty part: write it")
	}
}

var (
	quoted = regexp.MustCompile("`([^`\n]*)`")
	fence  = regexp.MustCompile("(?s)```promql\n(.*?)```")
	panel  = regexp.MustCompile(`\*(vllm-[a-z]+: [^*\n]+)\*`)
)

// A name in backticks that looks like a metric is one, and a flag is explained.
func TestNamesInRunbooksExist(t *testing.T) {
	for name, page := range pages(t) {
		prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
		for _, match := range quoted.FindAllStringSubmatch(prose, -1) {
			word := match[1]
			switch {
			case strings.HasPrefix(word, "vllm."), strings.HasPrefix(word, "inference_gateway."):
				_, known := catalog.ByName(word)
				assert.True(t, known, "%s: %s is not a metric", name, word)
			case strings.HasPrefix(word, "--"):
				known := slices.ContainsFunc(catalog.Flags(), func(f catalog.Flag) bool { return f.Name == word })
				assert.True(t, known, "%s: diagnosis.yaml does not explain the flag %s", name, word)
			}
		}
	}
}

// Every query can be pasted: it parses, has names of the catalogue or of recording rules,
// and exists in every spelling.
func TestEveryQueryOfARunbookCanBePasted(t *testing.T) {
	records := map[string]bool{}
	for _, g := range content.Groups() {
		for _, r := range g.Records {
			records[r.Name] = true
		}
	}
	queries := 0
	for name, page := range pages(t) {
		for _, match := range fence.FindAllStringSubmatch(page, -1) {
			queries++
			expression, err := spelling.Parse(match[1])
			if !assert.NoError(t, err, name) {
				continue
			}
			for _, selector := range parser.ExtractSelectors(expression) {
				series := ""
				for _, m := range selector {
					if m.Name == "__name__" {
						series = m.Value
					}
				}
				if series == "ALERTS" { // Prometheus's own, not spelled in other ways
					continue
				}
				metric, _, known := spelling.Metric(series)
				if strings.HasPrefix(name, "VLLM") {
					assert.True(t, known || records[series] || spelling.Foreign(series), "%s: %s is unknown", name, series)
					continue
				}
				if !assert.True(t, known, "%s: %s is not a metric of the catalogue", name, series) {
					continue
				}
				for _, m := range selector {
					if m.Name != "__name__" {
						assert.Contains(t, metric.Attributes, m.Name, "%s: %s", name, match[1])
					}
				}
			}
			for _, to := range spelling.All() {
				_, err := spelling.Expr(match[1], to)
				assert.NoError(t, err, "%s: %s in the spelling %s", name, match[1], to)
			}
		}
	}
	assert.Greater(t, queries, 100)
}

// No command stands in the file for nobody, and none has a key that does nothing.
func TestEveryCommandStandsInARunbook(t *testing.T) {
	decoder := yaml.NewDecoder(bytes.NewReader(commandsFile))
	decoder.KnownFields(true)
	var all []command
	require.NoError(t, decoder.Decode(&all))
	built := pages(t)
	names := []string{""}
	for _, c := range all {
		names = append(names, c.Name)
	}
	for _, c := range all {
		assert.Contains(t, names, c.After)
		block := "   " + strings.ReplaceAll(strings.TrimSpace(c.Run), "\n", "\n   ") + "\n"
		found := 0
		for _, page := range built {
			found += strings.Count(page, block)
		}
		assert.Positive(t, found, "no step has the command %s", c.Name)
	}
}

func TestThePanelsThatRunbooksNameExist(t *testing.T) {
	known := map[string]bool{}
	for _, b := range content.Boards() {
		for _, r := range b.Rows {
			for _, p := range r.Panels {
				known[b.UID+": "+p.Title] = true
			}
		}
	}
	named := 0
	for name, page := range pages(t) {
		for _, match := range panel.FindAllStringSubmatch(page, -1) {
			named++
			assert.True(t, known[match[1]], "%s: there is no panel %q", name, match[1])
		}
	}
	assert.Greater(t, named, 60)
}

// Names become links, and a page says when its alert fires.
func TestNamesInAlertsAreLinks(t *testing.T) {
	groups := []content.Group{{Alerts: []content.Alert{
		{Name: "VLLMNamed", Set: "stable", Meaning: "See `stalled`: it is `VLLMOther`. Not [`idle`](idle.md).", Expr: "vllm_up"},
		{Name: "VLLMPage", Expr: "vllm_up", KeepFiringFor: 90 * time.Second},
		{Name: "VLLMPoolTicket", Expr: "vllm_up", For: time.Hour, Mitigation: []string{"Set `--max-num-seqs`."}},
	}}}
	built, err := files(groups)
	require.NoError(t, err)
	page := func(name string) string { return string(built[path(name)]) }
	assert.Contains(t, page("VLLMNamed"), "See [`stalled`](stalled.md): it is [`VLLMOther`](VLLMOther.md). Not [`idle`](idle.md).")
	assert.Contains(t, page("VLLMNamed"), "Fires immediately ([expression](../../content/rules/suffixed/vllm.yaml)).")
	assert.Contains(t, page("VLLMPage"), "Fires immediately, stays for 1m30s (")
	assert.Contains(t, page("VLLMPoolTicket"), "Fires after 1h (")
	assert.Contains(t, page("VLLMPoolTicket"), "Set [`--max-num-seqs`](flags.md).")
	assert.NotContains(t, page("stalled"), "[`stalled`]", "a page does not link to itself")
	index := page("README")
	assert.Contains(t, index, "- [VLLMNamed](VLLMNamed.md):")
	assert.Less(t, strings.Index(index, "VLLMNamed"), strings.Index(index, "## Conditions"), "alerts are first")
}
