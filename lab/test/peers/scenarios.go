package main

import (
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/peers/served"
)

// scenario is one kind of load.
type scenario struct {
	// Name is its name in the tables.
	Name string
	// Targets, Engines and Interval are the size of the load.
	Targets, Engines int
	Interval         time.Duration
	// Form is how the servers answer; Gzip is true where both ask for gzip.
	Form served.Form
	Gzip bool
	// Differ is true where each server has a model of its own, so that no layout is shared.
	Differ bool
	// Window is how long is measured.
	Window time.Duration
	// Few is true where the floor and the processors of the peer are left out.
	Few bool
	// Extra is true for loads that are run by name only.
	Extra bool
}

func scenarios() []scenario {
	return []scenario{
		{Name: "100 targets x 1 s", Targets: 100, Engines: 1, Interval: time.Second, Form: served.Length, Window: 10 * time.Second},
		{Name: "100 targets x 10 s", Targets: 100, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Window: 20 * time.Second, Few: true},
		{Name: "1000 targets x 10 s", Targets: 1000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Window: 10 * time.Second},
		{Name: "3000 targets x 10 s", Targets: 3000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Window: 10 * time.Second, Few: true},
		{Name: "1 target x 100 ms", Targets: 1, Engines: 1, Interval: 100 * time.Millisecond, Form: served.Length, Window: 10 * time.Second},
		{Name: "100 targets x 5 s, small chunks", Targets: 100, Engines: 1, Interval: 5 * time.Second, Form: served.Small, Window: 10 * time.Second},
		{Name: "100 targets x 1 s, one chunk", Targets: 100, Engines: 1, Interval: time.Second, Form: served.Chunked, Window: 10 * time.Second},
		{Name: "100 targets x 5 s, 1 engine", Targets: 100, Engines: 1, Interval: 5 * time.Second, Form: served.Length, Window: 10 * time.Second, Few: true},
		{Name: "100 targets x 5 s, 8 engines", Targets: 100, Engines: 8, Interval: 5 * time.Second, Form: served.Length, Window: 10 * time.Second, Few: true},
		{Name: "1000 targets x 10 s, layouts differ", Targets: 1000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Differ: true, Window: 10 * time.Second, Few: true},
		{Name: "100 targets x 1 s, gzip", Targets: 100, Engines: 1, Interval: time.Second, Form: served.Chunked, Gzip: true, Window: 10 * time.Second},
		{Name: "1000 targets x 10 s, after five minutes", Targets: 1000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Window: 310 * time.Second, Few: true, Extra: true},
		{Name: "profile", Targets: 400, Engines: 1, Interval: 500 * time.Millisecond, Form: served.Length, Window: 15 * time.Second, Extra: true},
	}
}

// chosen reports whether a scenario or a program is one of a list of names, separated by
// semicolons; a star at the end stands for any end.
func chosen(list, name string) bool {
	for part := range strings.SplitSeq(list, ";") {
		if part == name || strings.HasSuffix(part, "*") && strings.HasPrefix(name, part[:len(part)-1]) {
			return true
		}
	}
	return false
}
