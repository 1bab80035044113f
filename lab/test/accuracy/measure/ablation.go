package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// Ablation is a part of the method that a run leaves out.
type Ablation struct {
	Name, Words string
	leave       func(*vllmprocessor.Config)
}

// ablations are the parts of the method that have a switch, in the order of the page.
var ablations = []Ablation{
	{"fixed_point", "expected step, prefill and queue from rates that a fault does not change", func(c *vllmprocessor.Config) { c.Diagnosis.Without.FixedPoint = true }},
	{"conditional_gates", "changes tested given the work of the window", func(c *vllmprocessor.Config) { c.Diagnosis.Without.ConditionalGates = true }},
	{"lindley", "the backlog that the arrivals alone explain", func(c *vllmprocessor.Config) { c.Diagnosis.Without.Lindley = true }},
	{"sequential", "evidence that adds up over windows", func(c *vllmprocessor.Config) { c.Diagnosis.Without.Sequential = true }},
	{"objectives_sequential", "the same for objectives", func(c *vllmprocessor.Config) { c.Diagnosis.Without.ObjectivesSequential = true }},
	{"slow_reference", "a reference over days beside the baseline", func(c *vllmprocessor.Config) { c.Diagnosis.Without.SlowReference = true }},
	{"peers", "comparison with the other engines of a pool", func(c *vllmprocessor.Config) { c.Diagnosis.Without.Peers = true }},
	{"learning_by_factor", "learning stops only for what may have changed", func(c *vllmprocessor.Config) { c.Diagnosis.Without.LearningByFactor = true }},
	{"floor", "what is broken before there is a baseline", func(c *vllmprocessor.Config) { c.Diagnosis.Without.Floor = true }},
}

// leaveOut leaves a part of the method out of all that is judged from then on; an empty name leaves
// out nothing.
func leaveOut(name string) error {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(ablations, func(a Ablation) bool { return a.Name == name })
	if i < 0 {
		return fmt.Errorf("-without %q is not a part of the method; -ablations prints them", name)
	}
	judge.Adjust = ablations[i].leave
	return nil
}

// journalPath is the journal of a set, and of an ablation if it has a name.
func journalPath(dir, set, ablation string) string {
	if ablation != "" {
		set += "-without-" + ablation
	}
	return filepath.Join(dir, set+".jsonl")
}

// printOf is the fingerprint of the sources, less a part of the method.
func printOf(fingerprint, ablation string) string {
	if ablation != "" {
		fingerprint += " without " + ablation
	}
	return fingerprint
}

// Ablated are the results of a set with the whole method and with each ablation that has
// any, all on the same stories.
type Ablated struct {
	Set  stories.Set
	Full []Record
	// Parts are those of Full in its order; Of are their names.
	Of    []Ablation
	Parts [][]Record
	// Left counts the stories of the whole method that an ablation has not played.
	Left int
}

// readAblations reads the journals of the ablations of each set. Sets without one are left
// out.
func readAblations(dir, fingerprint string) ([]Ablated, error) {
	var out []Ablated
	for _, set := range []stories.Set{stories.HeldOut, stories.Tuning} {
		full, err := present(dir, string(set), "", fingerprint)
		if err != nil {
			return nil, err
		}
		a := Ablated{Set: set, Full: full}
		var found [][]Record
		for _, ablation := range ablations {
			records, err := present(dir, string(set), ablation.Name, fingerprint)
			if err != nil {
				return nil, err
			}
			if len(records) > 0 {
				a.Of, found = append(a.Of, ablation), append(found, records)
			}
		}
		if len(a.Of) == 0 {
			continue
		}
		for _, records := range found {
			a.Full, _, _ = sameStories(a.Full, records)
		}
		for _, records := range found {
			_, same, _ := sameStories(a.Full, records)
			a.Parts = append(a.Parts, same)
		}
		a.Left = len(full) - len(a.Full)
		out = append(out, a)
	}
	return out, nil
}

// present reads the records of a journal that are of these sources; none if there is no
// journal.
func present(dir, set, ablation, fingerprint string) ([]Record, error) {
	journal, err := ReadJournal(journalPath(dir, set, ablation), printOf(fingerprint, ablation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	return journal.Present(), nil
}

// shown are the figures of the table of ablations. Those of warnings have a text of their own.
func shown() (names []string, figures []figure) {
	all := slices.Concat(stories.Inferred, stories.ReadOff)
	add := func(name string, f figure) { names, figures = append(names, name), append(figures, f) }
	add("inferred causes right", macroFigure(stories.Inferred, strong, ofRight))
	add("top two, all causes", macroFigure(all, strong, ofTopTwo))
	add("mild harm reported", pooledFigure(all, mild, ofReported))
	add("warnings, no objectives", warningFigure(moderate(false)))
	add("warnings, objectives", warningFigure(moderate(true)))
	add("delay", delayFigure(triple, rightDelay))
	add("drift reported", reportedFigure(drifting))
	add("pools from the start right", rightFigure(inPool))
	return names, figures
}

// ablated is the table of the ablations of a set.
func (t *table) ablated(a *Ablated) {
	if len(a.Full) == 0 {
		t.line("No story of the set %s was played by the whole method and by every ablation.", a.Set)
		return
	}
	t.line("Stories of the set **%s**: %d that the whole method and every ablation in the table have played; %d others are left out.", a.Set, len(a.Full), a.Left)
	if a.Set == stories.Tuning {
		t.line("The method was worked out on this set, so the values say less than those of the other tables; the differences say what each")
		t.line("part is there for. It has tuned models only.")
	}
	t.line("")
	names, figures := shown()
	t.head(append([]string{"without", "what is left out"}, names...)...)
	full := Scores(a.Full)
	row := func(name, words string, scores []Score) {
		cells := []string{name, words}
		for i := range figures {
			f := &figures[i]
			cell := f.text(f.valueOf(scores))
			if name != "" && cell != "-" {
				cell += ", " + f.differenceText(full, scores)
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	}
	row("", "nothing: the whole method", full)
	for i, of := range a.Of {
		row("`"+of.Name+"`", of.Words, Scores(a.Parts[i]))
	}
	if len(a.Of) < len(ablations) {
		var missing []string
		for _, of := range ablations {
			if !slices.ContainsFunc(a.Of, func(one Ablation) bool { return one.Name == of.Name }) {
				missing = append(missing, "`"+of.Name+"`")
			}
		}
		t.line("\nNot played: %s.", strings.Join(missing, ", "))
	}
}

// printAblations prints the names, for make.
func printAblations() {
	for _, a := range ablations {
		fmt.Fprintln(os.Stdout, a.Name)
	}
}
