package vllmprocessor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// PoolConfig adds up servers that share attributes. A pool is what comes through
// one pipeline of one collector: its points belong to the resource of that
// collector, which must have a service.instance.id of its own where several
// write to one backend, and to the component, which the attribute
// otelcol.component.id of the resource names.
type PoolConfig struct {
	// GroupBy are the names of attributes, of points or of resources: servers
	// with equal values make a pool. A server that lacks an attribute belongs to
	// the pool without it.
	GroupBy []string `mapstructure:"group_by"`
	// Interval is the time between two points of a pool.
	Interval time.Duration `mapstructure:"interval"`

	_ struct{}
}

func defaultPoolConfig() PoolConfig {
	return PoolConfig{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}
}

// minPoolInterval is the shortest interval: servers are not scraped more often.
const minPoolInterval = time.Second

func (c *Config) validatePool(add func(key, format string, args ...any)) {
	pool := c.Pool.Get()
	if pool == nil {
		return
	}
	switch {
	case pool.Interval > 0 && pool.Interval <= withoutUnit:
		add("pool::interval", "%d has no unit; write %ds", pool.Interval, pool.Interval)
	case pool.Interval < minPoolInterval:
		add("pool::interval", "%s is too short; write the time between two scrapes, for example 15s", pool.Interval)
	}
	if len(pool.GroupBy) == 0 {
		add("pool::group_by", "says no attribute; write for example [model_name], or an attribute that all servers share for one pool of all")
	}
	for i, name := range pool.GroupBy {
		key := fmt.Sprintf("pool::group_by::%d", i)
		switch {
		case strings.TrimSpace(name) == "" || strings.ContainsFunc(name, isSpaceOrControl):
			add(key, "%q is no name of an attribute; write for example model_name", name)
		case slices.Contains(pool.GroupBy[:i], name):
			add(key, "%s is there twice; remove one", name)
		case name == "engine":
			add(key, "a pool adds up the engines of its servers, so it cannot be grouped by engine; remove it")
		case name == "quantile" || name == "signal":
			add(key, "%s is an attribute that the metrics of pools have already; remove it, or rename yours before this processor", name)
		case isInputLabel(name):
			add(key, "%s tells values of one server apart, not servers; remove it", name)
		case name != "model_name" && letters(name) == "modelname":
			add(key, "%q is not what the attribute is called; write model_name", name)
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

// isInputLabel tells whether an attribute belongs to single metrics, as
// finished_reason does, and never to an engine.
func isInputLabel(name string) bool {
	for in := range collect.NumInputs {
		if slices.Contains(in.Define().Labels, name) {
			return true
		}
	}
	return name == "le"
}
