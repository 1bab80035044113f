package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// promise is the page of the commands: the statuses of each, and the keys of the objects of its JSON.
type promise struct {
	statuses map[string][]status.Status
	// root is the first object of a command, and objects are all, by "command object".
	root    map[string]string
	objects map[string]map[string]string
}

func promised(t *testing.T) promise {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "vllmctl.md"))
	require.NoError(t, err)
	p := promise{map[string][]status.Status{}, map[string]string{}, map[string]map[string]string{}}
	row, heading := regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\| "), regexp.MustCompile(`^### JSON of (\w+)$`)
	object := regexp.MustCompile(`^\*\*(\w+)\*\*:`)
	command, name := "", ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if is := heading.FindStringSubmatch(line); is != nil {
			command, name = is[1], "the document"
			p.root[command] = name
		} else if is := object.FindStringSubmatch(line); is != nil && command != "" {
			name = is[1]
		} else if strings.HasPrefix(line, "#") {
			command = ""
		} else if is := row.FindStringSubmatch(line); is != nil && command != "" {
			key := command + " " + name
			if p.objects[key] == nil {
				p.objects[key] = map[string]string{}
			}
			p.objects[key][is[1]] = is[2]
		} else if is := row.FindStringSubmatch(line); len(is) > 2 && len(is[2]) == 1 {
			p.statuses[is[1]] = append(p.statuses[is[1]], status.Status(is[2][0]-'0'))
		}
	}
	return p
}

// holds compares a value of the output of a command with the type that the page gives it.
func (p promise) holds(t *testing.T, command, at, kind string, value any) {
	t.Helper()
	kind = strings.TrimSuffix(kind, ", may be absent")
	if of, is := strings.CutPrefix(kind, "list of "); is {
		list, isList := value.([]any)
		assert.True(t, isList || value == nil, "%s: %s is %T", command, at, value)
		for _, one := range list {
			p.holds(t, command, at, of, one)
		}
		return
	}
	fields, isObject := value.(map[string]any)
	if of, is := strings.CutPrefix(kind, "object of "); is {
		assert.True(t, isObject, "%s: %s is %T", command, at, value)
		for _, one := range fields {
			p.holds(t, command, at, of, one)
		}
		return
	}
	if declared := p.objects[command+" "+kind]; declared != nil {
		assert.True(t, isObject, "%s: %s is %T", command, at, value)
		for key, one := range fields {
			require.Contains(t, declared, key, "%s: %s of %s is not in the table", command, key, kind)
			p.holds(t, command, at+"."+key, declared[key], one)
		}
		for key, of := range declared {
			assert.True(t, strings.HasSuffix(of, ", may be absent") || slices.Contains(keys(fields), key), "%s: %s has no %s", command, at, key)
		}
		return
	}
	switch kind {
	case "number": // A median of nothing is null.
		_, is := value.(float64)
		assert.True(t, is || value == nil, "%s: %s is %T", command, at, value)
	case "true or false":
		assert.IsType(t, true, value, "%s: %s", command, at)
	case "time (RFC 3339)":
		_, err := time.Parse(time.RFC3339Nano, value.(string))
		assert.NoError(t, err, "%s: %s", command, at)
	default:
		assert.Equal(t, "text", kind, "%s: %s", command, at)
		assert.IsType(t, "", value, "%s: %s", command, at)
	}
}

func keys(of map[string]any) (out []string) {
	for key := range of {
		out = append(out, key)
	}
	return out
}

// hostile are a C1 control, a line end and a change of direction, which encoding/json leaves as they are.
const hostile = "\u009b2J\u0085\u202e"

// The page has each status that a command ends with, and each key of its JSON with its type. No output has a character that acts
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
					p.holds(t, command, "the document", p.root[command], document)
				}
			})
		}
	}
	for command, all := range ends {
		assert.ElementsMatch(t, all, p.statuses[command], command)
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
