package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// table is what the source of some releases of a program has: families.tsv or router.tsv.
type table struct {
	// program is vLLM or llm-d-router.
	program string
	// releases are those whose source was read, the oldest first.
	releases []string
	families map[string]*family
}

// family is a family as the source defines it.
type family struct {
	// types has more than one element where two releases differ.
	types []string
	// labels are those of all releases. "?" stands for labels that the source does not name.
	labels []string
	// first and last are the oldest and the newest release with it.
	first, last string
}

// found reports whether the source of the release has the family.
func (f *family) found(release string) bool {
	return older(f.first, release) <= 0 && older(release, f.last) <= 0
}

// older compares two releases. A commit that no release has yet, as "main-20260822-ebab687", is newer
// than all releases.
func older(a, b string) int {
	x, released := catalog.ParseRelease(a)
	y, also := catalog.ParseRelease(b)
	switch {
	case released && also:
		return x.Compare(y)
	case released:
		return -1
	case also:
		return 1
	}
	return strings.Compare(a, b)
}

const (
	vllm   = "vLLM"
	router = "llm-d-router"

	begin   = "# The metric families that the source of "
	heading = begin + `%s defines. "make %s-families" writes this file.
# The last two columns are the oldest and the newest release that has the family, of those that were read:
`
	columns = "family\ttype\tlabels\tfirst\tlast"
)

// targets are the first words of the targets of make.
var targets = map[string]string{vllm: "vllm", router: "router"}

func readTable(r io.Reader) (*table, error) {
	t := &table{families: map[string]*family{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Split(line, "\t"); {
		case strings.HasPrefix(line, begin):
			t.program, _, _ = strings.Cut(line[len(begin):], " ")
		case strings.HasPrefix(line, "# 0."):
			t.releases = strings.Fields(line)[1:]
		case line == columns, strings.HasPrefix(line, "#"):
		case len(fields) != 5 || !known(t.releases, fields[3]) || !known(t.releases, fields[4]):
			return nil, fmt.Errorf("not a line of the table: %q", line)
		default:
			t.families[fields[0]] = &family{types: split(fields[1]), labels: split(fields[2]), first: fields[3], last: fields[4]}
		}
	}
	return t, lines.Err()
}

func known(releases []string, release string) bool { return slices.Contains(releases, release) }

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// add merges lines that families.py has printed.
func (t *table) add(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 6 {
			return fmt.Errorf("not a line of families.py: %q", lines.Text())
		}
		release := fields[0]
		if _, ok := catalog.ParseRelease(release); !ok {
			return fmt.Errorf("not a release: %q", release)
		}
		t.merge(release, found{name: fields[1], kind: fields[2], labels: split(fields[3])})
	}
	return lines.Err()
}

// merge adds a family of a release.
func (t *table) merge(release string, one found) {
	t.releases = union(t.releases, []string{release})
	slices.SortFunc(t.releases, older)
	f := t.families[one.name]
	if f == nil {
		f = &family{first: release, last: release}
		t.families[one.name] = f
	}
	f.types = union(f.types, []string{one.kind})
	f.labels = union(f.labels, one.labels)
	if older(release, f.first) < 0 {
		f.first = release
	}
	if older(f.last, release) < 0 {
		f.last = release
	}
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func (t *table) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, heading, t.program, targets[t.program])
	fmt.Fprintln(out, "#", strings.Join(t.releases, " "))
	fmt.Fprintln(out, columns)
	for _, name := range t.names() {
		f := t.families[name]
		fmt.Fprintln(out, strings.Join([]string{name, strings.Join(f.types, ","), strings.Join(f.labels, ","), f.first, f.last}, "\t"))
	}
	return out.Flush()
}

func (t *table) names() []string {
	names := make([]string, 0, len(t.families))
	for name := range t.families {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
