package soak

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReportSaysWhatWasFound(t *testing.T) {
	dir := t.TempDir()
	samples := run(func(s *sample, at float64) { s.Goroutines += at / 2 })
	samples[0].Goroutines = -1 // Not known yet.
	r := &Result{
		Seconds: 3600, Samples: samples, Trends: trends(samples, 12*time.Minute, time.Hour), Stops: []float64{0.5},
		Balance: balance{Served: 10, Received: 8, Lost: 1, Excused: map[string]int{"a reason": 1}}, MostQueue: 3 * mebi,
		Events: map[string]int{"targets removed": 4}, Repetitions: []repetition{{7, "info line"}},
	}
	require.NoError(t, r.write(dir))
	content, err := os.ReadFile(filepath.Join(dir, "soak.txt"))
	require.NoError(t, err)
	for _, part := range []string{
		"NOT FLAT", "answers that the servers gave: 10; the backend has received 8", "lost 1, incomplete 0", "missing without blame: 1 (a reason)",
		"up to 3 MiB", "targets removed 4;", "7  info line",
	} {
		assert.Contains(t, string(content), part)
	}
	content, err = os.ReadFile(filepath.Join(dir, "soak.json"))
	require.NoError(t, err)
	var read Result
	require.NoError(t, json.Unmarshal(content, &read))
	assert.Equal(t, *r, read)
	content, err = os.ReadFile(filepath.Join(dir, "soak.svg"))
	require.NoError(t, err)
	assert.Contains(t, string(content), ">resident memory without files (200 MiB)<")
	assert.Contains(t, string(content), ">open file descriptors (220)<")
}
