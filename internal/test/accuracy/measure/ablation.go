package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/accuracy/stories"
)

// Ablation is a part of the method that a build of measure leaves out.
type Ablation struct{ Name, Words string }

// ablations are the parts of package diagnose, in its order (ablation.go there).
var ablations = []Ablation{
	{"fixed_point", "expected step, prefill and queue from rates that a fault does not change"},
	{"conditional_gates", "changes tested given the work of the window"},
	{"lindley", "the backlog that the arrivals alone explain"},
	{"sequential", "evidence that adds up over windows"},
	{"objectives_sequential", "the same for objectives"},
	{"slow_reference", "a reference over days beside the baseline"},
	{"peers", "comparison with the other engines of a pool"},
	{"learning_by_factor", "learning stops only for what may have changed"},
	{"floor", "what is broken before there is a baseline"},
}

// linked is what the linker sets in a build that leaves out a part.
const linked = "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose.without"

// leftOut is the part that this program leaves out, from what it was built with; empty if
// none. The program asks its build, because a flag could name another part than the linker
// did.
func leftOut(settings []debug.BuildSetting) (string, error) {
	for _, s := range settings {
		if s.Key == "-trimpath" && s.Value == "true" {
			return "", errors.New("built with -trimpath, so that it is not known what the linker left out of the method; build it without")
		}
	}
	out := ""
	for _, s := range settings {
		if s.Key != "-ldflags" {
			continue
		}
		if _, after, found := strings.Cut(s.Value, linked+"="); found {
			out, _, _ = strings.Cut(after, " ")
			out = strings.Trim(out, `"'`)
		}
	}
	if out != "" && !slices.ContainsFunc(ablations, func(a Ablation) bool { return a.Name == out }) {
		return "", fmt.Errorf("built without %q, which is not an ablation", out)
	}
	return out, nil
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
			if !slices.Contains(a.Of, of) {
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
