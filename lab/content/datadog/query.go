package datadog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Use is what a query asks of one metric.
type Use struct {
	Metric string
	// Counts is true where the metric must be a count, which its increases are added up of.
	Counts bool
	// Filters are the tags with the values that they must have. A tag that must not have a
	// value has none here.
	Filters map[string][]string
	// By are the tags that the result has.
	By []string
}

var (
	useForm    = regexp.MustCompile(`\b(avg|sum|min|max):([a-zA-Z][a-zA-Z0-9_.]*)\{([^}]*)\}(?: by \{([^}]*)\})?(\.as_count\(\)|\.as_rate\(\))?`)
	valuesForm = regexp.MustCompile(`^([a-z0-9_.]+) IN \(([^)]*)\)$`)
	filterForm = regexp.MustCompile(`^!?([a-z0-9_.]+):([^:, ()]+)$`)
)

// Uses returns what a query asks, one for each metric in it.
func Uses(query string) ([]Use, error) {
	var uses []Use
	for _, found := range useForm.FindAllStringSubmatch(query, -1) {
		use := Use{Metric: found[2], Counts: found[5] != "", Filters: map[string][]string{}}
		if found[4] != "" {
			use.By = strings.Split(found[4], ",")
		}
		for _, filter := range filters(found[3]) {
			if several := valuesForm.FindStringSubmatch(filter); several != nil {
				use.Filters[several[1]] = append(use.Filters[several[1]], strings.Split(several[2], ",")...)
				continue
			}
			one := filterForm.FindStringSubmatch(filter)
			switch {
			case filter == "*":
			case strings.HasPrefix(filter, "$"):
				i := slices.IndexFunc(choices, func(c struct{ name, tag string }) bool { return "$"+c.name == filter })
				if i < 0 {
					return nil, fmt.Errorf("%s: there is no choice %s", query, filter)
				}
			case one != nil && strings.HasPrefix(filter, "!"):
				use.Filters[one[1]] = nil
			case one != nil:
				use.Filters[one[1]] = append(use.Filters[one[1]], one[2])
			default:
				return nil, fmt.Errorf("%s: %q is not a filter", query, filter)
			}
		}
		uses = append(uses, use)
	}
	if len(uses) == 0 {
		return nil, fmt.Errorf("%s: there is no metric", query)
	}
	return uses, nil
}

// filters splits at AND, or else at commas.
func filters(scope string) (all []string) {
	if strings.Contains(scope, " AND ") || strings.Contains(scope, " IN ") {
		return strings.Split(scope, " AND ")
	}
	return strings.Split(scope, ",")
}

// Choices returns the tags that can be chosen at the top of the dashboard.
func Choices() (tags []string) {
	for _, c := range choices {
		tags = append(tags, c.tag)
	}
	return tags
}

// Queries returns all queries of the monitors, the dashboard and the SLO.
func Queries() ([]string, error) {
	var all []string
	for _, a := range monitored() {
		query, err := query(&a)
		if err != nil {
			return nil, err
		}
		all = append(all, query)
	}
	for _, g := range groups() {
		for _, w := range g.widgets {
			for _, l := range w.lines {
				all = append(all, l.queries...)
			}
		}
	}
	return append(all, numerator, denominator), nil
}
