// Package asked tests what the extension vllm_fleet answers against the schema that it serves.
package asked

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// known is a processor that knows a server with all that can be known and one with nothing.
type known struct{}

const (
	full   = "0123456789abcdef"
	bare   = "00000000000000ff"
	ofPool = "fedcba9876543210"
)

func (known) Snapshot() *fleet.Snapshot {
	now := time.Now()
	diagnosis := fleet.Diagnosis{Condition: "stalled", Severity: 3, Cause: "cause", Detail: "detail", Since: now.Add(-time.Hour)}
	nothing := [fleet.NumNumbers]float64{}
	for n := range nothing {
		nothing[n] = math.NaN()
	}
	return &fleet.Snapshot{
		Window: time.Minute,
		Engines: []fleet.Engine{
			{
				Key: full, Resource: "1", Server: "full", Address: "10.0.0.7:8000", Cluster: "c", Namespace: "n", Pod: "p", Node: "o", Model: "m", Engine: "0", Version: "0.11.0",
				Diagnosis: diagnosis, Failure: "timeout", Read: true, At: now, Arrived: now, Interval: 15 * time.Second,
				Numbers: [fleet.NumNumbers]float64{1e21, 1e-9, 0.5, math.MaxFloat64, -1, 0, math.Inf(-1)},
			},
			{Key: bare, Server: "bare", Numbers: nothing},
		},
		Pools:   []fleet.Pool{{Key: ofPool, Name: "m", Diagnosis: diagnosis, Engines: 2}},
		Budgets: []fleet.Budget{{Objective: "o", Server: "s", Model: "m", Remaining: math.NaN(), Burn: math.Inf(1)}, {}},
	}
}

func (known) Detail(key string) *fleet.Detail {
	if key == bare {
		return &fleet.Detail{}
	}
	return &fleet.Detail{
		Words:    wording.Words{Sentence: "It stands still.", Next: []string{"Restart it."}, Runbook: "https://example.com/stalled.md"},
		Evidence: []wording.Signal{{Name: "waiting", Value: 3, Usual: math.NaN()}},
	}
}

func TestDocumentsAreAsTheSchemaSays(t *testing.T) {
	factory := vllmfleetextension.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmfleetextension.Config)
	config.NetAddr.Endpoint = "127.0.0.1:0"
	settings := extension.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	core, logs := observer.New(zap.InfoLevel)
	settings.Logger = zap.New(core)
	created, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	require.NoError(t, created.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, created.Shutdown(t.Context())) }()
	tell, _ := created.(fleet.Registry).Join("vllm", known{})
	tell([]fleet.Event{{Key: full, At: time.Now(), Subject: "full, engine 0", From: "healthy", Diagnosis: fleet.Diagnosis{Condition: "stalled", Severity: 3}, Sentence: "It stands still."}})

	get := func(path string) string {
		address := "http://" + logs.All()[0].ContextMap()["address"].(string)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(body)
	}
	parsed := func(text string) any {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err)
		return value
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("fleet.json", parsed(get("/api/v1/schema"))))
	whole, err := compiler.Compile("fleet.json")
	require.NoError(t, err)
	check := func(definition, text string) error {
		schema, err := compiler.Compile("fleet.json#/$defs/" + definition)
		require.NoError(t, err)
		if err := schema.Validate(parsed(text)); err != nil {
			return err
		}
		return whole.Validate(parsed(text))
	}
	for path, definition := range map[string]string{
		"/api/v1/fleet": "fleet", "/api/v1/events": "events", "/api/v1/engines/" + full: "detail", "/api/v1/engines/" + bare: "detail", "/api/v1/pools/" + ofPool: "detail",
		"/probe/full": "probe", "/probe/bare": "probe", "/probe/nobody": "probe", "/probe/full?for=liveness": "probe", "/probe/x?for=y": "probe", "/api/v1/engines/nobody": "error",
	} {
		assert.NoError(t, check(definition, get(path)), "%s: %s", path, get(path))
	}

	// The schema is not one that anything satisfies.
	document := get("/api/v1/fleet")
	require.NoError(t, check("fleet", document))
	for old, replacement := range map[string]string{
		`"version":1`: `"version":2`, `"running":null`: `"running":"3"`, `"severity":3`: `"severity":4`, `"fitness":"stalled"`: `"fitness":"well"`,
		`"budgets":`: `"budget":`, `"data_at":"`: `"data_at":"at `, `"id":"` + full: `"id":"` + full + "0",
	} {
		changed := strings.Replace(document, old, replacement, 1)
		require.NotEqual(t, document, changed, old)
		assert.Error(t, check("fleet", changed), "%s", replacement)
	}
}
