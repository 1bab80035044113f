package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// count is how many mutations of a package met which verdict.
type count struct{ own, parent, survived int }

func (c count) all() int { return c.own + c.parent + c.survived }

func (c count) row() string {
	return fmt.Sprintf("%d | %d | %d | %d | %.0f %%", c.all(), c.own, c.parent, c.survived,
		100*float64(c.own+c.parent)/float64(c.all()))
}

func (c *count) add(v verdict) {
	switch v {
	case killedByOwn:
		c.own++
	case killedByParent:
		c.parent++
	case survived:
		c.survived++
	}
}

// summary is a table of the packages, and the survivors.
func summary(results []result) string {
	var total count
	byPackage := map[string]*count{}
	var survivors []string
	var late int
	for _, r := range results {
		name := path.Dir(r.mutation.file)
		if byPackage[name] == nil {
			byPackage[name] = &count{}
		}
		byPackage[name].add(r.verdict)
		total.add(r.verdict)
		if r.late {
			late++
		}
		if r.verdict == survived {
			survivors = append(survivors, r.mutation.String())
		}
	}
	names := make([]string, 0, len(byPackage))
	for name := range byPackage {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Sort(survivors)

	var b strings.Builder
	b.WriteString("| package | mutations | killed by its own tests | killed by the parent's | survived | killed |\n|---|--:|--:|--:|--:|--:|\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %s |\n", name, byPackage[name].row())
	}
	fmt.Fprintf(&b, "| **all** | %s |\n", total.row())
	fmt.Fprintf(&b, "\n%d of the killed ones are killed because the tests did not end in time.\n", late)
	if len(survivors) > 0 {
		b.WriteString("\nSurvivors:\n\n")
	}
	for _, s := range survivors {
		fmt.Fprintf(&b, "- `%s`\n", s)
	}
	return b.String()
}

// table is the page: how the sample was drawn, the summary, and each mutation.
func table(results []result, seed uint64, possible, discarded int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A sample of mutations\n\n"+
		"%d of %d possible mutations, drawn by seed %d, each with the same chance. %d more were drawn and do not compile.\n"+
		"The tests of a mutation's own package ran first, then the parent's.\n\n", len(results), possible, seed, discarded)
	b.WriteString(summary(results))
	b.WriteString("\n| mutation | result | seconds |\n|---|---|--:|\n")
	for _, r := range results {
		// A bar would end the cell.
		fmt.Fprintf(&b, "| `%s` | %s | %.1f |\n", strings.ReplaceAll(r.mutation.String(), "|", `\|`), r.words(), r.took.Seconds())
	}
	return b.String()
}
