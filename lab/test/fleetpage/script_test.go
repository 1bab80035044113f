// Package fleetpage looks at the page of the extension vllm_fleet in a real browser.
package fleetpage

import (
	"fmt"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// script is a processor that says what a test has written. It tells changes as the processor does.
type script struct {
	mu      sync.Mutex
	engines []fleet.Engine
	pools   []fleet.Pool
	budgets []fleet.Budget
	details map[string][]wording.Signal
	tell    func([]fleet.Event)
}

// Snapshot implements fleet.Source. The data are as new as in a collector that scrapes.
func (s *script) Snapshot() *fleet.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := &fleet.Snapshot{Window: time.Minute, Pools: append([]fleet.Pool{}, s.pools...), Budgets: s.budgets}
	now := time.Now()
	for _, e := range s.engines {
		e.Resource = e.Server
		if e.Read && e.Failure == "" {
			e.At, e.Arrived = now, now
		}
		known.Engines = append(known.Engines, e)
	}
	return known
}

// Detail implements fleet.Source, with the words of the catalogue.
func (s *script) Detail(key string) *fleet.Detail {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.engines {
		if e.Key == key {
			return &fleet.Detail{Words: words(e.Diagnosis, ""), Evidence: s.details[key], Board: "https://grafana.example/d/vllm-engine"}
		}
	}
	for _, p := range s.pools {
		if p.Key == key {
			return &fleet.Detail{Words: words(p.Diagnosis, p.Name)}
		}
	}
	return nil
}

func words(d fleet.Diagnosis, pool string) wording.Words {
	return wording.Of(&wording.Diagnosis{Condition: d.Condition, Cause: d.Cause, Detail: d.Detail, Pool: pool}, wording.EnabledByDefault)
}

// become changes the condition of an engine now.
func (s *script) become(key, condition, cause string, numbers ...float64) {
	s.mu.Lock()
	var event fleet.Event
	for i := range s.engines {
		if e := &s.engines[i]; e.Key == key {
			from := e.Condition
			e.Diagnosis = diagnosis(condition, cause, 0)
			copy(e.Numbers[:], numbers)
			event = fleet.Event{Key: key, At: e.Since, Subject: e.Server, From: from, Diagnosis: e.Diagnosis, Sentence: words(e.Diagnosis, "").Sentence}
		}
	}
	s.mu.Unlock()
	s.tell([]fleet.Event{event})
}

func diagnosis(condition, cause string, ago time.Duration) fleet.Diagnosis {
	d := fleet.Diagnosis{Condition: condition, Cause: cause, Since: time.Now().Add(-ago)}
	if known, is := catalog.ConditionByName(condition); is {
		d.Severity = known.Severity
	}
	return d
}

// newScript has healthy engines, named gpu-0 and so on.
func newScript(engines int) *script {
	s := &script{details: map[string][]wording.Signal{}}
	for i := range engines {
		wave := math.Abs(math.Sin(float64(i)))
		s.engines = append(s.engines, fleet.Engine{
			Key: fmt.Sprintf("%016x", i+1), Server: fmt.Sprintf("gpu-%d:8000", i), Address: fmt.Sprintf("gpu-%d:8000", i),
			Namespace: "serving", Pod: fmt.Sprintf("llama-%d", i), Node: fmt.Sprintf("node-%d", i/8),
			Model: "meta-llama/Llama-3.1-8B-Instruct", Engine: "0", Version: "0.32.0", Diagnosis: diagnosis("healthy", "", 26*time.Hour),
			Read: true, Interval: 15 * time.Second,
			Numbers: [...]float64{
				fleet.Running: math.Round(20 + 20*wave), fleet.Waiting: 0, fleet.KV: 0.2 + wave/2,
				fleet.FirstToken: 0.15 + wave/10, fleet.FirstTokenUsual: 0.2, fleet.TokenGap: 0.012 + wave/200, fleet.TokenGapUsual: 0.0141,
			},
		})
	}
	s.pools = []fleet.Pool{{Key: "ffffffffffffffff", Name: "meta-llama/Llama-3.1-8B-Instruct", Diagnosis: diagnosis("healthy", "", 26*time.Hour), Engines: engines}}
	return s
}

// served is the extension at an address, which it has again after it was stopped and started.
type served struct {
	extension.Extension
	url string
}

// serve starts the extension with a script, on a loopback address; empty for a free one.
func serve(t *testing.T, s *script, address string) served {
	t.Helper()
	if address == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address = listener.Addr().String()
		require.NoError(t, listener.Close())
	}
	factory := vllmfleetextension.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmfleetextension.Config)
	config.NetAddr.Endpoint = address
	made, err := factory.Create(t.Context(), extension.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, config)
	require.NoError(t, err)
	s.tell, _ = made.(fleet.Registry).Join("vllm", s)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	return served{made, "http://" + address}
}

