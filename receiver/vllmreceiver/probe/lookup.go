package probe

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// Permission is what the discovery needs of Kubernetes: to list and watch a resource.
type Permission = discover.Permission

// Discovered is what the discovery of a configuration has found.
type Discovered struct {
	// Probes are those of the targets that it found, in the order of their addresses, without
	// those that the configuration lists itself. Over is the number of targets above
	// limits::targets.
	Probes []*Probe
	Over   int
	// Warnings are what the discovery logs, as a list that cannot be read. Each is there once.
	Warnings []string
}

// settled is how long the discovery may find nothing new until it counts as complete.
const settled = 300 * time.Millisecond

// Discover runs the discovery of a configuration until it has found targets and then finds
// no others, or for the given time. It fails where the discovery can never work.
func Discover(ctx context.Context, cfg *vllmreceiver.Config, telemetry component.TelemetrySettings, atMost time.Duration) (*Discovered, error) {
	core, logged := observer.New(zapcore.WarnLevel)
	telemetry.Logger = zap.New(core)
	group, err := newGroup(cfg, telemetry)
	if err != nil {
		return nil, err
	}
	type state struct {
		targets []discover.Target
		over    int
	}
	states := make(chan state)
	runner, err := discover.NewRunner(&cfg.Discovery.Settings, discover.Options{
		Logger:   telemetry.Logger,
		Defaults: discover.Defaults{Interval: cfg.Controller.CollectionInterval, Timeout: cfg.Client.Timeout},
		Limit:    cfg.Limits.Targets, Delay: settled / 6,
		Wanted: func(ctx context.Context, targets []discover.Target, over int) bool {
			select {
			case states <- state{slices.Clone(targets), over}:
			case <-ctx.Done():
			}
			return true
		},
	})
	if err != nil {
		return nil, err
	}
	if err := runner.Start(); err != nil {
		return nil, err
	}
	var last state
	end := time.After(atMost)
	var quiet <-chan time.Time
wait:
	for {
		select {
		case last = <-states:
			if len(last.targets) > 0 {
				quiet = time.After(settled)
			}
		case <-quiet:
			break wait
		case <-end:
			break wait
		case <-ctx.Done():
			break wait
		}
	}
	// What does not end in time ends later by itself, as a watch that waits for its next try.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), settled)
	defer cancel()
	_ = runner.Shutdown(stop)
	out := &Discovered{Over: last.over}
	out.add(group, cfg, last.targets)
	texts := map[string]bool{}
	for _, entry := range logged.All() {
		texts[entry.Message] = true
	}
	out.Warnings = slices.Sorted(maps.Keys(texts))
	return out, nil
}

// add adds probes of targets that the configuration does not list itself.
func (d *Discovered) add(group *scrape.Group, cfg *vllmreceiver.Config, targets []discover.Target) {
	listed := map[string]bool{}
	for _, server := range scrape.Configured(cfg) {
		listed[server.Address.String()] = true
	}
	for i := range targets {
		if !listed[targets[i].URL.String()] {
			d.Probes = append(d.Probes, newProbe(group, scrape.Discovered(cfg, &targets[i])))
		}
	}
}
