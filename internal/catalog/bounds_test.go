package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

var bucketLine = regexp.MustCompile(`^([A-Za-z_:][A-Za-z0-9_:]*)_bucket\{.*\ble="([^"]+)"`)

// Recorded pages of real servers are the measure: each finite bound that one of them has is
// in the table, and the histograms of the table were seen.
func TestEveryRecordedBoundIsInTheTable(t *testing.T) {
	seen := map[string]bool{}
	gateways := captures.Recorded(t, "gateway/*.txt")
	for _, body := range append(captures.Bodies(t), gateways...) {
		for line := range strings.Lines(string(body.Text)) {
			parts := bucketLine.FindStringSubmatch(line)
			if len(parts) != 3 || parts[2] == "+Inf" {
				continue
			}
			bound, err := strconv.ParseFloat(parts[2], 64)
			require.NoError(t, err)
			for _, match := range BySource(canonicalFamily(parts[1])) {
				name := match.Metric.Name
				if Bounds(name) == nil || seen[name+" "+parts[2]] {
					continue
				}
				seen[name], seen[name+" "+parts[2]] = true, true
				assert.Contains(t, Bounds(name), bound, "%s in %s", name, body.Name)
			}
		}
	}
	assert.True(t, seen["vllm.time_to_first_token"])
	assert.True(t, seen["vllm.e2e_request_latency"])
	if len(gateways) > 0 {
		assert.True(t, seen["inference_gateway.epp.request.duration"])
	}
}

func canonicalFamily(family string) string {
	for _, prefix := range Prefixes {
		if rest, ours := strings.CutPrefix(family, prefix); ours {
			return Prefixes[0] + rest
		}
	}
	return family
}

func TestBoundsAreSortedAndOfHistograms(t *testing.T) {
	for name, all := range bounds {
		metric, known := ByName(name)
		require.True(t, known, name)
		assert.Equal(t, KindHistogram, metric.Kind, name)
		assert.True(t, slices.IsSorted(all), name)
		assert.Len(t, slices.Compact(slices.Clone(all)), len(all), name)
	}
	assert.Nil(t, Bounds("vllm.up"))
}
