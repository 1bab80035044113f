package faults

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// Runs are the results of the faults with one deployment, by name.
type Runs struct {
	Shipped *Shipped
	Results map[string]*Result
}

// failed counts the runs that miss a bar.
func (r Runs) failed() int {
	failed := 0
	for _, result := range r.Results {
		if len(result.Failures(r.Shipped.Memory)) > 0 {
			failed++
		}
	}
	return failed
}

// Page writes docs/why/faults.md. What happens in a fault is in its code.
func Page(agent, sidecar Runs, date string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Written by \"make faults\"; its prose is lab/test/faults/page.go. -->")
	line("# What one bad target does to the others\n")
	shipped, all, missed := agent.Shipped, len(agent.Results)+len(sidecar.Results), agent.failed()+sidecar.failed()
	line("One faulty server must not cost a scrape of another server. %d of %d runs meet all bars.\n", all-missed, all)
	line("A run has the built collector, three working servers and one fault.")
	line("Memory (%d MiB), `GOMEMLIMIT` (%s) and processors (%d) are those of [the agent](../../examples/kubernetes/base/agent);", shipped.Memory>>20, shipped.GoMemory, shipped.Processors)
	line("the interval is 2 s, or 4 s for heavy faults. The bars: the backend gets each scrape of the working servers, resident memory stays below the limit,")
	line("the collector stops within %s (at most %s), the log has at most %d KB, and one line of it has the target and the reason.\n",
		mostStop, max(agent.slowest(), sidecar.slowest()).Round(100*time.Millisecond), mostLog>>10)
	line("A table has the highest resident memory and the start of the log line, which newer versions can word differently.")
	line("Command: `make faults`, on %s/%s, %d processors%s.", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.TrimSuffix(", "+date, ", "))
	line("")
	for _, section := range All() {
		agent.section(line, section.Title, section.Faults)
	}
	if len(sidecar.Results) > 0 {
		for _, section := range All() {
			if sidecar.Results[section.Faults[0].Name] != nil {
				sidecar.section(line, fmt.Sprintf("%s, in the sidecar (%d MiB)", section.Title, sidecar.Shipped.Memory>>20), section.Faults)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// slowest is the longest time from SIGTERM to the end.
func (r Runs) slowest() (out time.Duration) {
	for _, result := range r.Results {
		out = max(out, result.Stop)
	}
	return out
}

// section writes a row for each line of the log, with the faults that it reports, and the bars that were missed.
func (r Runs) section(line func(format string, args ...any), title string, faults []Fault) {
	type row struct {
		names []string
		peak  int64
	}
	lost, reads := 0, 0
	rows := map[string]*row{}
	var order, missed []string
	for _, f := range faults {
		result := r.Results[f.Name]
		if result == nil {
			continue
		}
		says := brief(result.Sentence)
		switch {
		case f.Says == nil:
			says = "none needed"
		case says == "":
			says = "**nothing**"
		}
		if rows[says] == nil {
			rows[says], order = &row{}, append(order, says)
		}
		at := rows[says]
		at.names, at.peak = append(at.names, cell(f.Name)), max(at.peak, result.Peak>>20)
		lost, reads = lost+result.Lost+result.Skipped, reads+result.Reads+result.Skipped
		for _, failure := range result.Failures(r.Shipped.Memory) {
			missed = append(missed, fmt.Sprintf("- **%s**: %s", cell(f.Name), cell(failure)))
		}
	}
	line("## %s\n", title)
	line("Lost: %d of %d.\n\n| faults | peak, MiB | log line |\n|---|---|---|", lost, reads)
	for _, says := range order {
		line("| %s | %d | %s |", strings.Join(rows[says].names, "; "), rows[says].peak, cell(says))
	}
	line("")
	if len(missed) > 0 {
		line("Bars that were missed:\n\n%s\n", strings.Join(missed, "\n"))
	}
}

// head is the start of a line of the log, of four words or more, before a hint and before values of this run.
var head = regexp.MustCompile(`^(?:warn: )?(?:Scraping failed: |Discovery: )?(\S+?(?: \S+?){3,}?)(?:[;:.] .*| \(.*| (?:discovery=|at |before )\S*\d.*)?$`)

// brief is what a line of the log says first.
func brief(sentence string) string {
	sentence = head.ReplaceAllString(sentence, "$1")
	const most = 12
	if words := strings.Fields(sentence); len(words) > most {
		sentence = strings.Join(words[:most], " ") + " ..."
	}
	return sentence
}

// cell makes a text fit into a cell of a table.
func cell(text string) string {
	const most = 400
	text = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(strings.ToValidUTF8(text, "?"))
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + " ..."
	}
	return text
}
