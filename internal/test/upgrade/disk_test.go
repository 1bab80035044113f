//go:build e2e

package upgrade

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// The queue that the last release left is delivered, each point once.
func TestTheQueueOfTheLastReleaseIsDelivered(t *testing.T) {
	t.Parallel()
	f := known(t)
	s := newSmallStage(t)
	s.env["STATE"] = unpack(t)
	l := s.life(t, collector.Binary(t))
	l.process.WaitFor(t, "what was in the queue", func() bool { return len(s.backend.points(f.Last)) >= f.Unsent })
	s.scrapes(t, l, 4)
	l.process.Stop(t)
	got := s.backend.points(f.Last)
	assert.Len(t, got, f.Unsent)
	assert.Equal(t, f.Sum, got.sum(), "the points themselves, and how often each arrived")
	assert.Greater(t, len(s.backend.points(math.MaxUint64)), f.Unsent, "what is new follows")
}

// withCheck is what a configuration of this release has besides.
const withCheck = "yaml:{extensions: {storage_check: }, service: {extensions: [storage_check, file_storage]}}"

// A disk that was full, or a crash of the machine, has left half of a file of the last release.
func TestAFileOfTheLastReleaseThatWasCutIsSetAside(t *testing.T) {
	for _, name := range []string{"processor_vllm_", "processor_vllm__baselines", "exporter_otlp_http__metrics"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSmallStage(t)
			s.env["STATE"] = unpack(t)
			file := filepath.Join(s.env["STATE"], name)
			whole, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, whole[:len(whole)/2+100], 0o600))
			l := s.life(t, collector.Binary(t), strings.TrimPrefix(withCheck, "yaml:"))
			s.scrapes(t, l, 3)
			l.process.Stop(t)
			var said []string
			for _, line := range l.process.Complaints("connection refused", "can never fire") {
				if strings.Contains(line, name) {
					said = append(said, line)
				}
			}
			assert.NotEmpty(t, said, "the log names the file")
			kept, err := filepath.Glob(file + ".*.backup")
			require.NoError(t, err)
			require.Len(t, kept, 1, "the damaged file is kept")
			if name != "processor_vllm_" {
				assert.Contains(t, l.process.Log(), "objectives continue where they were saved", "the other files are used")
			}
		})
	}
}

// During a rollout, the new collector starts while the old one still has the volume.
func TestTwoCollectorsCannotUseOneVolume(t *testing.T) {
	t.Parallel()
	s := newSmallStage(t)
	first := s.life(t, collector.Binary(t))
	s.scrapes(t, first, 3)
	s.server.change(func(c *counted) { c.slow += tooSlow })
	s.scrapes(t, first, 8)

	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(everything), 0o600))
	env := map[string]string{"OUT": filepath.Join(s.dir, "second.json")}
	maps.Copy(env, s.env)
	second := collector.Start(t, env, collector.Binary(t), "--config", config, "--config", withCheck,
		"--config", "yaml:extensions::storage_check::lock_timeout: 1s", "--config", "yaml:service::telemetry::metrics::level: none")
	second.WaitForFailure(t)
	assert.Contains(t, second.Log(), "another")
	assert.NotContains(t, second.Log(), "panic")

	s.scrapes(t, first, 3)
	first.process.Stop(t)
	budget := &account{}
	budget.check(t, written(t, first.out))
	third := s.life(t, collector.Binary(t))
	s.scrapes(t, third, 8)
	third.process.Stop(t)
	budget.check(t, written(t, third.out))
}

// A StatefulSet gives each pod its own volume. Where two collectors get each other's by mistake,
// and then their own again, what was in the volumes is still there.
func TestSwappedVolumesLoseNothing(t *testing.T) {
	t.Parallel()
	one, two := newSmallStage(t), newSmallStage(t)
	own := strings.ReplaceAll(everything, counterName, "other:8000")
	budget := &account{}
	turn := func(state string, s *stage, config string) *life {
		out := filepath.Join(s.dir, time.Now().Format("150405.000000")+".json")
		env := maps.Clone(s.env)
		env["STATE"] = state
		l := start(t, collector.Binary(t), config, out, env)
		s.scrapes(t, l, 3)
		s.server.change(func(c *counted) {
			if c.slow == 0 {
				c.slow = tooSlow
			}
		})
		s.scrapes(t, l, 8)
		l.process.Stop(t)
		return l
	}
	first, second := one.env["STATE"], two.env["STATE"]
	budget.check(t, written(t, turn(first, one, everything).out))
	turn(second, two, own)
	// Now the volumes are swapped. Each begins a budget for its server in the other's volume.
	turn(second, one, everything)
	turn(first, two, own)
	// And back.
	last := turn(first, one, everything)
	budget.check(t, written(t, last.out))
	assert.Contains(t, last.process.Log(), "objectives continue where they were saved")
}
