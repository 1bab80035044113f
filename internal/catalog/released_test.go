package catalog

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateReleased = flag.Bool("update-released", false, "add new metrics to the list of released names")

// complete is set by "make release".
var complete = flag.Bool("complete", false, "fail if the list of released names does not have all of them")

// mistaken are lines of a release with names or attributes that no server has ever had. What is emitted has not changed.
var mistaken = []string{
	`vllm.admission_rejections sum "{rejection}" engine,model_name`,
	`inference_gateway.epp.moriio_dns_ip_changed sum "{change}"`,
	`inference_gateway.epp.moriio_dns_lookup_failures sum "{lookup}"`,
	`inference_gateway.epp.moriio_dns_reresolve sum "{lookup}"`,
}

const releasedFile = "testdata/released.txt"

// releasedLine is what is promised of a metric.
func releasedLine(m *Metric) string {
	keys := slices.Sorted(slices.Values(m.Attributes))
	return strings.TrimRight(fmt.Sprintf("%s %s %q %s", m.Name, m.Kind, m.Unit, strings.Join(keys, ",")), " ")
}

// The name, kind, unit and attribute keys of a released metric never change: dashboards, alerts
// and stored data depend on them.
func TestReleasedNamesStay(t *testing.T) {
	var now []string
	for i := range All() {
		now = append(now, releasedLine(&All()[i]))
	}
	content, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	released := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.GreaterOrEqual(t, len(released), 561, "0.2.0 has 561 metrics; a line is never removed")
	assert.Empty(t, missing(slices.Concat(now, mistaken), released), "released, and gone or different (docs/reference/naming.md, Changing a name)")
	if *complete {
		assert.Empty(t, missing(released, now), "a release promises them, and a later change of them would not be noticed; add them to %s: "+
			"go test ./internal/catalog -run Released -update-released", releasedFile)
	}
	if *updateReleased {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(released), now...))))
		require.NoError(t, os.WriteFile(releasedFile, []byte(strings.Join(all, "\n")+"\n"), 0o600))
	}
}

// missing returns the lines that a list lacks.
func missing(list, lines []string) (out []string) {
	for _, line := range lines {
		if !slices.Contains(list, line) {
			out = append(out, line)
		}
	}
	return out
}
