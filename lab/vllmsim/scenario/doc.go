// Package scenario reads scenario files: a simulated server, its workload, and the
// changes of both over time. examples/scenarios has some.
//
// A file changes the physics, never a metric.
package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Scenario is one file.
type Scenario struct {
	// Name is that of the file, without folder and ending.
	Name string
	// About is one sentence for the user.
	About string
	// Length is how long the story takes; nothing changes afterwards.
	Length time.Duration
	// Config has all but what the caller chooses: clock, dialect, truth. Its changes are
	// those of Injections, without those whose value is sought.
	Config vllmsim.Config
	// Injections are the entries of "changes", one for each parameter.
	Injections []Injection
	// Interval is the time between two scrapes, and Processor has the settings of the
	// processor, for "vllmsim judge"; a server ignores both.
	Interval  time.Duration
	Processor map[string]any
	// Notes are sentences for the user, such as that a key has no effect.
	Notes []string
	// settings is where Processor is in the file; nil where it is not there.
	settings *node
}

// Injection is one parameter of an entry of "changes". Times are in seconds.
type Injection struct {
	Parameter engine.Parameter
	// Over is the length of the ramp up to Value. Until is when the value before returns,
	// +Inf for never.
	At, Over, Until float64
	Value           float64
	// Effect asks for the value whose harm is so many times the bar of harm; 0 means that
	// Value is given.
	Effect           float64
	Engines, Servers []int
}

// Load reads a file. Errors name the file, the line and the key, and what would
// be right.
func Load(path string) (Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, err
	}
	return parse(path, text)
}

func parse(path string, text []byte) (Scenario, error) {
	s := Scenario{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	root, err := open(path, text)
	if err != nil {
		return s, err
	}
	if err := s.read(root); err != nil {
		return s, err
	}
	// The simulation checks conditions over several keys.
	server, err := vllmsim.New(s.Config)
	if errors.Is(err, engine.ErrSmallCache) {
		at := cmp.Or(root.child("kv_cache_tokens"), root.child("max_model_len"), root)
		return s, at.errorf("%w; raise kv_cache_tokens, or lower max_model_len", err)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	s.noteCut(server.MaxModelLen())
	return s, nil
}

// ProcessorAt returns the file and the line of a setting of the processor, by its keys. Elements
// of lists have their numbers as keys. What is not in the file is where the nearest key above
// it is.
func (s *Scenario) ProcessorAt(keys ...string) string {
	at := s.settings
	if at == nil {
		return s.Name
	}
	for _, key := range keys {
		inner := at.child(key)
		if inner == nil {
			break
		}
		at = inner
	}
	return fmt.Sprintf("%s:%d", at.path, at.yaml.Line)
}

// Plan returns the changes and faults, a line each, in the order of their times.
func (s Scenario) Plan() []string {
	var out []string
	injections, faults := s.Injections, s.Config.Faults
	for len(injections) > 0 || len(faults) > 0 {
		if len(faults) == 0 || (len(injections) > 0 && injections[0].At <= faults[0].At) {
			out = append(out, injections[0].String())
			injections = injections[1:]
			continue
		}
		out = append(out, fmt.Sprintf("%s %s until %s", clock(faults[0].At), faults[0].Kind, clock(faults[0].Until)))
		faults = faults[1:]
	}
	return out
}

// String returns a line for the user.
func (in *Injection) String() string {
	line := fmt.Sprintf("%s %s = %v", clock(in.At), in.Parameter, in.Value)
	if in.Effect > 0 {
		line = fmt.Sprintf("%s %s with an effect of %v", clock(in.At), in.Parameter, in.Effect)
	}
	if in.Over > 0 {
		line += fmt.Sprintf(" over %s", clock(in.Over))
	}
	if end := in.End(); !math.IsInf(end, 1) {
		line += fmt.Sprintf(" until %s", clock(end))
	}
	if len(in.Engines) > 0 {
		line += fmt.Sprintf(" on engines %v", in.Engines)
	}
	if len(in.Servers) > 0 {
		line += fmt.Sprintf(" on servers %v", in.Servers)
	}
	return line
}

func clock(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
