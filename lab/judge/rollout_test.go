package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// pod is a server that runs for a part of a story, from begins to ends in seconds.
type pod struct {
	name, version string
	begins, ends  float64
	// clock is the share of the usual bandwidth and clock that it has.
	clock float64
	// lies changes what it exposes; nil for the truth.
	lies func(metrics pmetric.Metrics)
}

// recordPods runs pods with a processor that has a pool configured, and returns what was reported
// about each.
func recordPods(t *testing.T, length float64, pods ...pod) map[string][]reading {
	t.Helper()
	race.SkipSequential(t)
	config, err := configure(map[string]any{"pool": map[string]any{"interval": "15s"}})
	require.NoError(t, err)
	d, err := newDiagnosis(t.Context(), config, begin)
	require.NoError(t, err)
	worlds, scrapers := make([]*world, len(pods)), make([]*scraper, len(pods))
	for i, p := range pods {
		cfg := chatServer(uint64(100+i), 6)
		if p.clock < 1 {
			cfg.Changes = scenario.Changes([]Injection{
				{Parameter: engine.ParamBandwidth, Value: p.clock, At: 0, Until: length},
				{Parameter: engine.ParamClock, Value: p.clock, At: 0, Until: length},
			}, 0, 1)
		}
		worlds[i], err = newWorld(cfg, nil, nil, func(*seen) {})
		require.NoError(t, err)
		scrapers[i] = newScraper(worlds[i], i, true)
	}
	out := map[string][]reading{}
	for at := interval; at <= length; at += interval {
		for i, p := range pods {
			now := at + float64(i)/2 + 0.5
			if now < p.begins || now > p.ends {
				continue
			}
			d.advance(now)
			require.NoError(t, worlds[i].advance(now-p.begins))
			metrics, _ := scrapers[i].scrape(worlds[i], d.clock.Now(), begin.Add(seconds(p.begins)))
			resource := metrics.ResourceMetrics().At(0).Resource().Attributes()
			resource.PutStr("service.instance.id", p.name)
			resource.PutStr("service.version", p.version)
			if p.lies != nil {
				p.lies(metrics)
			}
			reported, err := d.observe(t.Context(), metrics)
			require.NoError(t, err)
			out[p.name] = append(out[p.name], reading{reported, now})
		}
	}
	require.NoError(t, d.processor.Shutdown(t.Context()))
	return out
}

// rollout is four pods that are replaced by others with another version, one after another.
func rollout(clock float64) (pods []pod) {
	const first, every = 40 * 60.0, 12 * 60.0
	for i := range 4 {
		at := first + float64(i)*every
		pods = append(pods,
			pod{fmt.Sprint("old-", i), "0.24.0", 0, at, 1, nil},
			pod{fmt.Sprint("new-", i), "0.24.1", at, rolloutLength, clock, nil})
	}
	return pods
}

const rolloutLength = 100 * 60.0

// detailOf is the detail of the primary cause.
func detailOf(one *reading) string {
	for _, c := range one.causes {
		if c.Role == "primary" {
			return c.Detail
		}
	}
	return ""
}

// slowRelease makes steps 30 % longer: 22 % of a step of these servers is time of the host.
const slowRelease = 0.72

// A new version that is 30 % slower never becomes what is usual: the new pods begin with what
// was usual in their pool.
func TestASlowReleaseIsReportedForEachNewPod(t *testing.T) {
	t.Parallel()
	pods := rollout(slowRelease)
	reported := recordPods(t, rolloutLength, pods...)
	for _, p := range pods {
		all := reported[p.name]
		if p.clock == 1 {
			noAlarms(t, all, p.name)
			continue
		}
		first := slices.IndexFunc(all, func(one reading) bool { return one.primary() == "slow_steps" && detailOf(&one) == "since_version" })
		require.GreaterOrEqual(t, first, 0, "%s: %v", p.name, phases(all))
		t.Logf("%s is reported %.0f s after its start", p.name, all[first].at-p.begins)
		assert.LessOrEqual(t, all[first].at-p.begins, 600.0, p.name)
		for _, one := range all {
			assert.Contains(t, []string{"", "slow_steps"}, one.primary(), "%s at %.0f s", p.name, one.at)
		}
	}
}

func TestARolloutToAnEquallyFastVersionIsSilent(t *testing.T) {
	t.Parallel()
	reported := recordPods(t, rolloutLength, rollout(1)...)
	for _, name := range slices.Sorted(maps.Keys(reported)) {
		noAlarms(t, reported[name], name)
		for _, one := range reported[name] {
			assert.NotEqual(t, "slow_steps", one.primary())
		}
	}
}

// A replica that is slow from its start is seen by its siblings; nothing was ever usual for it.
func TestAReplicaThatIsSlowFromTheStartIsReported(t *testing.T) {
	t.Parallel()
	const length = 45 * 60.0
	var pods []pod
	for i := range 4 {
		pods = append(pods, pod{fmt.Sprint("pod-", i), "0.24.0", 0, length, 1, nil})
	}
	pods[2].clock = 0.6
	reported := recordPods(t, length, pods...)
	for _, p := range pods {
		if p.clock == 1 {
			noAlarms(t, reported[p.name], p.name)
			continue
		}
		all := reported[p.name]
		first := slices.IndexFunc(all, func(one reading) bool { return one.primary() == "slow_steps" })
		require.GreaterOrEqual(t, first, 0, "%v", phases(all))
		t.Logf("reported %.0f s after its start", all[first].at)
		assert.LessOrEqual(t, all[first].at, 15*60.0)
		last := all[len(all)-1]
		assert.Equal(t, "degraded slow_steps", strings.TrimSpace(last.condition+" "+last.primary()))
	}
}
