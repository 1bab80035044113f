package content

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/grafana"
)

// root is the root of the repository.
const root = "../../.."

// dashboard is what of a shipped file for Grafana is executed.
type dashboard struct {
	UID        string `json:"uid"`
	Panels     []panel
	Templating struct {
		List []variable
	}
	Annotations struct {
		List []annotation
	}
}

type panel struct {
	Title, Type string
	Panels      []panel // Of a collapsed row.
	Targets     []target
	FieldConfig struct {
		Defaults struct {
			NoValue string
		}
	}
}

type target struct {
	Expr, LegendFormat string
	Instant            bool
}

type annotation struct {
	Name   string
	Target struct{ Expr string }
}

type variable struct {
	Name, Type string
	// Query is text for a data source and an object for values.
	Query json.RawMessage
}

// definition is where the values of a variable come from.
func (v variable) definition(t *testing.T) string {
	t.Helper()
	var query struct{ Query string }
	require.NoError(t, json.Unmarshal(v.Query, &query), v.Name)
	return query.Query
}

// dashboards reads the shipped files of a spelling.
func dashboards(t *testing.T, to spelling.Spelling) (all []dashboard) {
	t.Helper()
	files, err := grafana.Files(to)
	require.NoError(t, err)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(file) != ".json" {
			continue
		}
		text := files[file]
		var d dashboard
		require.NoError(t, json.Unmarshal(text, &d), file)
		require.NotEmpty(t, d.UID, file)
		all = append(all, d)
	}
	require.NotEmpty(t, all, to)
	return all
}

// all returns the panels with queries, also those of collapsed rows.
func (d *dashboard) all() (out []panel) {
	for _, p := range d.Panels {
		for _, one := range append([]panel{p}, p.Panels...) {
			if len(one.Targets) > 0 {
				out = append(out, one)
			}
		}
	}
	return out
}

// variables matches the places of variables in queries, in both forms of Grafana.
var variables = regexp.MustCompile(`\$\{?([a-zA-Z_]+)(:[a-z]+)?\}?`)

// filled replaces Grafana's variables by the choices of a user; a variable without a choice
// has the value of "All".
func filled(expr string, chosen map[string]string) string {
	return variables.ReplaceAllStringFunc(expr, func(place string) string {
		name := strings.Trim(variables.FindStringSubmatch(place)[1], "{}")
		switch name {
		case "__rate_interval":
			return "1m"
		case "__range":
			return "30m"
		case "__interval":
			return "30s"
		}
		if value, is := chosen[name]; is {
			return value
		}
		return ".*"
	})
}

// chosenValue writes a choice as Grafana does: escaped for the regular expression, and for
// the string that it is in.
func chosenValue(value string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(value), `\`, `\\`)
}
