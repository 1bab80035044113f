package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	defectID    = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	threadOf    = regexp.MustCompile(`^([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)?#[1-9]\d*$`)
	fileOf      = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)+ (v\d+\.\d+\.\d+|[0-9a-f]{7,40}|main)$`)
	engineNames = []string{"python", "rust", "v0"}
)

// problems returns every contradiction between the defects, their schema and the
// catalogue.
func (l *defectList) problems(d *document) []error {
	var problems []error
	for i, s := range l.Setups {
		report := func(ok bool, problem string) {
			if !ok {
				problems = append(problems, fmt.Errorf("setup %s: %s", s.Name, problem))
			}
		}
		report(statementName.MatchString(s.Name), "the name must be lower-case words joined by underscores")
		report(s.Meaning != "", "meaning is missing")
		report(!slices.ContainsFunc(l.Setups[:i], func(other setup) bool { return other.Name == s.Name }), "the name is taken")
		report(slices.ContainsFunc(l.Defects, func(one defect) bool { return slices.Contains(one.Setups, s.Name) }), "no defect needs it")
	}
	for i := range l.Defects {
		one := &l.Defects[i]
		report := func(ok bool, format string, args ...any) {
			if !ok {
				problems = append(problems, fmt.Errorf("defect %s: %s", one.ID, fmt.Sprintf(format, args...)))
			}
		}
		report(defectID.MatchString(one.ID), "the id must be lower-case words joined by hyphens")
		for _, other := range l.Defects[:i] {
			report(other.ID != one.ID, "the id is taken")
			report(other.ID == one.ID || other.constant() != one.constant(), "the id is taken by %s: both are %s in Go", other.ID, one.constant())
		}
		report(sentence(one.Title), "title must be a whole sentence")
		report(strings.HasSuffix(one.Meaning, "."), "meaning is missing or does not end with a dot")
		report(strings.HasSuffix(one.Advice, "."), "advice is missing or does not end with a dot")
		report(one.Done == "" || strings.HasSuffix(one.Done, "."), "done does not end with a dot")
		report(len(one.Sources) > 0, "sources is missing")
		report(len(one.Metrics) > 0, "metrics is missing")
		for _, name := range one.Metrics {
			_, known := d.Metrics[name]
			report(known && d.Metrics[name].received() || name == "*", "%q is not a metric of vLLM in the catalogue", name)
			report(name != "*" || len(one.Metrics) == 1, "* stands for all metrics and must be alone")
		}
		for _, list := range []struct {
			key    string
			values []string
		}{{"metrics", one.Metrics}, {"setups", one.Setups}, {"engines", one.Engines}, {"sources", one.Sources}, {"seen", one.Seen}} {
			twice, is := repeated(list.values)
			report(!is, "%q is there twice in %s", twice, list.key)
		}
		for _, name := range one.Setups {
			report(slices.ContainsFunc(l.Setups, func(s setup) bool { return s.Name == name }), "there is no setup %q", name)
		}
		for _, name := range one.Engines {
			report(slices.Contains(engineNames, name), "the engine %q must be python, rust or v0", name)
		}
		for _, source := range one.Sources {
			report(threadOf.MatchString(source) || fileOf.MatchString(source),
				"the source %q must be \"#n\" or a path with a version, as in \"vllm/v1/metrics/loggers.py v0.10.0\"", source)
		}
		one.versionProblems(report)
	}
	return problems
}

// repeated returns a value that a list has more than once.
func repeated(list []string) (string, bool) {
	for i, value := range list {
		if slices.Contains(list[:i], value) {
			return value, true
		}
	}
	return "", false
}

// versionProblems checks the versions of a defect.
func (one *defect) versionProblems(report func(ok bool, format string, args ...any)) {
	for _, version := range []string{one.Since, one.Until} {
		report(version == "" || versionPattern.MatchString(version), "%q is not a version like 0.9.2", version)
	}
	report(!one.Change || one.Since != "", "a change needs the version since which it acts")
	report(one.Since == "" || one.Until == "" || earlier(one.Since, one.Until), "since %s must be before until %s", one.Since, one.Until)
	for i, version := range one.Seen {
		if !versionPattern.MatchString(version) {
			report(false, "%q is not a version like 0.9.2", version)
			continue
		}
		// What a real server shows is stronger than what was read.
		report(!earlier(version, one.Since) && (one.open() || earlier(version, one.Until)),
			"it was seen on %s, which does not have it by since %q and until %q", version, one.Since, one.Until)
		report(i == 0 || !earlier(version, one.Seen[i-1]), "seen must have the oldest version first")
	}
}

// earlier compares two versions of three numbers. The generator does not use
// internal/catalog, which it writes.
func earlier(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		x, _ := strconv.Atoi(left[i])
		y, _ := strconv.Atoi(right[i])
		if x != y {
			return x < y
		}
	}
	return false
}
