//go:build e2e

package upgrade

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// stage is what the collectors of one test share: servers, backend and storage.
type stage struct {
	server *counted
	// placed is like server, and is in a namespace of Kubernetes.
	placed  *counted
	backend *backend
	dir     string
	env     map[string]string
}

// newStage starts a counted server, two simulated ones and a backend.
func newStage(t *testing.T, vllmsim string) *stage {
	t.Helper()
	s := newSmallStage(t)
	for _, name := range []string{"SIM_1", "SIM_2"} {
		addr := collector.FreeAddr(t)
		collector.Start(t, nil, vllmsim, "serve", "-listen", addr, "-hardware", "8b-h100", "-rate", "6", "-period", "10m",
			"-uptime", "10m", "-for", "5m")
		require.Eventually(t, func() bool { return collector.Get(t, "http://"+addr+"/metrics") != nil }, collector.Patience, 50*time.Millisecond)
		s.env[name] = "http://" + addr
	}
	return s
}

// newSmallStage has only the counted server; nothing answers for the others.
func newSmallStage(t *testing.T) *stage {
	t.Helper()
	born := time.Now().Add(-time.Hour)
	s := &stage{
		server: &counted{born: born, fast: 1000, step: 3}, placed: &counted{born: born, fast: 2000, step: 5},
		backend: &backend{}, dir: t.TempDir(),
	}
	s.env = map[string]string{
		"COUNTED": "http://" + serve(t, s.server), "PLACED": "http://" + serve(t, s.placed),
		"SIM_1": "http://" + collector.FreeAddr(t), "SIM_2": "http://" + collector.FreeAddr(t),
		"BACKEND": "http://" + serve(t, s.backend), "STATE": filepath.Join(s.dir, "state"),
	}
	return s
}

// life starts a collector on the storage.
func (s *stage) life(t *testing.T, program string, settings ...string) *life {
	t.Helper()
	out := filepath.Join(s.dir, fmt.Sprintf("out-%d.json", time.Now().UnixNano()))
	return start(t, program, everything, out, s.env, settings...)
}

// scrapes waits for more scrapes of the counted server.
func (s *stage) scrapes(t *testing.T, l *life, n int) {
	t.Helper()
	until := s.server.scrapes() + n
	l.process.WaitFor(t, "more scrapes", func() bool { return s.server.scrapes() >= until })
}

func vllmsim(t *testing.T) string {
	t.Helper()
	file := os.Getenv("OTELCOL_VLLM_SIM")
	if file == "" {
		file = filepath.Join(filepath.Dir(collector.Binary(t)), "vllmsim")
	}
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("OTELCOL_VLLM_REQUIRED") != "" {
			require.NoError(t, err, "the simulator is required")
		}
		t.Skip("vllmsim is not built; run make build:", err)
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	return file
}

// placedName is the counted server in a namespace.
const placedName = "placed:8000"

// busy is in the log where a machine has so much else to do that a scrape takes half a second.
const busy = "did not answer within the timeout"

// learning is how many scrapes the diagnosis needs to learn what is usual, with everything.
const learning = 110

// knows returns how many scrapes of a simulated server passed until the diagnosis compared it
// with what is usual; -1 if it never did.
func knows(all []pmetric.Metrics) int {
	up := series(all, "sim-1:8000", "vllm.up", nil)
	ratios := series(all, "sim-1:8000", "vllm.diagnosis.signal_ratio", nil)
	if len(ratios) == 0 {
		return -1
	}
	before := 0
	for _, scrape := range up {
		if scrape.at < ratios[0].at {
			before++
		}
	}
	return before
}

// An operator upgrades, goes back, and upgrades again, on one volume, while the backend is away.
func TestThereAndBackAndThereAgain(t *testing.T) {
	before, now := oldBinary(t), collector.Binary(t)
	s := newStage(t, vllmsim(t))
	budget, placed := &account{}, &account{server: placedName}
	want := points{}
	turn := func(name, program string, during func(*life)) *life {
		l := s.life(t, program)
		during(l)
		l.process.Stop(t)
		l.noErrors(t)
		all := written(t, l.out)
		budget.check(t, all)
		if program == before && name != released {
			// 0.1.0 does not look for the key that has the namespace, and begins anew. The slow
			// requests are not in its budget, so that all of it is left.
			for _, left := range series(all, placedName, "vllm.slo.error_budget_remaining", map[string]string{"bound": "lower"}) {
				assert.InDelta(t, 1, left.number, 1e-9, "%s cannot go on with the budget of a server in a namespace", released)
			}
		} else {
			placed.check(t, all)
		}
		for _, metrics := range all {
			want.add(metrics, 0, math.MaxUint64)
		}
		t.Logf("%s: the diagnosis knew what is usual after %d scrapes; on disk %s", name, knows(all), sizes(t, s.env["STATE"]))
		return l
	}
	more := func(n int) func(*life) { return func(l *life) { s.scrapes(t, l, n) } }

	first := turn(released, before, func(l *life) {
		s.scrapes(t, l, 3)
		s.server.change(func(c *counted) { c.slow += tooSlow })
		s.placed.change(func(c *counted) { c.slow += tooSlow })
		s.scrapes(t, l, 20)
		s.backend.away.Store(true)
		s.scrapes(t, l, learning)
	})
	learned := knows(written(t, first.out))
	require.Greater(t, learned, 30, "it had to learn what is usual")

	upgraded := turn("upgraded", now, more(20))
	assert.Empty(t, upgraded.process.Complaints("interrupted due to shutdown", "can never fire", busy))
	assert.Contains(t, upgraded.process.Log(), "objectives continue where they were saved")
	assert.Contains(t, upgraded.process.Log(), "the diagnosis continues with the baselines that were saved")
	soon := knows(written(t, upgraded.out))
	assert.True(t, soon >= 0 && soon < learned/2, "baselines of %s are used: %d scrapes instead of %d", released, soon, learned)

	// What cannot go back, as docs/start/upgrading.md says.
	back := turn("back", before, more(20))
	assert.Contains(t, back.process.Log(), "what the storage has of objectives is damaged or was written by another version; 4 of their states could be read")
	assert.Contains(t, back.process.Log(), "what the storage has of baselines is damaged or was written by another version; 0 of them could be read")

	again := turn("upgraded again", now, func(l *life) {
		s.scrapes(t, l, 5)
		s.backend.away.Store(false)
		s.scrapes(t, l, 25)
	})
	assert.Empty(t, again.process.Complaints("can never fire", "Exporting failed", busy))

	lost, twice := 0, 0
	got := s.backend.points(math.MaxUint64)
	for p, n := range want {
		lost += max(0, n-got[p])
		twice += max(0, got[p]-n)
	}
	t.Logf("%d points were written to four queues on one volume: %d lost, %d delivered twice", len(want), lost, twice)
	assert.Zero(t, lost)
	assert.Zero(t, twice)
}

// sizes lists the files of a storage.
func sizes(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("%s %d kB", entry.Name(), info.Size()>>10))
	}
	return strings.Join(all, ", ")
}
