package main

import (
	"strings"
	"time"
)

// scenario is one kind of load.
type scenario struct {
	// Name is its name in the tables.
	Name string
	// Targets, Engines and Interval are the size of the load.
	Targets, Engines int
	Interval         time.Duration
	// Differ is true where each server has a model of its own, so that no layout is shared.
	Differ bool
	// Window is how long is measured.
	Window time.Duration
	// Rounds is how often each program runs.
	Rounds int
	// Without are the programs that do not run.
	Without []string
	// Export is true where the programs send to a backend, and the time until the points arrive there is measured.
	Export bool
}

// The loads of which the bars are, and the one of the latency.
const (
	often, many = "100 targets x 1 s", "1000 targets x 10 s"
	engines8    = "100 targets x 5 s, 8 engines"
	differ      = many + ", layouts differ"
	sidecar     = "1 target x 15 s"
	nothing     = "no target"
	exported    = "export"
)

func scenarios() []scenario {
	grows := []string{oursName, peerName, peerProcessorName}
	return []scenario{
		{Name: often, Targets: 100, Engines: 1, Interval: time.Second, Window: 20 * time.Second, Rounds: 2},
		{Name: many, Targets: 1000, Engines: 1, Interval: 10 * time.Second, Window: 20 * time.Second, Rounds: 2},
		{Name: exported, Targets: 100, Engines: 1, Interval: time.Second, Window: 20 * time.Second, Rounds: 1, Export: true},
		{Name: sidecar, Targets: 1, Engines: 1, Interval: 15 * time.Second, Window: time.Minute, Rounds: 1, Without: []string{peerProcessorName}},
		{Name: nothing, Window: time.Second, Rounds: 1, Without: []string{oursProcessorName, peerProcessorName}},
		{Name: engines8, Targets: 100, Engines: 8, Interval: 5 * time.Second, Window: 20 * time.Second, Rounds: 1, Without: []string{peerProcessorName}},
		{Name: differ, Targets: 1000, Engines: 1, Interval: 10 * time.Second, Differ: true, Window: 20 * time.Second, Rounds: 1, Without: []string{peerProcessorName}},
		{Name: "100 targets x 10 s", Targets: 100, Engines: 1, Interval: 10 * time.Second, Window: 20 * time.Second, Rounds: 1, Without: grows},
		{Name: "3000 targets x 10 s", Targets: 3000, Engines: 1, Interval: 10 * time.Second, Window: 20 * time.Second, Rounds: 1, Without: grows},
		{Name: "100 targets x 5 s, 1 engine", Targets: 100, Engines: 1, Interval: 5 * time.Second, Window: 20 * time.Second, Rounds: 1, Without: grows},
		{Name: "100 targets x 5 s, 16 engines", Targets: 100, Engines: 16, Interval: 5 * time.Second, Window: 20 * time.Second, Rounds: 1, Without: grows},
	}
}

// growths are the loads of the picture of growth, with their sizes.
var growths = []struct {
	what  string
	loads []string
	sizes []float64
	// perScrape is true where each scrape is larger, and not the number of scrapes.
	perScrape bool
}{
	{"targets", []string{"100 targets x 10 s", many, "3000 targets x 10 s"}, []float64{100, 1000, 3000}, false},
	{"engines of a server", []string{"100 targets x 5 s, 1 engine", engines8, "100 targets x 5 s, 16 engines"}, []float64{1, 8, 16}, true},
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
