package vllmreceiver

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
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
func Discover(ctx context.Context, cfg *Config, telemetry component.TelemetrySettings, atMost time.Duration) (*Discovered, error) {
	core, logged := observer.New(zapcore.WarnLevel)
	telemetry.Logger = zap.New(core)
	// A probe asks /health itself.
	own := *cfg
	own.HealthCheck = false
	r, err := newReceiver(&own, receiver.Settings{ID: component.NewID(NewFactory().Type()), TelemetrySettings: telemetry}, nil)
	if err != nil {
		return nil, err
	}
	type state struct {
		targets []discover.Target
		over    int
	}
	states := make(chan state)
	runner, err := discover.NewRunner(&own.Discovery.Settings, discover.Options{
		Logger:   telemetry.Logger,
		Defaults: discover.Defaults{Interval: own.Controller.CollectionInterval, Timeout: own.Client.Timeout},
		Limit:    own.Limits.Targets, Delay: settled / 6,
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
	out.add(r, last.targets)
	texts := map[string]bool{}
	for _, entry := range logged.All() {
		texts[entry.Message] = true
	}
	out.Warnings = slices.Sorted(maps.Keys(texts))
	return out, nil
}

// add adds probes of targets that the configuration does not list itself.
func (d *Discovered) add(r *vllmReceiver, targets []discover.Target) {
	listed := map[string]bool{}
	for _, t := range configuredTargets(r.shared.config) {
		listed[t.address.String()] = true
	}
	for _, t := range targets {
		address := t.URL.String()
		if listed[address] {
			continue
		}
		client := r.shared.config.Client
		client.Endpoint, client.Timeout = address, t.Timeout
		d.Probes = append(d.Probes, r.newProbe(target{
			address: t.URL, client: client, discovered: t.Attributes, interval: t.Interval, pod: podOf(t.Pod),
		}))
	}
}
