//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// root is the repository's top folder.
const root = "../../.."

// scrapes reads a file of the file exporter: the scrapes of each target by its
// service.instance.id, in their order. One line is one scrape of one target.
func scrapes(t *testing.T, file string) map[string][]pmetric.ResourceMetrics {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string][]pmetric.ResourceMetrics{}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			// The collector is still writing it.
			break
		}
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err, "line %d", number)
		for _, rm := range metrics.ResourceMetrics().All() {
			id, ok := rm.Resource().Attributes().Get("service.instance.id")
			require.True(t, ok, "line %d: a resource without service.instance.id", number)
			all[id.Str()] = append(all[id.Str()], rm)
		}
	}
	return all
}
