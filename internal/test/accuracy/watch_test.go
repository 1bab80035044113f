package accuracy

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// diagnosis is the real processor and its last output.
type diagnosis struct {
	processor.Metrics
	last pmetric.Metrics
}

func (d *diagnosis) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// passed receives the output of the processor.
type passed struct{ *diagnosis }

func (p passed) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	p.last = metrics
	return nil
}

// configuration returns the processor's configuration for a story, with all signals
// enabled if asked for.
func configuration(s *Story, signals bool) map[string]any {
	out := map[string]any{}
	if signals {
		out["metrics"] = map[string]any{
			metricSignal: map[string]any{"enabled": true}, metricSignalRatio: map[string]any{"enabled": true},
		}
	}
	var objectives []any
	for i, o := range s.Objectives {
		objectives = append(objectives, map[string]any{
			"name": fmt.Sprintf("objective-%d", i), "metric": o.Metric(),
			"threshold": seconds(o.Threshold).String(), "target": o.Target,
		})
	}
	if len(objectives) > 0 {
		out["objectives"] = objectives
	}
	if s.BreakEven > 0 {
		out["diagnosis"] = map[string]any{"speculation_break_even": s.BreakEven}
	}
	return out
}

func diagnose(t *testing.T, settings map[string]any) *diagnosis {
	t.Helper()
	factory := vllmprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmprocessor.Config)
	require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
	require.NoError(t, config.Validate())
	d := &diagnosis{}
	var err error
	d.Metrics, err = factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, passed{d})
	require.NoError(t, err)
	return d
}

// watched is a story with the reported diagnosis.
type watched struct {
	story    *Story
	actual   []minute
	reported []Reported
}

// watch runs a story in virtual time and sends its scrapes to the processor.
func watch(t *testing.T, s *Story, signals bool) watched {
	t.Helper()
	out := watched{story: s}
	synctest.Test(t, func(t *testing.T) {
		cfg := s.Config
		cfg.Changes = s.changes(everything)
		w, err := newWorld(cfg, s.Faults)
		require.NoError(t, err)
		d := diagnose(t, configuration(s, signals))
		require.NoError(t, d.Start(t.Context(), componenttest.NewNopHost()))
		scraper := newScraper(w)
		begin := time.Now()
		for at := interval; at <= s.Length; at += interval {
			time.Sleep(time.Until(begin.Add(seconds(at))))
			require.NoError(t, w.advance(at))
			metrics, came := scraper.scrape(w, time.Now(), begin)
			if !came {
				continue
			}
			require.NoError(t, d.ConsumeMetrics(t.Context(), metrics))
			out.reported = append(out.reported, readReported(d.last, "0", at))
		}
		out.actual = w.close()
		require.NoError(t, d.Shutdown(t.Context()))
	})
	return out
}

// server is a nominal server with its workload.
func server(seed uint64, model engine.Model, rate float64) engine.Config {
	return engine.Config{
		Seed: seed, Model: model, Blocks: model.Blocks, BlockSize: blockSize,
		FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(rate),
		// A release that counts blocked lookups again and does not count cached tokens.
		Semantics: engine.Semantics{RecountBlocked: true},
	}
}
