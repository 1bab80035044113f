package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// parseChange reads what -change takes.
func parseChange(text string) (engine.Change, error) {
	var change engine.Change
	at, rest, timed := strings.Cut(text, ":")
	name, value, valued := strings.Cut(rest, "=")
	if !timed || !valued {
		return change, errors.New("want TIME:PARAMETER=VALUE, for example 60s:bandwidth=0.5")
	}
	after, err := time.ParseDuration(at)
	if err != nil {
		return change, fmt.Errorf("time %q: want a duration, for example 60s", at)
	}
	change.At = after.Seconds()
	if change.Parameter, err = engine.ParseParameter(name); err != nil {
		return change, err
	}
	value, number, one := strings.Cut(value, "@")
	if one {
		n, err := strconv.Atoi(number)
		if err != nil {
			return change, fmt.Errorf("engine %q is not a number", number)
		}
		change.Engines = []int{n}
	}
	if change.Value, err = strconv.ParseFloat(value, 64); err != nil {
		return change, fmt.Errorf("value %q is not a number", value)
	}
	return change, nil
}

// openWithScenario are the flags that can be combined with a scenario file.
var openWithScenario = []string{
	"scenario", "speed", "listen", "gpu-listen", "for", "uptime", "dialect", "vllm-version", "model", "targets", "api-servers", "seed", "mfu", "truth",
	"served-model-name",
}

// withScenario returns the configuration of a scenario file and of the flags that can be
// combined with it, and the story in lines.
func withScenario(path string, given vllmsim.Config, flags *flag.FlagSet) (vllmsim.Config, []string, error) {
	s, err := scenario.Load(path)
	if err != nil {
		return given, nil, err
	}
	for _, note := range s.Notes {
		fmt.Fprintf(flags.Output(), "vllmsim: %s: %s\n", path, note)
	}
	if sought := s.Sought(); sought != "" {
		return given, nil, fmt.Errorf("%s: effect: a server does not seek the values of %s; \"vllmsim judge\" does and prints them: write these under set", path, sought)
	}
	cfg := s.Config
	flags.Visit(func(f *flag.Flag) {
		switch {
		case !slices.Contains(openWithScenario, f.Name):
			err = usagef("-%s: it cannot be combined with -scenario, whose file determines it", f.Name)
		case f.Name == "targets" && cfg.Targets > 0:
			err = usagef("-targets: it cannot be combined with this file, which has %d servers", cfg.Targets)
		case f.Name == "seed":
			cfg.Seed = given.Seed
		}
	})
	cfg.Dialect, cfg.Version, cfg.Model = given.Dialect, given.Version, given.Model
	cfg.APIServers, cfg.FlopsCounters = given.APIServers, cfg.FlopsCounters || given.FlopsCounters
	cfg.ServedModel = given.ServedModel
	if cfg.Targets == 0 {
		cfg.Targets = given.Targets
	}
	story := append([]string{fmt.Sprintf("%s, %s: %s", s.Name, s.Length, s.About)}, s.Plan()...)
	return cfg, story, err
}

// truthLine is one request in the file of -truth. Times are in seconds since
// the server became ready for the first time.
type truthLine struct {
	Server      int     `json:"server"`
	Engine      int     `json:"engine"`
	ID          int     `json:"id"`
	First       *int    `json:"first_attempt,omitempty"` // Where the request is a retry.
	Arrived     float64 `json:"arrived"`
	Ended       float64 `json:"ended"`
	Outcome     string  `json:"outcome"`
	Queue       float64 `json:"queue_seconds"`
	FirstToken  float64 `json:"first_token_seconds"`
	MeanGap     float64 `json:"mean_gap_seconds"`
	MaxGap      float64 `json:"max_gap_seconds"`
	Prompt      int     `json:"prompt_tokens"`
	Cached      int     `json:"cached_tokens"`
	Output      int     `json:"output_tokens"`
	Preemptions int     `json:"preemptions"`
}

// injectedLine is one change or fault of a server, in the same file; a line
// with "injected" is not a request. Value is that of a change, Until the end of a fault.
type injectedLine struct {
	Injected string   `json:"injected"`
	Server   int      `json:"server"`
	Engines  []int    `json:"engines,omitempty"`
	At       float64  `json:"at"`
	Value    *float64 `json:"value,omitempty"`
	Until    *float64 `json:"until,omitempty"`
}

// truthFile writes the truth, one line per fact. Servers write concurrently.
type truthFile struct {
	mu      sync.Mutex
	encoder *json.Encoder
	stderr  io.Writer
	failed  bool
}

func newTruthFile(file, stderr io.Writer) *truthFile {
	return &truthFile{encoder: json.NewEncoder(file), stderr: stderr}
}

func (f *truthFile) outcome(server int, o engine.Outcome) {
	line := truthLine{
		Server: server, Engine: o.Engine, ID: o.ID, Arrived: o.Arrived, Ended: o.Ended, Outcome: o.End.String(),
		Queue: o.Queue, FirstToken: o.FirstToken, MeanGap: o.MeanGap, MaxGap: o.MaxGap,
		Prompt: o.Prompt, Cached: o.Cached, Output: o.Output, Preemptions: o.Preemptions,
	}
	if o.First != o.ID {
		line.First = &o.First
	}
	f.write(line)
}

func (f *truthFile) injected(server int, what vllmsim.Injection) {
	if fault := what.Fault; fault != nil {
		f.write(injectedLine{Injected: string(fault.Kind), Server: server, At: fault.At, Until: &fault.Until})
		return
	}
	ch := what.Change
	f.write(injectedLine{Injected: ch.Parameter.String(), Server: server, Engines: ch.Engines, At: ch.At, Value: &ch.Value})
}

// write reports once that writing fails. The servers continue.
func (f *truthFile) write(line any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed {
		return
	}
	if err := f.encoder.Encode(line); err != nil {
		f.failed = true
		fmt.Fprintf(f.stderr, "vllmsim serve: cannot write the truth, no more lines follow: %v\n", err)
	}
}
