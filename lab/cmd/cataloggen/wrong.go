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
func (k *knowledge) wrongParts(l *decisionList) map[string]string {
	return map[string]string{
		"list": k.defects.table(), "setups": k.defects.setupTable(), "defects": k.defectSections(l),
	}
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
		fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s |\n", cmp.Or(one.Since, "ever"), cmp.Or(one.Until, "–"),
			cell(one.Title), one.link(), one.conditions(), one.seenOn())
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

// seenOn are the versions on which the defect was seen.
func (one *defect) seenOn() string {
	return cmp.Or(strings.Join(one.Seen, ", "), "read, not seen")
}

func (l *defectList) setupTable() string {
	var b strings.Builder
	b.WriteString("| Setup | Meaning | How the metrics show it |\n|---|---|---|\n")
	for _, s := range l.Setups {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(s.Name, "_", " "), cell(s.Meaning), cell(cmp.Or(s.Visible, "not at all: the defect counts as possible")))
	}
	return b.String()
}

// defectSections has a section for each version that ended defects, and in it one for
// each defect.
func (k *knowledge) defectSections(l *decisionList) string {
	var b strings.Builder
	section := ""
	for _, one := range k.defects.sorted() {
		title := "Not fixed: details"
		if !one.open() {
			title = "Fixed in " + one.Until
		}
		if title != section {
			section = title
			fmt.Fprintf(&b, "## %s\n\n", title)
		}
		fmt.Fprintf(&b, "### %s\n\n**%s** %s\n\n| | |\n|---|---|\n", one.ID, one.Title, one.Meaning)
		for _, row := range [][2]string{
			{"Versions", one.versions()},
			{"Seen on", one.seenOn()},
			{"Servers", one.servers()},
			{"Metrics", one.metricList()},
			{"Seen in the data", cmp.Or(one.Detect, "No.")},
			{"Advice", one.Advice},
			{"Source", one.sourceLinks()},
		} {
			if row[1] != "" {
				fmt.Fprintf(&b, "| %s | %s |\n", row[0], cell(row[1]))
			}
		}
		b.WriteString("\n" + k.decisionsAbout(one, l))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// servers is which servers have the defect, in words.
func (one *defect) servers() string {
	names := map[string]string{"python": "V1 engine with the Python front end", "rust": "Rust front end", "v0": "V0 engine"}
	var kinds []string
	for _, name := range one.Engines {
		kinds = append(kinds, names[name])
	}
	text := cmp.Or(strings.Join(kinds, ", "), "all")
	if len(one.Setups) > 0 {
		var setups []string
		for _, name := range one.Setups {
			setups = append(setups, "["+strings.ReplaceAll(name, "_", " ")+"](#setups)")
		}
		text += "; only with " + strings.Join(setups, " and ")
	}
	return text
}

func (one *defect) metricList() string {
	if slices.Contains(one.Metrics, "*") {
		return "all of the server"
	}
	return codeList(one.Metrics)
}

// sourceLinks links what the entry was taken from, and says how it was verified.
func (one *defect) sourceLinks() string {
	const repository = "https://github.com/vllm-project/vllm/"
	var links []string
	for _, source := range one.Sources {
		if number, is := strings.CutPrefix(source, "#"); is {
			links = append(links, "["+source+"]("+repository+"issues/"+number+")")
			continue
		}
		path, version, _ := strings.Cut(source, " ")
		links = append(links, "["+path+"]("+repository+"blob/"+version+"/"+path+") of "+version)
	}
	verified := map[string]string{
		"source": "Seen in vLLM's source or in a merged change.",
		"thread": "Only reported in a thread; not verified in the source.",
		"none":   "Not verified.",
	}[one.Verified]
	if len(links) == 0 {
		return verified
	}
	return strings.Join(links, ", ") + ". " + verified
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
