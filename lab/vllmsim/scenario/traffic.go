package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/traffic"
)

// source is where the requests of a workload come from, as far as the file says it.
type source struct {
	// at is the place of the workload in the file, given are the keys that it has.
	at    *node
	given []string
	// trace is the value of that key, nil without it; name is a generator.
	trace *node
	name  string
}

func (f *source) has(key string) bool { return slices.Contains(f.given, key) }

// replays reports whether there is traffic instead of drawn requests.
func (f *source) replays() bool { return f.trace != nil || f.name != "" }

// fields are the keys of a workload that say where its requests come from.
func (f *source) fields(w *engine.Workload) []field {
	return []field{
		{"trace", func(n *node) error { f.trace = n; return f.begin(w) }},
		{"traffic", func(n *node) (err error) {
			if f.name, err = n.text(); err == nil && !slices.Contains(traffic.Names(), f.name) {
				err = n.errorf("unknown traffic %q: want one of %s", f.name, strings.Join(traffic.Names(), ", "))
			}
			if err != nil {
				return err
			}
			return f.begin(w)
		}},
		number("speed", &w.Speed, 0.001, 1000),
		{"from", func(n *node) (err error) { w.From, err = n.seconds(mostFrom); return err }},
		integer("clients", &w.Clients, 1, 4096),
		span("think", &w.Think, 0, week),
		span("think_max", &w.ThinkMost, time.Millisecond, week),
		integer("retries", &w.Retries, 1, 7),
		span("retry_after", &w.RetryAfter, 0, time.Hour),
	}
}

// mostFrom is the latest beginning within a trace.
const mostFrom = 100 * 24 * time.Hour

// begin makes a workload one of traffic, in which nothing happens that is not asked for.
func (f *source) begin(w *engine.Workload) error {
	if f.trace != nil && f.name != "" {
		return f.trace.errorf("a trace and traffic are two sources of requests; want one of them")
	}
	chat := engine.Chat(0)
	*w = engine.Workload{Prefixes: chat.Prefixes, PrefixTokens: chat.PrefixTokens, PrefixSkew: chat.PrefixSkew}
	return nil
}

// Keys that mean nothing with another source of requests.
var (
	keysOfTimes   = []string{"rate", "arrival_variation", "swing", "period", "burst_factor", "burst_every", "burst_length"}
	keysOfLengths = []string{"like", "prompt_median", "prompt_sigma", "output_median", "output_sigma"}
)

// resolve reads or generates the traffic and checks how the keys go together.
func (f *source) resolve(s *Scenario) error {
	w := s.Config.Workload
	if err := f.check(w); err != nil {
		return err
	}
	var err error
	switch {
	case f.trace != nil:
		w.Traffic, err = f.read()
	case f.name != "":
		// What is longer than a day begins again.
		span := min(max(s.Length, time.Hour), 24*time.Hour)
		w.Traffic, err = traffic.Generate(f.name, s.Config.Seed, w.Rate, span.Seconds())
		if err != nil {
			err = f.at.errorf("traffic %q: %w", f.name, err)
		}
	}
	if err != nil {
		return err
	}
	if w.Traffic != nil {
		if err := f.checkLoop(w); err != nil {
			return err
		}
	}
	s.Notes = append(s.Notes, f.notes(w)...)
	if f.name == "" && f.replays() {
		w.Rate = 0
	}
	return nil
}

func (f *source) check(w *engine.Workload) error {
	for _, c := range []struct {
		key   string
		wrong bool
		want  string
	}{
		{"speed", !f.replays(), "trace or traffic"},
		{"from", !f.replays(), "trace or traffic"},
		{"think", w.Clients == 0, "clients"},
		{"think_max", w.Clients == 0, "clients"},
		{"retry_after", w.Retries == 0, "retries"},
	} {
		if c.wrong && f.has(c.key) {
			return f.at.errorf("%s: it goes with %s and means nothing without", c.key, c.want)
		}
	}
	if !f.replays() && w.Clients == 0 && w.Rate == 0 {
		return f.at.errorf("rate: missing or 0; want requests per second, or a trace, traffic or clients")
	}
	return nil
}

