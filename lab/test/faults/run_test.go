//go:build e2e

package faults

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

const root = "../../.."

var (
	full = flag.Bool("faults", false, "run every fault in full, and write docs/why/faults.md; otherwise the short form")
	only = flag.String("faults.only", "", "run only the faults whose names match, in full, and write nothing")
	date = flag.String("faults.date", "", "the date that the page states")
)

// pace is the length of a run.
type pace struct {
	interval, timeout time.Duration
	scrapes           int
}

var (
	light = pace{interval: 2 * time.Second, timeout: time.Second, scrapes: 7}
	heavy = pace{interval: 4 * time.Second, timeout: 2500 * time.Millisecond, scrapes: 9}
	short = pace{interval: 3 * time.Second, timeout: 2 * time.Second, scrapes: 5}
)

// neighbors is how many working servers there are in each run.
const neighbors = 3

// drain is how long the last scrapes may take to the backend.
const drain = 20 * time.Second

func TestFaults(t *testing.T) {
	agent := Runs{deployment(t, "agent", "daemonset.yaml"), map[string]*Result{}}
	sidecar := Runs{deployment(t, "sidecar", "patch.yaml"), map[string]*Result{}}
	if !*full && *only == "" {
		t.Skip("the short form is TestFaultsInShort")
	}
	var mu sync.Mutex
	one := func(t *testing.T, to Runs, f *Fault, p pace) {
		t.Helper()
		r := run(t, to.Shipped, []*Fault{f}, p)[0]
		mu.Lock()
		to.Results[f.Name] = r
		mu.Unlock()
		judge(t, to.Shipped, r)
	}
	faults := find(regexp.MustCompile(*only))
	require.NotEmpty(t, faults)
	t.Run("light", func(t *testing.T) {
		for _, f := range faults {
			if !f.Heavy {
				t.Run(f.Name, func(t *testing.T) {
					t.Parallel()
					one(t, agent, f, light)
				})
			}
		}
	})
	for _, f := range faults {
		if f.Heavy {
			t.Run(f.Name, func(t *testing.T) { one(t, agent, f, heavy) })
		}
	}
	// The sidecar's one target is the server of its own pod.
	for _, f := range sizeFaults() {
		if f.Short && slices.ContainsFunc(faults, func(g *Fault) bool { return g.Name == f.Name }) {
			t.Run("sidecar/"+f.Name, func(t *testing.T) { one(t, sidecar, &f, heavy) })
		}
	}
	if *full && *only == "" {
		page := Page(agent, sidecar, *date)
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "why", "faults.md"), []byte(page), 0o600))
	}
}

// In CI all light faults go into one collector at the same time, and some of the
// heavy ones are watched for a few scrapes.
func TestFaultsInShort(t *testing.T) {
	shipped := deployment(t, "agent", "daemonset.yaml")
	if *full || *only != "" {
		t.Skip("every fault is run in full")
	}
	var together, alone []*Fault
	for _, f := range find(regexp.MustCompile("")) {
		switch {
		case !f.Heavy:
			together = append(together, f)
		case f.Short:
			alone = append(alone, f)
		}
	}
	t.Run("all light faults at once", func(t *testing.T) {
		t.Parallel()
		for _, r := range run(t, shipped, together, light) {
			judge(t, shipped, r)
		}
	})
	for _, f := range alone {
		t.Run(f.Name, func(t *testing.T) { t.Parallel(); judge(t, shipped, run(t, shipped, []*Fault{f}, short)[0]) })
	}
}

func deployment(t *testing.T, name, manifest string) *Shipped {
	t.Helper()
	collector.Binary(t)
	if _, err := fleet.UsageOf(os.Getpid()); err != nil {
		t.Skip("the memory of a process can be read on Linux only:", err)
	}
	shipped, err := LoadShipped(filepath.Join(root, "examples", "kubernetes", "base", name), manifest)
	require.NoError(t, err)
	return shipped
}

func judge(t *testing.T, shipped *Shipped, r *Result) {
	t.Helper()
	failures := r.Failures(shipped.Memory)
	t.Logf("%s: %d reads, %d lost, %d skipped, peak %d MiB, SIGTERM %s, log %d bytes, says %q",
		r.Fault.Name, r.Reads, r.Lost, r.Skipped, r.Peak>>20, r.Stop.Round(10*time.Millisecond), r.LogBytes, clip(r.Sentence, 300))
	for _, failure := range failures {
		assert.Fail(t, failure, r.Fault.Name)
	}
}

