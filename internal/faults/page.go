package faults

import (
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// Page writes docs/faults.md.
func Page(results map[string]*Result, shipped *Shipped, date string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Written by \"make faults\"; its prose is internal/faults/page.go. -->")
	line("# What one bad target does to the others\n")
	line("The built collector reads three working servers and one that has a fault, and sends to an OTLP backend. Each working")
	line("server counts how often it was read, and the backend has to receive each of these counts: one lost scrape is seen.")
	line("The configuration, the limit of memory (%d MiB), `GOMEMLIMIT` (%s) and the processors (%d) are those of", shipped.Memory>>20, shipped.GoMemory, shipped.Processors)
	line("[the agent](../examples/kubernetes/base/agent); only the interval is shorter: 2 s, and 5 s where a fault costs much,")
	line("instead of 15 s. All servers are on loopback.\n")
	line("- Command: `make faults`")
	line("- Machine: %s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if date != "" {
		line("- Date: %s", date)
	}
	failed := 0
	for _, r := range results {
		if len(r.Failures(shipped.Memory)) > 0 {
			failed++
		}
	}
	line("- Faults: %d, of which %d miss a bar\n", len(results), failed)
	line("The bars: no scrape of a working server is lost or left out, the peak of resident memory (VmHWM) stays below the")
	line("container's limit, the collector ends within %s of SIGTERM, the log of a run has at most %d KB, and one line of it", mostStop, mostLog>>10)
	line("reports what is wrong and at which target. \"none needed\" is where nothing is lost, so that there is nothing to report.\n")
	for _, section := range All() {
		line("## %s\n", section.Title)
		line("| fault | what happens | lost of the others | peak memory | SIGTERM took | in the log |\n|---|---|---|---|---|---|")
		for _, f := range section.Faults {
			r := results[f.Name]
			if r == nil {
				continue
			}
			says := r.Sentence
			switch {
			case f.Says == nil:
				says = "none needed"
			case says == "":
				says = "**nothing**"
			}
			line("| %s | %s | %d of %d | %d MiB | %s | %s |", cell(f.Name), cell(f.What), r.Lost+r.Skipped, r.Reads+r.Skipped,
				r.Peak>>20, r.Stop.Round(100*time.Millisecond), cell(says))
		}
		line("")
		for _, f := range section.Faults {
			if r := results[f.Name]; r != nil {
				for _, failure := range r.Failures(shipped.Memory) {
					line("- **%s**: %s", cell(f.Name), cell(failure))
				}
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
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
