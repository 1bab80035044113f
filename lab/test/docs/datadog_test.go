package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/datadog"
)

const datadogPage = "docs/start/datadog.md"

// Each row of the table of names has the name that the receiver gives the family, and says
// whether the Agent has the same one: then both are added up in one account.
func TestTheNamesOfDatadogsAgentAreComparedCorrectly(t *testing.T) {
	page := read(t, datadogPage)
	_, table, found := strings.Cut(page, "<!-- agent: begin -->\n")
	require.True(t, found)
	table, _, found = strings.Cut(table, "<!-- agent: end -->")
	require.True(t, found)
	name := regexp.MustCompile("`([^`]+)`")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	require.Greater(t, len(rows), 10)
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		require.Len(t, cells, 3, row)
		wire, agent, here := name.FindStringSubmatch(cells[0]), name.FindStringSubmatch(cells[1]), name.FindStringSubmatch(cells[2])
		require.True(t, wire != nil && agent != nil && here != nil, row)
		families := catalog.BySource(wire[1])
		assert.True(t, slices.ContainsFunc(families, func(m catalog.Match) bool { return m.Metric.Name == here[1] }),
			"%s does not become %s", wire[1], here[1])
		assert.Equal(t, agent[1] == here[1], strings.Contains(cells[2], "the same name"), row)
	}
}

// The example has the preset essential, so nothing that the monitors and the dashboard read may be outside of it.
func TestTheContentForDatadogReadsOnlyWhatIsEssential(t *testing.T) {
	queries, err := datadog.Queries()
	require.NoError(t, err)
	require.Greater(t, len(queries), 30)
	for _, query := range queries {
		uses, err := datadog.Uses(query)
		require.NoError(t, err)
		for _, use := range uses {
			m, known := catalog.ByName(use.Metric)
			assert.True(t, known && m.In(catalog.Essential), "%s, in %s", use.Metric, query)
		}
	}
}
