package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

const deprecationsPage = "docs/reference/deprecations.md"

// deprecation is an entry of "deprecations" in metadata.yaml, whose head explains the keys.
type deprecation struct {
	Kind       string   `yaml:"kind"`
	Name       string   `yaml:"name"`
	Spelled    []string `yaml:"spelled"`
	Label      string   `yaml:"label"`
	Values     []string `yaml:"values"`
	Since      string   `yaml:"since"`
	Gone       string   `yaml:"gone"`
	Promised   bool     `yaml:"promised"`
	ReplacedBy []string `yaml:"replaced_by"`
	Gate       string   `yaml:"gate"`
	Note       string   `yaml:"note"`
}

// kindWords are what the page calls the kinds, in the order of its tables.
var kindWords = []struct{ kind, word string }{
	{"metric", "Metric"},
	{"attribute", "Attribute"},
	{"value", "Value"},
	{"setting", "Setting"},
	{"alert", "Alert"},
	{"record", "Recording rule"},
	{"telemetry", "The collector's own metric"},
	{"family", "Family of another program"},
	{"file", "File"},
	{"code", "Code of `vllmctl`"},
	{"form", "Form"},
}

func wordOf(kind string) string {
	for _, k := range kindWords {
		if k.kind == kind {
			return k.word
		}
	}
	return ""
}

// keptFor is how many minor releases something under the promise works at least after the one that
// calls it deprecated.
const keptFor = 2

// deprecationProblems checks the table against itself and against the metrics.
func (d *document) deprecationProblems() []string {
	var problems []string
	seen := map[string]bool{}
	last := catalog.Release{}
	for _, e := range d.Deprecations {
		bad := func(format string, args ...any) {
			problems = append(problems, e.Name+": "+fmt.Sprintf(format, args...))
		}
		if wordOf(e.Kind) == "" {
			bad("the kind %q is unknown", e.Kind)
		}
		key := fmt.Sprint(e.Kind, e.Name, e.Label, e.Values)
		if e.Name == "" || seen[key] {
			bad("has no name, or is there twice")
		}
		seen[key] = true
		since, ok := catalog.ParseRelease(e.Since)
		if !ok || strings.Count(e.Since, ".") != 2 {
			bad("since must be a release, for example 0.2.0, not %q", e.Since)
		}
		if since.Compare(last) < 0 {
			bad("is older than the entry before it")
		}
		last = since
		if e.Note == "" || (len(e.ReplacedBy) == 0 && !strings.Contains(e.Note, "nothing")) {
			bad("needs a note, and what replaces it or a note that says why nothing does")
		}
		if (e.Kind == "value") != (len(e.Values) > 0) {
			bad("values are for the kind value, which needs them")
		}
		d.checkGone(&e, since, bad)
		if _, exists := d.Metrics[e.Name]; e.Kind == "metric" {
			if exists != (e.Gone == "") {
				bad("a metric that works is in metrics, and one that is gone is not")
			}
			if e.Gone != "" && len(e.Spelled) == 0 {
				bad("a metric that is gone needs spelled, the names that a Prometheus backend has it under")
			}
			for _, name := range e.ReplacedBy {
				if _, known := d.Metrics[name]; !known {
					bad("is replaced by %q, which is no metric", name)
				}
			}
		}
	}
	return problems
}

func (d *document) checkGone(e *deprecation, since catalog.Release, bad func(string, ...any)) {
	if e.Gone == "" {
		return
	}
	gone, ok := catalog.ParseRelease(e.Gone)
	switch {
	case !ok || gone.Compare(since) < 0:
		bad("gone must be a release from %s on, not %q", e.Since, e.Gone)
	case e.Gate != "":
		bad("a gate cannot restore what is gone")
	case e.Promised && gone[0] == since[0] && (gone[0] > 0 || gone[1] < since[1]+keptFor):
		bad("is under the promise: deprecated in %s, it must work in %d minor releases after that one, and from 1.0 on until the next major one",
			e.Since, keptFor)
	}
}

