package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
)

// Report is what was found of one program.
type Report struct {
	Program string `json:"program"`
	// Requests is how many were answered, Scrapes how often the collector read the page.
	Requests int64 `json:"requests"`
	Scrapes  int   `json:"scrapes"`
	// Families and Samples are those of the last body; Fates counts the samples by what became of them.
	Families int                `json:"families"`
	Samples  int                `json:"samples"`
	Fates    map[audit.Fate]int `json:"fates"`
	// Lost are families with samples that no metric has, though no document says so. Mistyped ones
	// have another kind than their TYPE line, Unitless have no unit, Unknown are not in the catalogue.
	Lost     []string `json:"lost,omitempty"`
	Mistyped []string `json:"mistyped,omitempty"`
	Unitless []string `json:"unitless,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
	// Violations are differences from the body that was read.
	Violations []string `json:"violations,omitempty"`
	// Equal and Between count the samples that are equal to one of the harness's own scrapes before and
	// after, and those between them. Moved names gauges outside of them, Fallen counters, Absent
	// what only the harness got, Alone what only the collector got.
	Equal   int      `json:"equal"`
	Between int      `json:"between"`
	Moved   []string `json:"moved,omitempty"`
	Fallen  []string `json:"fallen,omitempty"`
	Absent  []string `json:"absent,omitempty"`
	Alone   []string `json:"alone,omitempty"`
	// Derived has what each Prometheus says, by its version.
	Derived map[string][]Derived `json:"derived,omitempty"`
	// Uncompared are derived metrics without a formula here.
	Uncompared []string `json:"uncompared,omitempty"`
}

// Derived compares the values of one metric.
type Derived struct {
	Metric   string `json:"metric"`
	Compared int    `json:"compared"`
	// Largest is the largest difference, relative to the value of Prometheus; At says where.
	Largest float64 `json:"largest"`
	At      string  `json:"at,omitempty"`
}

// documented are the fates that a user can read of: everything else that is not emitted is lost.
var documented = []audit.Fate{audit.Emitted, audit.Alias, audit.StartTime, audit.Info, audit.Disabled, audit.Sentinel, audit.Unused}

// families adds what became of the families of a body.
func (r *Report) families(report *audit.Report) {
	r.Families, r.Samples, r.Fates = len(report.Origins), 0, report.Fates
	for _, n := range report.Fates {
		r.Samples += n
	}
	for i := range report.Origins {
		o := &report.Origins[i]
		for fate, n := range o.Fates {
			if !slices.Contains(documented, fate) {
				name := "not found"
				if fate != "" {
					name = string(fate)
				}
				add(&r.Lost, fmt.Sprintf("%s: %s (%d)", o.Family, name, n))
			}
		}
		switch {
		case o.Metric == "":
			continue
		case o.Mistyped():
			add(&r.Mistyped, fmt.Sprintf("%s: TYPE %s, a %s", o.Family, o.Type, o.Kind))
		}
		if o.Unit == "" {
			add(&r.Unitless, o.Family)
		}
		if !o.Known {
			add(&r.Unknown, o.Family)
		}
	}
}

// bracket adds the comparison of one scrape with those before and after it.
func (r *Report) bracket(b audit.Bracketed) {
	r.Equal, r.Between = r.Equal+b.Equal, r.Between+b.Within
	for _, text := range b.Outside {
		if name, _, _ := strings.Cut(text, "{"); strings.Contains(text, ": the gauge is ") {
			add(&r.Moved, name)
		} else {
			add(&r.Fallen, text)
		}
	}
	for _, of := range []struct {
		from []string
		to   *[]string
	}{{b.Absent, &r.Absent}, {b.Alone, &r.Alone}} {
		for _, text := range of.from {
			name, _, _ := strings.Cut(text, "{")
			add(of.to, name)
		}
	}
}

// add adds a line once. The lines are sorted.
func add(to *[]string, text string) {
	if at, has := slices.BinarySearch(*to, text); !has {
		*to = slices.Insert(*to, at, text)
	}
}

// tolerance is the difference that is none: both add up the same numbers in another order, and differences of large
// sums lose digits.
const tolerance = 1e-9

// Wrong names what a user would have to know: nothing where the collector says what the program says.
func (r *Report) Wrong() []string {
	out := slices.Concat(r.Lost, r.Mistyped, r.Violations, r.Fallen, r.Absent)
	for _, prometheus := range slices.Sorted(maps.Keys(r.Derived)) {
		for _, d := range r.Derived[prometheus] {
			if d.Largest > tolerance {
				out = append(out, fmt.Sprintf("%s is off by %.2g of what Prometheus %s says (%s)", d.Metric, d.Largest, prometheus, d.At))
			}
		}
	}
	return out
}

// Write keeps the report in a folder.
func (r *Report) Write(folder string) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	name := strings.NewReplacer("/", "-", "@", "-", " ", "-").Replace(r.Program) + ".json"
	return os.WriteFile(filepath.Join(folder, name), append(raw, '\n'), 0o644)
}

// Kept returns the reports of a folder, by their names.
func Kept(folder string) (reports []*Report, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r := &Report{}
		if err := json.Unmarshal(raw, r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}
