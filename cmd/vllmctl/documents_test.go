package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// schemas are what docs/reference/vllmctl promises about the JSON of each command.
type schemas map[string]map[string]any

func promised(t *testing.T) schemas {
	t.Helper()
	p := schemas{}
	for _, row := range status.Table {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "vllmctl", row.Command+".schema.json"))
		require.NoError(t, err)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(text, &schema))
		p[row.Command] = schema
	}
	return p
}

// holds compares a value of the output of a command with its schema.
func (p schemas) holds(t *testing.T, command, at string, schema map[string]any, value any) {
	t.Helper()
	if name, is := schema["$ref"].(string); is {
		definitions, _ := p[command]["$defs"].(map[string]any)
		definition, known := definitions[strings.TrimPrefix(name, "#/$defs/")].(map[string]any)
		require.True(t, known, "%s: there is no %s", command, name)
		p.holds(t, command, at, definition, value)
		return
	}
	kinds, several := schema["type"].([]any)
	if !several {
		kinds = []any{schema["type"]}
	}
	kind := fmt.Sprint(schema["type"])
	switch value := value.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
	case string:
		kind = "string"
		if schema["format"] == "date-time" {
			_, err := time.Parse(time.RFC3339Nano, value)
			assert.NoError(t, err, "%s: %s", command, at)
		}
	case []any:
		kind = "array"
		for _, one := range value {
			p.holds(t, command, at, schema["items"].(map[string]any), one)
		}
	case map[string]any:
		kind = "object"
		properties, _ := schema["properties"].(map[string]any)
		of, _ := schema["additionalProperties"].(map[string]any)
		for key, one := range value {
			if property, known := properties[key].(map[string]any); known {
				p.holds(t, command, at+"."+key, property, one)
			} else if assert.NotNil(t, of, "%s: %s.%s is not in the schema", command, at, key) {
				p.holds(t, command, at+"."+key, of, one)
			}
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			assert.Contains(t, value, key, "%s: %s", command, at)
		}
	}
	assert.Contains(t, kinds, kind, "%s: %s", command, at)
}

// hostile are a C1 control, a line end and a change of direction, which encoding/json leaves as they are.
const hostile = "\u009b2J\u0085\u202e"

// The page has each status that a command ends with, and the schema each key of its JSON. No output has a character that acts
// on a terminal, whatever a server sends.
func TestTheStatusesAndTheKeysAreThoseOfThePage(t *testing.T) {
	p := promised(t)
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	history := newFakeAPI(t)
	for _, s := range history.series {
		s["model_name"], s["namespace"] = "m"+hostile, hostile
	}
	incidents := write("incidents.yaml", "incidents: [{name: a, from: 2026-10-20T01:10:00Z, to: 2026-10-20T01:20:00Z, targets: ['a:8000']}]")
	rules := func(expr string) string {
		return write(expr[:4]+".yaml", "groups: [{name: g, rules: [{alert: A, expr: '"+expr+"'}]}]")
	}
	busy, none := simulator(t, nil), refusedAddress(t)
	odd := simulator(t, func(body string) string {
		return strings.ReplaceAll(body, `model_name="`, `model_name="`+hostile) + "vllm:bad{ 1\n"
	})
	gateway := served(t, "inference_pool_ready_pods{name=\""+hostile+"\"} 1\n")
	top := []string{"top", "--once", "--interval", "1s", "--window", "2s"}
	ends := map[string][]status.Status{}
	for _, c := range []struct {
		want status.Status
		args []string
	}{
		{status.OK, history.args("--all", "--rules", rules("vllm:num_requests_running > 1"))},
		{status.Problem, history.args("--incidents", incidents)},
		{status.Failed, history.args("--rules", rules(`sum(vllm:num_requests_running) by (job) * on (job) {__name__=~"vllm:.*total"} > 1`))},
		{status.OK, []string{"check", "--delay", "20ms", busy, odd, gateway}},
		{status.Problem, []string{"check", "--delay", "20ms", none}},
		{status.Failed, []string{"check"}},
		{status.Warning, []string{"check", "--delay", "20ms", "--strict", odd}},
		{status.OK, []string{"lint", file(t, "right.yaml", rightRules)}},
		{status.Problem, []string{"lint", file(t, "wrong.yaml", wrongRules)}},
		{status.Failed, []string{"lint", filepath.Join(folder, "none.yaml")}},
		{status.Warning, []string{"lint", "--strict", file(t, "warning.yaml", warningRules)}},
		{status.OK, append(top[:6:6], busy, gateway)},
		{status.Problem, append(top[:6:6], busy, none)},
		{status.Failed, append(top[:6:6], gateway)},
	} {
		command := c.args[0]
		ends[command] = append(ends[command], c.want)
		for _, args := range [][]string{c.args, append(c.args[:len(c.args):len(c.args)], "--json")} {
			t.Run(fmt.Sprint(command, c.want, len(args)), func(t *testing.T) {
				t.Parallel()
				code, out, errs := ctl(t, args...)
				assert.Equal(t, c.want, code, "%v: %s", args, errs)
				for _, r := range out + errs {
					require.True(t, r == '\n' || unicode.IsPrint(r), "%U in the output of %v", r, args)
				}
				if len(args) > len(c.args) && out != "" {
					var document any
					decoder := json.NewDecoder(strings.NewReader(out))
					require.NoError(t, decoder.Decode(&document), "%v", args)
					assert.ErrorIs(t, decoder.Decode(new(any)), io.EOF)
					p.holds(t, command, "the document", p[command], document)
				}
			})
		}
	}
	for _, row := range status.Table {
		for number, when := range row.When {
			assert.Equal(t, when != "–", slices.Contains(ends[row.Command], status.Status(number)), "%s %d", row.Command, number)
		}
	}
}

// served is the address of a server with a page of metrics that does not change.
func served(t *testing.T, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
