package lint

import (
	"fmt"
	"io"
	"strings"
)

// diffContext is the number of lines around a change.
const diffContext = 3

// Diff writes what Plan has changed as a unified diff that "patch" reads. A replacement never
// adds or removes a line, so that lines are compared one by one.
func (f *File) Diff(w io.Writer) error {
	if f.After == nil {
		return nil
	}
	before, after := strings.SplitAfter(string(f.Before), "\n"), strings.SplitAfter(string(f.After), "\n")
	if len(before) != len(after) {
		return fmt.Errorf("%s: the replacement has changed the number of lines", f.Name)
	}
	if last := len(before) - 1; before[last] == "" {
		before, after = before[:last], after[:last]
	}
	if _, err := fmt.Fprintf(w, "--- %s\n+++ %s\n", f.Name, f.Name); err != nil {
		return err
	}
	for begin := 0; begin < len(before); {
		if before[begin] == after[begin] {
			begin++
			continue
		}
		last := begin
		for i := begin; i < len(before) && i <= last+2*diffContext; i++ {
			if before[i] != after[i] {
				last = i
			}
		}
		if err := hunk(w, before, after, max(0, begin-diffContext), min(len(before), last+diffContext+1)); err != nil {
			return err
		}
		begin = last + diffContext + 1
	}
	return nil
}

// hunk writes the lines from one to another.
func hunk(w io.Writer, before, after []string, from, to int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", from+1, to-from, from+1, to-from)
	line := func(sign, text string) {
		b.WriteString(sign + text)
		if !strings.HasSuffix(text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for i := from; i < to; {
		if before[i] == after[i] {
			line(" ", before[i])
			i++
			continue
		}
		end := i
		for end < to && before[end] != after[end] {
			end++
		}
		for _, text := range before[i:end] {
			line("-", text)
		}
		for _, text := range after[i:end] {
			line("+", text)
		}
		i = end
	}
	_, err := io.WriteString(w, b.String())
	return err
}
