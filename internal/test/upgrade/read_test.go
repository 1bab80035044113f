package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const root = "../../.."

const (
	// counterName is the server of which every request is known, target its objective.
	counterName = "counted:8000"
	target      = 0.9
)

// released is the release before this tree.
const released = "0.1.0"

func fixture(parts ...string) string {
	return filepath.Join(append([]string{root, "testdata", "upgrade", released}, parts...)...)
}

// facts are what is known of the storage.
type facts struct {
	// Last is the time of the last batch, in Unix nanoseconds.
	Last pcommon.Timestamp `json:"last"`
	// Requests are in the budget of the counted server, of which Slow were too slow. Left is what
	// the release said of it last.
	Requests float64 `json:"requests"`
	Slow     float64 `json:"slow"`
	Left     float64 `json:"left"`
	// Unsent are the points of the queue, and Sum is a checksum of them. The backend was away
	// since Since.
	Since  pcommon.Timestamp `json:"since"`
	Unsent int               `json:"unsent"`
	Sum    string            `json:"sum"`
}

// unpack writes the stored files of the last release into a new folder.
func unpack(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o755))
	file, err := os.Open(fixture("storage.tar.gz"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	packed, err := gzip.NewReader(file)
	require.NoError(t, err)
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		require.NoError(t, err)
		content, err := io.ReadAll(io.LimitReader(archive, 64<<20))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, 0o600))
	}
}

func known(t *testing.T) facts {
	t.Helper()
	content, err := os.ReadFile(fixture("facts.json"))
	require.NoError(t, err)
	var f facts
	require.NoError(t, json.Unmarshal(content, &f))
	return f
}

func instance(attributes pcommon.Map) string {
	value, found := attributes.Get("service.instance.id")
	if !found {
		return ""
	}
	return value.AsString()
}

// value is one number of a series.
type value struct {
	at     pcommon.Timestamp
	number float64
}

// series returns the values of a metric of a server, in the order in which they were written.
func series(all []pmetric.Metrics, server, name string, attributes map[string]string) (values []value) {
	for _, metrics := range all {
		for _, rm := range metrics.ResourceMetrics().All() {
			if instance(rm.Resource().Attributes()) != server {
				continue
			}
			for _, scope := range rm.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() != name {
						continue
					}
					numbers := m.Gauge().DataPoints()
					if m.Type() == pmetric.MetricTypeSum {
						numbers = m.Sum().DataPoints()
					}
					for _, n := range numbers.All() {
						if !n.Flags().NoRecordedValue() && has(n.Attributes(), attributes) {
							values = append(values, value{n.Timestamp(), n.DoubleValue() + float64(n.IntValue())})
						}
					}
				}
			}
		}
	}
	return values
}

func has(attributes pcommon.Map, want map[string]string) bool {
	for key, text := range want {
		if v, found := attributes.Get(key); !found || v.AsString() != text {
			return false
		}
	}
	return true
}
