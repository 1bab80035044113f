// Package pageparts writes the generated parts of pages that are otherwise written by
// hand. A part stands between two marks, which do not show on the rendered page.
package pageparts

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The marks around a part; %s is its name.
const (
	begin = "<!-- %s: begin -->\n"
	end   = "<!-- %s: end -->"
)

// Replace returns a page with new text between the marks of each part. Every part needs
// its marks.
func Replace(page []byte, parts map[string]string) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		from, to := fmt.Sprintf(begin, name), fmt.Sprintf(end, name)
		head, rest, begins := bytes.Cut(page, []byte(from))
		_, tail, ends := bytes.Cut(rest, []byte(to))
		if !begins || !ends {
			return nil, fmt.Errorf("the marks around the part %q are missing: %s and %s, each on a line of its own", name, strings.TrimSpace(from), to)
		}
		page = slices.Concat(head, []byte(from), []byte(parts[name]), []byte(to), tail)
	}
	return page, nil
}

// Rewrite is Replace of a file. Where it returns an error, the file is as before.
func Rewrite(file string, parts map[string]string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if page, err = Replace(page, parts); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644)
}

// Cell returns a text as it has to be in a cell of a table.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