// writeDeprecations writes the table for internal/catalog.
func writeDeprecations(b *bytes.Buffer, d *document) {
	b.WriteString("var deprecations = []Deprecation{\n")
	for _, e := range d.Deprecations {
		fmt.Fprintf(b, "{Kind: %q, Name: %q, Since: %q, ", e.Kind, e.Name, e.Since)
		for _, text := range []struct{ key, value string }{{"Label", e.Label}, {"Gone", e.Gone}, {"Gate", e.Gate}} {
			if text.value != "" {
				fmt.Fprintf(b, "%s: %q, ", text.key, text.value)
			}
		}
		for _, list := range []struct {
			key    string
			values []string
		}{{"Spelled", e.Spelled}, {"Values", e.Values}, {"ReplacedBy", e.ReplacedBy}} {
			if len(list.values) > 0 {
				fmt.Fprintf(b, "%s: %s, ", list.key, stringSlice(list.values))
			}
		}
		if e.Promised {
			b.WriteString("Promised: true, ")
		}
		fmt.Fprintf(b, "Note: %q},\n", e.Note)
	}
	b.WriteString("}\n\n")
}

// deprecationTable is the table of the page: what works for now first, then what is gone, the newest
// release first.
func (d *document) deprecationTable() string {
	var b strings.Builder
	for _, part := range []struct {
		title, none string
		gone        bool
	}{
		{"### Works for now", "Nothing.", false},
		{"### Gone", "Nothing.", true},
	} {
		var entries []deprecation
		for _, e := range slices.Backward(d.Deprecations) {
			if (e.Gone != "") == part.gone {
				entries = append(entries, e)
			}
		}
		fmt.Fprintf(&b, "%s\n\n", part.title)
		if len(entries) == 0 {
			fmt.Fprintf(&b, "%s\n\n", part.none)
			continue
		}
		b.WriteString("| What | Name | Replaced in | Works until | Write instead | Promised | Remark |\n|---|---|---|---|---|---|---|\n")
		for _, e := range entries {
			until := "at least " + e.keptUntil()
			switch {
			case e.Gone != "":
				until = "before " + e.Gone
			case e.Gate != "":
				until = "with `--feature-gates=-" + e.Gate + "`"
			}
			promised := "no"
			if e.Promised {
				promised = "yes"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", wordOf(e.Kind), cell(e.what()), e.Since, until, e.instead(), promised, cell(e.Note))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// keptUntil is the first release that may be without it.
func (e *deprecation) keptUntil() string {
	since, ok := catalog.ParseRelease(e.Since)
	switch {
	case !ok:
		return e.Since
	case since[0] > 0:
		return fmt.Sprintf("%d.0.0", since[0]+1)
	}
	return fmt.Sprintf("0.%d.0", since[1]+keptFor)
}

// instead is what the page says to write.
func (e *deprecation) instead() string {
	if e.Kind == "form" {
		return strings.Join(e.ReplacedBy, ", ")
	}
	return codeList(e.ReplacedBy)
}

// what names the entry on the page.
func (e *deprecation) what() string {
	name := "`" + e.Name + "`"
	if e.Kind == "form" {
		name = e.Name
	}
	switch {
	case e.Label != "":
		return name + ", `" + e.Label + "` " + codeList(e.Values)
	case len(e.Values) > 0:
		return name + ", " + codeList(e.Values)
	}
	return name
}

// deprecatedNotes are what the references of the components say of a metric.
func (d *document) deprecatedNotes(name string) []string {
	var notes []string
	for _, e := range d.Deprecations {
		if e.Kind == "metric" && e.Name == name {
			notes = append(notes, fmt.Sprintf("Deprecated since %s. Use %s. %s", e.Since, codeList(e.ReplacedBy), e.Note))
		}
	}
	return notes
}