// checkLoop checks that clients and traffic fit.
func (f *source) checkLoop(w *engine.Workload) error {
	what := "traffic " + f.name
	if f.trace != nil {
		what = f.trace.yaml.Value
	}
	switch closed := len(w.Traffic.Conversations) > 0; {
	case closed && w.Clients == 0:
		return f.at.errorf("clients: missing; %s has conversations, whose clients wait for their answers; give the number of clients that work side by side", what)
	case !closed && w.Clients > 0:
		return f.at.errorf("clients: %s has the times of its requests, so that no client waits for its answer; leave clients out, or take one with conversations", what)
	}
	return nil
}

// notes are about keys that have no effect.
func (f *source) notes(w *engine.Workload) []string {
	none := map[string]string{}
	add := func(reason string, keys ...string) {
		for _, key := range keys {
			if f.has(key) && none[key] == "" {
				none[key] = reason
			}
		}
	}
	switch {
	case f.trace != nil:
		add("the trace determines", keysOfTimes...)
		add("the trace determines", keysOfLengths...)
	case f.name != "":
		add("the traffic determines", keysOfTimes[1:]...) // It has a rate.
		add("the traffic determines", keysOfLengths...)
	}
	if w.Clients > 0 {
		add("the closed loop of clients determines", append(slices.Clone(keysOfTimes), "speed", "from")...)
	}
	if w.Traffic != nil {
		add("the recorded pauses determine", "think")
		if w.Traffic.BlockTokens > 0 {
			add("the prefix blocks of the traffic determine", "prefix_share", "prefixes", "prefix_tokens", "prefix_skew")
		}
	}
	var out []string
	for _, key := range f.given {
		if reason := none[key]; reason != "" {
			out = append(out, fmt.Sprintf("workload.%s has no effect: %s it", key, reason))
		}
	}
	if t := w.Traffic; t != nil && w.Clients == 0 && w.From >= t.Span {
		out = append(out, fmt.Sprintf("workload.from is beyond the end of the traffic, which lasts %.6g s and then begins again: the story begins at its second %.6g", t.Span, math.Mod(w.From, t.Span)))
	}
	return out
}

// noteCut reports requests that are longer than the model allows.
func (s *Scenario) noteCut(modelLen int) {
	t := s.Config.Workload.Traffic
	if t == nil {
		return
	}
	if longer, of := t.Longer(modelLen); longer > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d requests of the traffic are longer than max_model_len, %d tokens, and are cut to it", longer, of, modelLen))
	}
}

// read reads the trace. Its file is relative to the folder of the scenario, else to the
// working directory.
func (f *source) read() (*engine.Traffic, error) {
	name, err := f.trace.text()
	if err != nil {
		return nil, err
	}
	path := name
	if !filepath.IsAbs(name) {
		if beside := filepath.Join(filepath.Dir(f.trace.path), name); exists(beside) {
			path = beside
		}
	}
	t, err := readTrace(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.trace.errorf("there is no file %s, neither in the folder of this file nor in the working directory", name)
	case err != nil:
		return nil, f.trace.errorf("%w", err)
	}
	return t, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// traces are the traces that were read last, so that servers and runs share them.
var traces struct {
	sync.Mutex
	read []readFile
}

// mostTraces is how many traces are kept; one of a day with 200,000 requests is some 10 MB.
const mostTraces = 8

type readFile struct {
	path    string
	size    int64
	changed time.Time
	traffic *engine.Traffic
}

// readTrace reads a trace, unless it was read before and has not changed since.
func readTrace(path string) (*engine.Traffic, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	traces.Lock()
	defer traces.Unlock()
	for _, f := range traces.read {
		if f.path == path && f.size == info.Size() && f.changed.Equal(info.ModTime()) {
			return f.traffic, nil
		}
	}
	t, err := traffic.Read(path)
	if err != nil {
		return nil, err
	}
	traces.read = slices.DeleteFunc(traces.read, func(f readFile) bool { return f.path == path })
	if len(traces.read) == mostTraces {
		traces.read = slices.Delete(traces.read, 0, 1)
	}
	traces.read = append(traces.read, readFile{path, info.Size(), info.ModTime(), t})
	return t, nil
}
