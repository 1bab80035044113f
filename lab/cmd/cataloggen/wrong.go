package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// wrongPage is the page about the defects.
const wrongPage = "docs/what-vllm-gets-wrong.md"

// wrongParts returns the generated parts of the page about the defects.
func (l *defectList) wrongParts() map[string]string {
	return map[string]string{"list": l.table(), "setups": l.setupTable(), "defects": l.sections()}
}

// open reports whether no released version is known to be without the defect.
func (one *defect) open() bool { return one.Until == "" }

// versions is the range of versions in words.
func (one *defect) versions() string {
	switch {
	case one.Change:
		return "changed in " + one.Since
	case one.Since == "" && one.open():
		return "all, not fixed"
	case one.Since == "":
		return "fixed in " + one.Until
	case one.open():
		return "since " + one.Since + ", not fixed"
	}
	return "since " + one.Since + ", fixed in " + one.Until
}

// link is a link to the defect in the page.
func (one *defect) link() string { return "[" + one.ID + "](#" + one.ID + ")" }

// sorted returns the defects as the page has them: first those that are open, then by the
// version that ended them, the newest first. Equal ones are sorted by the version that
// began them, the newest first, and then as in the file.
func (l *defectList) sorted() []*defect {
	var all []*defect
	for i := range l.Defects {
		all = append(all, &l.Defects[i])
	}
	slices.SortStableFunc(all, func(a, b *defect) int {
		if a.open() != b.open() {
			if a.open() {
				return -1
			}
			return 1
		}
		return cmp.Or(compareVersions(b.Until, a.Until), compareVersions(b.Since, a.Since))
	})
	return all
}

// table lists all defects, with the versions that have them.
func (l *defectList) table() string {
	var b strings.Builder
	b.WriteString("| Since | Fixed in | Defect | Only with | Seen on |\n|---|---|---|---|---|\n")
	for _, one := range l.sorted() {
		fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s |\n", cmp.Or(one.Since, "always"), cmp.Or(one.Until, "–"),
			cell(one.Title), one.link(), one.conditions(), strings.Join(one.Seen, ", "))
	}
	return b.String()
}

// conditions names what a server needs to have the defect; empty where all servers of
// the versions have it. The Python server with the V1 engine is the usual one.
func (one *defect) conditions() string {
	var needs []string
	switch {
	case slices.Equal(one.Engines, []string{"rust"}):
		needs = append(needs, "the Rust front end")
	case slices.Equal(one.Engines, []string{"v0"}):
		needs = append(needs, "the V0 engine")
	}
	for _, name := range one.Setups {
		needs = append(needs, strings.ReplaceAll(name, "_", " "))
	}
	return strings.Join(needs, ", ")
}

func (l *defectList) setupTable() string {
	var b strings.Builder
	b.WriteString("| Setup | Meaning | How the metrics show it |\n|---|---|---|\n")
	for _, s := range l.Setups {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(s.Name, "_", " "), cell(s.Meaning), cell(cmp.Or(s.Visible, "not at all")))
	}
	return b.String()
}

// sections has the details of each defect.
func (l *defectList) sections() string {
	var b strings.Builder
	for _, one := range l.sorted() {
		fmt.Fprintf(&b, "### %s\n\n%s\n**Advice:** %s\n**Here:** %s\n\n%s%s.", one.ID, one.Meaning, one.Advice,
			cmp.Or(one.Done, "No derived value is wrong because of it."), strings.ToUpper(one.versions()[:1]), one.versions()[1:])
		if needs := one.conditions(); needs != "" {
			fmt.Fprintf(&b, " Only with %s.", needs)
		}
		fmt.Fprintf(&b, " Metrics: %s. %s\n\n", one.metricList(), one.sourceLinks())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// mostNamed is how many metrics of a defect the page names.
const mostNamed = 4

func (one *defect) metricList() string {
	switch more := len(one.Metrics) - mostNamed; {
	case slices.Contains(one.Metrics, "*"):
		return "all of the server"
	case more > 1:
		return codeList(one.Metrics[:mostNamed]) + fmt.Sprintf(" and %d more", more)
	}
	return codeList(one.Metrics)
}

// sourceLinks links what the entry was taken from.
func (one *defect) sourceLinks() string {
	const github, vllm = "https://github.com/", "vllm-project/vllm"
	var links []string
	for _, source := range one.Sources {
		if repository, number, is := strings.Cut(source, "#"); is {
			links = append(links, "["+source+"]("+github+cmp.Or(repository, vllm)+"/issues/"+number+")")
			continue
		}
		path, version, _ := strings.Cut(source, " ")
		links = append(links, "["+path+"]("+github+vllm+"/blob/"+version+"/"+path+")")
	}
	return strings.Join(links, ", ")
}

// compareVersions orders versions; an empty one is the oldest.
func compareVersions(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "" || b != "" && earlier(a, b):
		return -1
	}
	return 1
}
