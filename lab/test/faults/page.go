package faults

import (
	"fmt"
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

// Page writes docs/why/faults.md.
func Page(agent, sidecar Runs, date string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Written by \"make faults\"; its prose is lab/test/faults/page.go. -->")
	line("# What one bad target does to the others\n")
	line("The built collector reads three working servers and one that has a fault, and sends to an OTLP backend. Each working")
	line("server counts how often it was read, and the backend has to receive each of these counts: one lost scrape is seen.")
	shipped := agent.Shipped
	line("The configuration, the limit of memory (%d MiB), `GOMEMLIMIT` (%s) and the processors (%d) are those of", shipped.Memory>>20, shipped.GoMemory, shipped.Processors)
	line("[the agent](../../examples/kubernetes/base/agent); only the interval is shorter: 2 s, and 4 s where a fault costs much,")
	line("instead of 15 s. All servers are on loopback.\n")
	line("- Command: `make faults`")
	line("- Machine: %s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if date != "" {
		line("- Date: %s", date)
	}
	line("- Runs: %d, of which %d miss a bar\n", len(agent.Results)+len(sidecar.Results), agent.failed()+sidecar.failed())
	line("The bars: no scrape of a working server is lost or left out, the peak of resident memory (VmHWM) stays below the")
	line("container's limit, the collector ends within %s of SIGTERM, the log of a run has at most %d KB, and one line of it", mostStop, mostLog>>10)
	line("reports what is wrong and at which target. \"none needed\" is where nothing is lost, so that there is nothing to report.")
	line("The log is quoted from the binary of that date; a later one may say the same in other words.\n")
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

// section writes the table of the faults that were run, and the bars that they miss.
func (r Runs) section(line func(format string, args ...any), title string, faults []Fault) {
	line("## %s\n", title)
	line("| fault | what happens | lost of the others | peak memory | SIGTERM took | in the log |\n|---|---|---|---|---|---|")
	var missed []string
	for _, f := range faults {
		result := r.Results[f.Name]
		if result == nil {
			continue
		}
		says := result.Sentence
		switch {
		case f.Says == nil:
			says = "none needed"
		case says == "":
			says = "**nothing**"
		}
		line("| %s | %s | %d of %d | %d MiB | %s | %s |", cell(f.Name), cell(f.What), result.Lost+result.Skipped, result.Reads+result.Skipped,
			result.Peak>>20, result.Stop.Round(100*time.Millisecond), cell(says))
		for _, failure := range result.Failures(r.Shipped.Memory) {
			missed = append(missed, fmt.Sprintf("- **%s**: %s", cell(f.Name), cell(failure)))
		}
	}
	line("")
	if len(missed) > 0 {
		line("Bars that were missed:\n\n%s\n", strings.Join(missed, "\n"))
	}
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
