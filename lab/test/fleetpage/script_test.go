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
