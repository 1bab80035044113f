package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// PoolsConfig adds up servers that share attributes. A pool has the servers of one pipeline
// of one collector. Its points belong to the resource of that collector, which must have
// a service.instance.id of its own where several write to one backend, and to the
// component, which the attribute otelcol.component.id of the resource names.
type PoolsConfig struct {
	// GroupBy are the names of attributes, of points or of resources: servers
	// with equal values make a pool. A server that lacks an attribute belongs to
	// the pool without it.
	GroupBy []string `mapstructure:"group_by"`
	// Interval is the time between two points of a pool.
	Interval time.Duration `mapstructure:"interval"`

	_ struct{}
}

// DefaultPoolsConfig returns the default configuration.
func DefaultPoolsConfig() PoolsConfig {
	return PoolsConfig{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}
}

// minInterval is the shortest interval: servers are not scraped more often.
const minInterval = time.Second

// Check reports all invalid values.
func (c *PoolsConfig) Check(invalid Invalid) {
	if !invalid.LacksUnit("pool::interval", c.Interval) && c.Interval < minInterval {
		invalid("pool::interval", "%s is too short; write the time between two scrapes, for example 15s", c.Interval)
	}
	if len(c.GroupBy) == 0 {
		invalid("pool::group_by", "is empty; write for example [model_name], or an attribute that all servers share for one pool of all")
	}
	for i, name := range c.GroupBy {
		key := fmt.Sprintf("pool::group_by::%d", i)
		switch {
		case strings.TrimSpace(name) == "" || strings.ContainsFunc(name, isSpaceOrControl):
			invalid(key, "%q cannot be the name of an attribute; write for example model_name", name)
		case slices.Contains(c.GroupBy[:i], name):
			invalid(key, "%s is there twice; remove one", name)
		case name == "engine":
			invalid(key, "a pool adds up the engines of its servers, so it cannot be grouped by engine; remove it")
		case name == "quantile" || name == "signal":
			invalid(key, "%s is an attribute that the metrics of pools have already; remove it, or rename yours before this processor", name)
		case isInputLabel(name):
			invalid(key, "%s distinguishes values of one server, not servers; remove it", name)
		case name != "model_name" && letters(name) == "modelname":
			invalid(key, "%q is not what the attribute is called; write model_name", name)
		}
	}
}

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// letters are those of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// isInputLabel reports whether an attribute belongs to single metrics, as
// finished_reason does, and never to an engine.
func isInputLabel(name string) bool {
	for in := range input.NumMetrics {
		if slices.Contains(in.Define().Labels, name) {
			return true
		}
	}
	return name == "le"
}