// hour draws the curves of the last hour. change, where it is not nil, sets what the engines have at a minute of it.
func (s served) hour(of *script, change func(minute int)) {
	for minute := range 60 {
		if change != nil {
			of.mu.Lock()
			change(minute)
			of.mu.Unlock()
		}
		s.Extension.(interface{ RecordAt(at time.Time) }).RecordAt(time.Now().Add(time.Duration(minute-60) * time.Minute))
	}
}

// incident is a fleet of two models with an incident whose cause is known, and with servers that are ill otherwise.
func incident() *script {
	s := newScript(11)
	for i := range s.engines {
		s.engines[i].Server = fmt.Sprintf("gpu-%02d:8000", i)
	}
	s.pools[0].Engines = 8
	for i := 8; i < 11; i++ {
		s.engines[i].Model = "Qwen/Qwen3-32B"
	}
	s.pools = append(s.pools, fleet.Pool{Key: "fffffffffffffffe", Name: "Qwen/Qwen3-32B", Diagnosis: diagnosis("healthy", "", 50*time.Hour), Engines: 3})

	slow := &s.engines[2]
	slow.Diagnosis = diagnosis("critical", "slow_steps", 7*time.Minute)
	slow.Detail = "thermal"
	slow.Numbers = [...]float64{fleet.Running: 96, fleet.Waiting: 38, fleet.KV: 0.91, fleet.FirstToken: 4.2, fleet.FirstTokenUsual: 0.21, fleet.TokenGap: 0.0483, fleet.TokenGapUsual: 0.0141}
	s.details[slow.Key] = []wording.Signal{
		{Name: "step_time_factor", Value: 3.1, Usual: 1},
		{Name: "step_time_mean", Value: 0.0461, Usual: 0.0138},
		{Name: "inter_token_latency_mean", Value: 0.0483, Usual: 0.0141},
		{Name: "running", Value: 96, Usual: 31},
	}
	hung := &s.engines[9]
	hung.Diagnosis = diagnosis("stalled", "", 3*time.Minute)
	hung.Numbers = [...]float64{fleet.Running: 41, fleet.Waiting: 17, fleet.KV: 0.66, fleet.FirstToken: math.NaN(), fleet.FirstTokenUsual: 0.3, fleet.TokenGap: math.NaN(), fleet.TokenGapUsual: 0.021}
	pressed := &s.engines[5]
	pressed.Diagnosis = diagnosis("degraded", "kv_pressure", 23*time.Minute)
	copy(pressed.Numbers[:], []float64{52, 6, 0.99})
	gone := &s.engines[10]
	gone.Diagnosis = diagnosis("unreachable", "", 40*time.Second)
	gone.Failure, gone.At, gone.Arrived = "refused", time.Now().Add(-55*time.Second), time.Now()
	never := fleet.Engine{Key: "0000000000001000", Server: "gpu-11:8000", Address: "gpu-11:8000", Diagnosis: diagnosis("starting", "", 90*time.Second), Failure: "refused", At: time.Unix(0, 0), Interval: 15 * time.Second}
	for i := range never.Numbers {
		never.Numbers[i] = math.NaN()
	}
	for i := range gone.Numbers {
		gone.Numbers[i] = math.NaN()
	}
	s.engines = append(s.engines, never)
	s.pools[0].Diagnosis = diagnosis("degraded", "imbalanced", 5*time.Minute)
	s.budgets = []fleet.Budget{
		{Objective: "time_to_first_token", Server: "gpu-02:8000", Model: s.engines[0].Model, Remaining: -0.42, Burn: 14.4},
		{Objective: "time_to_first_token", Server: "gpu-03:8000", Model: s.engines[0].Model, Remaining: 0.87, Burn: 0.31},
	}
	return s
}

// incidentHour is the last hour of an incident: each engine has its own, and the ill ones become so.
func (s served) incidentHour(of *script) {
	of.mu.Lock()
	now := append([]fleet.Engine{}, of.engines...)
	of.mu.Unlock()
	s.hour(of, func(minute int) {
		for i := range of.engines {
			e, last := &of.engines[i], &now[i]
			wave := 1 + 0.15*math.Sin(float64(minute)/5+float64(i)) + 0.1*math.Sin(float64(minute)/1.9+float64(3*i))
			well := time.Now().Add(time.Duration(minute-60) * time.Minute).Before(last.Since)
			for n := range e.Numbers {
				e.Numbers[n] = last.Numbers[n] * wave
			}
			if well {
				e.Numbers[fleet.FirstToken], e.Numbers[fleet.TokenGap] = last.Numbers[fleet.FirstTokenUsual]*wave, last.Numbers[fleet.TokenGapUsual]*wave
				e.Numbers[fleet.Waiting] = 0
			}
		}
	})
	of.mu.Lock()
	of.engines = now
	of.mu.Unlock()
	for _, i := range []int{5, 2, 9, 10} {
		e := now[i]
		of.tell([]fleet.Event{{Key: e.Key, At: e.Since, Subject: e.Server, From: "healthy", Diagnosis: e.Diagnosis, Sentence: words(e.Diagnosis, "").Sentence}})
	}
}
