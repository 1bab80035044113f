package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// table is what the source of some releases of vLLM has: families.tsv.
type table struct {
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

// older compares two releases.
func older(a, b string) int {
	x, _ := catalog.ParseRelease(a)
	y, _ := catalog.ParseRelease(b)
	return x.Compare(y)
}

const (
	heading = `# The metric families that the source of vLLM defines. "make vllm-families" writes this file.
# The last two columns are the oldest and the newest release that has the family, of those that were read:`
	columns = "family\ttype\tlabels\tfirst\tlast"
)

func readTable(r io.Reader) (*table, error) {
	t := &table{families: map[string]*family{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch fields := strings.Split(line, "\t"); {
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
		release, name := fields[0], fields[1]
		if _, ok := catalog.ParseRelease(release); !ok {
			return fmt.Errorf("not a release: %q", release)
		}
		t.releases = union(t.releases, []string{release})
		f := t.families[name]
		if f == nil {
			f = &family{first: release, last: release}
			t.families[name] = f
		}
		f.types = union(f.types, []string{fields[2]})
		f.labels = union(f.labels, split(fields[3]))
		if older(release, f.first) < 0 {
			f.first = release
		}
		if older(f.last, release) < 0 {
			f.last = release
		}
	}
	slices.SortFunc(t.releases, older)
	return lines.Err()
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

func (t *table) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, heading)
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