// run watches a collector that reads working servers and what some faults give it.
func run(t *testing.T, shipped *Shipped, faults []*Fault, p pace) []*Result {
	t.Helper()
	lifetime := time.Duration(p.scrapes)*p.interval + drain + 2*collector.Patience
	limit := int(vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config).Limits.BodySize)
	w := newWorld(t.TempDir(), filepath.Join(root, "testdata"), lifetime, limit)
	t.Cleanup(w.Close)
	sink := newSink()
	backend, err := fleet.NewBackend(t.Context(), sink.take)
	require.NoError(t, err)
	t.Cleanup(backend.Close)
	setup := Setup{Interval: p.interval, Timeout: p.timeout, Backend: "http://" + backend.Address, Dir: t.TempDir()}
	given := make([]Given, len(faults))
	for i, f := range faults {
		g, err := f.Begin(w)
		require.NoError(t, err, f.Name)
		given[i] = g
		if g.Target != nil {
			setup.Targets = append(setup.Targets, g.Target)
		}
		setup.Discovery = together(setup.Discovery, g.Discovery)
		if g.Push != nil {
			setup.OTLP = collector.FreeAddr(t)
		}
	}
	var working []*neighbor
	for range neighbors {
		n, err := startNeighbor(w)
		require.NoError(t, err)
		working = append(working, n)
		setup.Targets = append(setup.Targets, map[string]any{"endpoint": "http://" + n.addr})
	}

	config, err := shipped.Config(&setup)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	c := collector.Start(t, shipped.Env(), collector.Binary(t), append([]string{"--config", file}, shipped.Gates...)...)
	c.WaitFor(t, "the start", c.Ready)
	shared := watch(t, c, shipped, sink, working, p, func(ctx context.Context) {
		for _, g := range given {
			if g.Push != nil {
				http.DefaultClient.CloseIdleConnections()
				_ = g.Push(ctx, "http://"+setup.OTLP)
			}
		}
	})
	var results []*Result
	for i, f := range faults {
		r := *shared
		r.Fault = f
		if f.Says != nil {
			r.Sentence = sentence(r.Log, given[i].Addr, f.Says)
		}
		if f.Check != nil {
			r.Wrong = f.Check(&given[i], sink)
		}
		// Each has its share of what several have written together.
		r.LogBytes /= len(faults)
		results = append(results, &r)
	}
	return results
}

// watch waits until the working servers were read as often as the pace says, ends
// the collector, and measures in that time.
func watch(t *testing.T, c *collector.Process, shipped *Shipped, sink *Sink, working []*neighbor, p pace, push func(context.Context)) *Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var pushing sync.WaitGroup
	pushing.Go(func() { push(ctx) })
	defer pushing.Wait()
	defer cancel()

	r := &Result{}
	look := func() bool {
		if c.Ended() != nil {
			r.Killed = "the collector ended by itself"
			return false
		}
		m, err := c.Use()
		if err != nil {
			return true // It ends at this moment.
		}
		r.Peak = max(r.Peak, m.Peak)
		if m.Resident > 2*shipped.Memory {
			r.Killed = "killed by the test at twice the container's limit of memory"
			return false
		}
		return true
	}
	until := func(limit time.Duration, done func() bool) {
		for end := time.Now().Add(limit); time.Now().Before(end) && look() && !done(); {
			time.Sleep(50 * time.Millisecond)
		}
	}
	until(time.Duration(p.scrapes)*p.interval+p.interval/2, func() bool { return false })
	reads := make([]int64, len(working))
	for i, n := range working {
		reads[i] = n.reads.Load()
		r.Reads += int(reads[i])
	}
	lost := func() int {
		sum := 0
		for i, n := range working {
			sum += sink.lost(n.addr, reads[i])
		}
		return sum
	}
	until(drain, func() bool { return lost() == 0 })
	r.Lost = lost()
	for _, n := range working {
		r.Skipped += n.skipped(p.interval)
	}
	if r.Killed == "" {
		r.Stop, r.Exit = c.Process.Stop(3 * mostStop)
	} else {
		_, _ = c.Process.Stop(0)
	}
	r.Log = afterStart(c.Log())
	r.LogBytes = len(r.Log)
	return r
}

// together joins two sections of discovery.
func together(a, b map[string]any) map[string]any {
	if a == nil {
		return b
	}
	for key, list := range b {
		ours, _ := a[key].([]any)
		theirs, _ := list.([]any)
		a[key] = append(ours, theirs...)
	}
	return a
}

func clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
