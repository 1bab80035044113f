package main

import (
	"slices"
	"strings"
)

// knowledge is what the decisions are about.
type knowledge struct {
	catalogue *document
	diagnosed *diagnosis
	defects   *defectList
}

// pair is a subject of decisions and a defect.
type pair struct{ subject, defect string }

// subjects returns everything that decisions can be about: the derived metrics, the
// signals and the rules. The metrics of the diagnosis have none: its signals have them.
func (k *knowledge) subjects() []string {
	var all []string
	for _, name := range sortedNames(k.catalogue.Metrics) {
		if k.catalogue.Metrics[name].derived() && !ofDiagnosis(name) {
			all = append(all, name)
		}
	}
	for _, name := range k.diagnosed.signalNames() {
		all = append(all, signalPrefix+name)
	}
	return append(all, ruleNames...)
}

func ofDiagnosis(metric string) bool {
	return strings.HasPrefix(metric, "vllm.diagnosis.") || strings.HasPrefix(metric, "vllm.pool.diagnosis.")
}

// inputs returns the metrics that a derived metric or a signal is computed from, through
// the metrics in between, with the metric itself.
func (k *knowledge) inputs(subject string) []string {
	var all []string
	var add func(name string)
	add = func(name string) {
		if slices.Contains(all, name) {
			return
		}
		all = append(all, name)
		for _, from := range k.catalogue.Metrics[name].DerivedFrom {
			add(from)
		}
		// No metric has the name of a signal: validate sees to it.
		for _, from := range k.diagnosed.inputsOf(name) {
			add(from)
		}
	}
	add(strings.TrimPrefix(subject, signalPrefix))
	return all
}

// meets reports whether a defect concerns an input of the subject. A rule has no list of
// inputs, so every defect can concern it.
func (k *knowledge) meets(subject string, d *defect) bool {
	return strings.HasPrefix(subject, "rule:") ||
		slices.ContainsFunc(k.inputs(subject), d.concerns)
}

// concerns reports whether the defect concerns a metric. A defect of all metrics of a
// server concerns no metric of a gateway.
func (d *defect) concerns(metric string) bool {
	return slices.Contains(d.Metrics, metric) ||
		slices.Contains(d.Metrics, "*") && !strings.HasPrefix(metric, "inference_gateway.")
}

// meeting returns the pairs that a row decides: those of its subjects and defects that
// meet.
func (k *knowledge) meeting(row decision) []pair {
	var pairs []pair
	for _, subject := range row.Of {
		for i := range k.defects.Defects {
			d := &k.defects.Defects[i]
			if slices.Contains(row.Defects, d.ID) && k.meets(subject, d) {
				pairs = append(pairs, pair{subject, d.ID})
			}
		}
	}
	return pairs
}

// undecided returns the pairs that meet and that no row decides.
func (k *knowledge) undecided(l *decisionList) []pair {
	decided := map[pair]bool{}
	for _, row := range l.Decisions {
		for _, p := range k.meeting(row) {
			decided[p] = true
		}
	}
	var missing []pair
	for _, subject := range k.subjects() {
		if strings.HasPrefix(subject, "rule:") {
			continue
		}
		for i := range k.defects.Defects {
			d := &k.defects.Defects[i]
			if p := (pair{subject, d.ID}); k.meets(subject, d) && !decided[p] {
				missing = append(missing, p)
			}
		}
	}
	return missing
}
