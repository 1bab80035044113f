package scenario

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

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// expectations are what each file does to the numbers that an operator sees, and
// what it leaves alone.
var expectations = map[string]func(s *story){
	"healthy": func(s *story) {
		t := s.t
		p := part{60, 1200}
		assert.InEpsilon(t, 6, s.increase(p, firstToken+"_count")/1140, 0.05)
		busy, _ := s.gauge(p, running)
		assert.InEpsilon(t, s.increase(p, inference+"_count")/1140*s.mean(p, inference), busy, 0.2, "Little's law")
		_, fullest := s.gauge(p, kvUsage)
		assert.Less(t, fullest, 0.15, "almost empty")
		assert.InDelta(t, 0.0095, s.mean(p, gap), 0.0015, "8 to 11 ms")
		keepsUp(t, s.run, p)
	},
	"idle": func(s *story) {
		t := s.t
		p := part{60, 3600}
		assert.InDelta(t, 0.02*3540, s.increase(p, firstToken+"_count"), 3*math.Sqrt(0.02*3540))
		busy, _ := s.gauge(p, running)
		assert.Less(t, busy, 0.15)
		assert.InEpsilon(t, decodeStep(1700, 1), s.mean(p, gap), 0.02, "nearly all requests are alone")
		keepsUp(t, s.run, p)
	},
	"daily-ramp": func(s *story) {
		t := s.t
		const hour = 3600
		// The mean of the sine over two hours about its top.
		top := math.Sin(math.Pi/12) / (math.Pi / 12)
		day, night := part{5 * hour, 7 * hour}, part{17 * hour, 19 * hour}
		assert.InEpsilon(t, 3*(1+0.7*top), s.increase(day, firstToken+"_count")/7200, 0.03)
		assert.InEpsilon(t, 3*(1-0.7*top), s.increase(night, firstToken+"_count")/7200, 0.05)
		assert.Less(t, s.mean(day, gap), 1.3*s.mean(night, gap))
		keepsUp(t, s.run, part{600, 24 * hour})
	},
	"bursts": func(s *story) {
		t := s.t
		assert.Greater(t, dispersion(s.run), 4.0, "of a Poisson process it is 1")
		p := part{60, 1800}
		assert.Zero(t, s.increase(p, preemptions))
		_, fullest := s.gauge(p, kvUsage)
		assert.Less(t, fullest, 0.5)
		assert.Less(t, s.mean(p, queue), 0.2)
		assert.InEpsilon(t, s.increase(p, firstToken+"_count"), s.increase(p, whole+"_count"), 0.03, "it keeps up")
	},
	"overload": func(s *story) {
		t := s.t
		late := part{900, 1200}
		served := s.increase(late, finished) / 300
		assert.InDelta(t, 20, served, 1, "its capacity, as lab/docs/simulator.md has it; 22 arrive")
		assert.Greater(t, s.mean(late, queue), 5.0)
		_, fullest := s.gauge(late, kvUsage)
		assert.Greater(t, fullest, 0.95)
		assert.Positive(t, s.increase(late, preemptions))
		keepsUp(t, s.run, before)
		keepsUp(t, s.run, part{1620, 1800})
		assert.InEpsilon(t, decodeStep(256+30, 1), s.lone(256, 60).mean(part{660, 780}, gap), 0.01, "the server is as it was")
	},
	"long-prompts": func(s *story) {
		t := s.t
		ratio := cut(engine.Lengths{Median: 4080, Sigma: 0.9}, 12288) / cut(engine.Lengths{Median: 1020, Sigma: 0.9}, 12288)
		assert.InEpsilon(t, ratio, s.mean(during, promptSize)/s.undisturbed().mean(during, promptSize), 0.05)
		assert.InEpsilon(t, s.undisturbed().increase(during, firstToken+"_count"), s.increase(during, firstToken+"_count"), 0.01)
		assert.InEpsilon(t, s.undisturbed().mean(during, outputSize), s.mean(during, outputSize), 0.05)
		assert.Greater(t, s.mean(during, firstToken), 2.5*s.undisturbed().mean(during, firstToken))
		assert.Greater(t, s.mean(during, gap), 1.2*s.undisturbed().mean(during, gap))
		assert.Zero(t, s.increase(during, preemptions))
	},
	"prefix-reuse-fell": func(s *story) {
		t := s.t
		prompt := engine.Lengths{Median: 4400, Sigma: 0.3}
		share := 0.9 * cut(prompt, 4000) / cut(prompt, 1e9)
		assert.InDelta(t, share, s.hitShare(before), 0.03)
		assert.Less(t, s.hitShare(during), 0.1)
		assert.InEpsilon(t, s.undisturbed().mean(during, promptSize), s.mean(during, promptSize), 0.01, "the same prompts")
		assert.Greater(t, s.mean(during, prefill), 1.5*s.undisturbed().mean(during, prefill))
		assert.InDelta(t, share, s.hitShare(after), 0.04)
		late := part{900, 1200}
		taken := (s.increase(late, prompted) - s.increase(late, hit) + s.increase(late, generated)) / 16 / 300
		assert.InEpsilon(t, 28500, taken*s.mean(late, blockLife), 0.1, "Little's law")
		assert.InEpsilon(t, 0.1*taken*300, s.increase(late, blockLife+"_count"), 0.1, "one of ten is followed")
		assert.Zero(t, s.increase(late, blockGap+"_count"), "none of them was found again")
	},
	"slow-steps": func(s *story) {
		t := s.t
		one := s.lone(8192, 60)
		assert.InEpsilon(t, promptStep(8192, 1), one.mean(before, prefill), 0.005)
		assert.InEpsilon(t, promptStep(8192, 0.25), one.mean(during, prefill), 0.005)
		assert.InDelta(t, 3.9, one.mean(during, prefill)/one.mean(before, prefill), 0.1, "almost four times")
		assert.InEpsilon(t, one.mean(before, gap), one.mean(during, gap), 0.001, "memory is as fast as it was")
		assert.Greater(t, s.mean(during, firstToken), 1.8*s.undisturbed().mean(during, firstToken))
	},
	"bandwidth-loss": func(s *story) {
		t := s.t
		one := s.lone(8192, 60)
		assert.InEpsilon(t, decodeStep(8192+30, 1), one.mean(before, gap), 0.002)
		assert.InEpsilon(t, decodeStep(8192+30, 0.5), one.mean(during, gap), 0.002)
		assert.InDelta(t, 1.85, one.mean(during, gap)/one.mean(before, gap), 0.15, "almost doubles")
		assert.InEpsilon(t, promptStep(8192, 1), one.mean(during, prefill), 0.01, "the clock is as it was")
		assert.Greater(t, s.mean(during, gap), 1.5*s.undisturbed().mean(during, gap))
		assert.InEpsilon(t, s.undisturbed().mean(after, gap), s.mean(after, gap), 0.05)
	},
	"one-minute": func(s *story) {
		t := s.t
		slow := part{160, 180}
		assert.Greater(t, s.mean(slow, gap), 2.2*s.undisturbed().mean(slow, gap))
		assert.Greater(t, s.at(160+20).sum(finished)+60, s.undisturbed().at(160+20).sum(finished), "it can bear that")
		assert.Zero(t, s.increase(part{0, 240}, preemptions))
		keepsUp(t, s.run, part{60, 160})
		keepsUp(t, s.run, part{200, 240})
		assert.InEpsilon(t, s.undisturbed().mean(part{200, 240}, gap), s.mean(part{200, 240}, gap), 0.05)
	},
	"fewer-kv-blocks": func(s *story) {
		t := s.t
		_, roomy := s.gauge(before, kvUsage)
		_, fullest := s.gauge(during, kvUsage)
		assert.Less(t, roomy, 0.3)
		assert.Greater(t, fullest, 0.9)
		assert.Zero(t, s.increase(before, preemptions))
		assert.Greater(t, s.increase(during, preemptions), 10.0)
		assert.Greater(t, s.mean(during, queue), 10*s.undisturbed().mean(during, queue))
		one := s.lone(256, 60)
		assert.InEpsilon(t, one.mean(before, gap), one.mean(during, gap), 0.001, "steps are as fast as they were")
	},
	"longer-outputs": func(s *story) {
		t := s.t
		want := func(median float64) (mean float64) {
			for _, most := range []float64{15000, 512, 1024, 2048} {
				mean += cut(engine.Lengths{Median: median, Sigma: 0.8}, most) / 4
			}
			return mean
		}
		assert.InEpsilon(t, want(129), s.mean(before, outputSize), 0.08)
		assert.InEpsilon(t, want(4*129), s.mean(during, outputSize), 0.08)
		busy, _ := s.gauge(during, running)
		usual, _ := s.undisturbed().gauge(during, running)
		assert.Greater(t, busy, 2.5*usual)
		assert.InEpsilon(t, s.undisturbed().mean(during, promptSize), s.mean(during, promptSize), 0.05)
	},
	"front-end-starved": func(s *story) {
		t := s.t
		one := s.lone(1000, 60)
		assert.InEpsilon(t, outside(1000, 1), one.outside(before), 0.02)
		assert.InEpsilon(t, outside(1000, 10), one.outside(during), 0.1, "or more, where tokens queue for the front end")
		assert.InEpsilon(t, one.mean(before, decode), one.mean(during, decode), 0.001)
		usual := s.undisturbed()
		assert.InEpsilon(t, usual.mean(during, decode), s.mean(during, decode), 0.1, "the engine is as it was")
		assert.InEpsilon(t, usual.mean(during, prefill), s.mean(during, prefill), 0.1, "the engine is as it was")
		assert.Greater(t, s.outside(during), usual.outside(during)+outside(1000, 10)-outside(1000, 1)+0.03, "its work, and a queue")
		assert.Greater(t, s.mean(during, firstToken), usual.mean(during, firstToken)+0.1, "clients notice it")
		keepsUp(t, s.run, after)
	},
	"stalled": func(s *story) {
		t := s.t
		held := part{620, 760}
		assert.Positive(t, s.at(620).sum(running))
		same(t, s.at(620), s.at(760), "http_")
		assert.Positive(t, s.undisturbed().increase(held, generated))
		recovered := part{1020, 1200}
		keepsUp(t, s.run, recovered)
		assert.InEpsilon(t, s.undisturbed().at(1200).sum(finished), s.at(1200).sum(finished), 0.02, "all but the impatient are served")
	},
	"asleep": func(s *story) {
		t := s.t
		held := part{620, 880}
		for at := held.from; at <= held.to; at += s.every {
			assert.InDelta(t, 1, s.at(at).sum("vllm:engine_sleep_state", `sleep_state="weights_offloaded"`), 0)
			assert.Zero(t, s.at(at).sum(running))
		}
		assert.Zero(t, s.increase(held, generated))
		aborted := 0
		for _, o := range s.outcomes {
			if o.End == engine.EndAborted {
				aborted++
			}
		}
		assert.Positive(t, aborted)
		keepsUp(t, s.run, part{960, 1200})
		assert.InDelta(t, 1, s.at(1200).sum("vllm:engine_sleep_state", `sleep_state="awake"`), 0)
	},
	"erroring": func(s *story) {
		t := s.t
		const failed = `finished_reason="error"`
		assert.Zero(t, s.increase(before, finished, failed))
		assert.InDelta(t, 0.3, s.increase(during, finished, failed)/s.increase(during, finished), 0.03)
		assert.LessOrEqual(t, s.mean(during, gap), s.undisturbed().mean(during, gap))
		assert.Zero(t, s.increase(after, finished, failed))
	},
	"speculation-useless": func(s *story) {
		t := s.t
		accepted := func(p part) float64 {
			return s.increase(p, "vllm:spec_decode_num_accepted_tokens_total") / s.increase(p, "vllm:spec_decode_num_draft_tokens_total")
		}
		assert.InDelta(t, (0.75+0.75*0.6+0.75*0.6*0.5)/3, accepted(before), 0.01)
		assert.InDelta(t, (0.75*0.02+0.75*0.02*0.6*0.02)/3, accepted(during), 0.002)
		assert.InEpsilon(t, 2.4, s.mean(during, decode)/s.undisturbed().mean(during, decode), 0.15)
	},
	"cache-thrash": func(s *story) {
		t := s.t
		prompt := engine.Lengths{Median: 6300, Sigma: 0.2}
		assert.InDelta(t, cut(prompt, 6000)/cut(prompt, 1e9), s.hitShare(before), 0.03)
		late := part{900, 1200}
		taken := (s.increase(late, prompted) - s.increase(late, hit) + s.increase(late, generated)) / 16 / 300
		assert.InEpsilon(t, 160000.0/16, taken*s.mean(late, blockLife), 0.1, "Little's law")
		assert.Less(t, 3*s.mean(late, blockLife), 120.0/3, "they are evicted before they are reused")
		assert.Positive(t, s.increase(late, blockGap+"_count"), "except some that are reused early")
		// With equally popular beginnings no more can hit than the cache can hold.
		assert.Less(t, s.hitShare(during), 160000.0/(120*6000))
		assert.Positive(t, s.hitShare(during), "they are reused")
		assert.Greater(t, s.mean(during, prefill), 2*s.undisturbed().mean(during, prefill))
		assert.InEpsilon(t, s.undisturbed().mean(during, promptSize), s.mean(during, promptSize), 0.01)
		assert.Greater(t, s.hitShare(after), 0.8)
	},
	"admission-deferred": func(s *story) {
		t := s.t
		const family, deferred = "vllm:num_requests_waiting_by_reason", `reason="deferred"`
		none, _ := s.gauge(before, family, deferred)
		assert.Zero(t, none)
		many, _ := s.gauge(during, family, deferred)
		assert.Greater(t, many, 1.0)
		_, fullest := s.gauge(during, kvUsage)
		assert.Less(t, fullest, 0.3)
		assert.Greater(t, s.mean(during, queue), 10*s.undisturbed().mean(during, queue))
	},
	"kv-transfer-failing": func(s *story) {
		t := s.t
		external := func(p part) float64 {
			return s.increase(p, "vllm:prompt_tokens_by_source_total", `source="external_kv_transfer"`) / s.increase(p, prompted)
		}
		const failures = "vllm:nixl_num_failed_transfers_total"
		assert.Zero(t, s.increase(before, failures))
		assert.InDelta(t, 0.7*0.7*3*540, s.increase(during, failures), 0.7*0.7*3*540*0.1)
		assert.InEpsilon(t, 0.3, external(during)/external(before), 0.15)
		assert.Greater(t, s.mean(during, prefill), 1.3*s.undisturbed().mean(during, prefill))
	},
	"corrupted-logits": func(s *story) {
		t := s.t
		const corrupted = "vllm:corrupted_requests_total"
		assert.Zero(t, s.increase(before, corrupted))
		assert.InDelta(t, 0.2, s.increase(during, corrupted)/s.increase(during, finished), 0.03)
		assert.Zero(t, s.increase(after, corrupted))
		same(t, s.undisturbed().at(1500), s.at(1500), corrupted)
	},
	"two-causes": func(s *story) {
		t := s.t
		one := s.lone(1000, 60)
		first, both := part{620, 760}, part{800, 1180}
		assert.InEpsilon(t, decodeStep(1030, 0.5), one.mean(first, gap), 0.01)
		assert.InEpsilon(t, decodeStep(1030, 0.5), one.mean(both, gap), 0.01)
		assert.InEpsilon(t, outside(1000, 1), one.outside(first), 0.02)
		assert.InEpsilon(t, outside(1000, 10), one.outside(both), 0.1)
		keepsUp(t, s.run, after)
	},
	"restart": func(s *story) {
		t := s.t
		restarts(t, s, 600, 674)
		keepsUp(t, s.run, part{780, 1200})
	},
	"cold-cache": func(s *story) {
		t := s.t
		restarts(t, s, 900, 974)
		warm := s.hitShare(part{600, 880})
		assert.Greater(t, warm, 0.75)
		assert.Less(t, s.at(1000).sum(hit)/s.at(1000).sum(queried), 0.6*warm)
		assert.Greater(t, s.hitShare(part{1500, 1800}), 0.95*warm)
		cold, usual := s.at(1000).sum(prefill+"_sum")/s.at(1000).sum(prefill+"_count"), s.mean(part{600, 880}, prefill)
		assert.Greater(t, cold, 1.3*usual)
	},
	"unreachable": func(s *story) {
		t := s.t
		for at := 0; at <= 1020; at += s.every {
			assert.Equal(t, at >= 600 && at < 780, s.at(at) == nil, "at %d s", at)
		}
		same(t, s.undisturbed().at(580), s.at(580))
		same(t, s.undisturbed().at(780), s.at(780))
	},
	"frozen-gauges": func(s *story) {
		t := s.t
		unfrozen := s.scenario
		unfrozen.Config.Faults = nil
		truth := carryOut(t, unfrozen)
		held := s.at(640).sum(kvUsage)
		for at := 0; at <= 1500; at += s.every {
			same(t, truth.at(at), s.at(at), kvUsage)
			want := truth.at(at).sum(kvUsage)
			if at >= 640 && at < 990 {
				want = held
			}
			assert.InDelta(t, want, s.at(at).sum(kvUsage), 0, "at %d s", at)
		}
		assert.Greater(t, held, 0.5)
		assert.Less(t, truth.at(700).sum(kvUsage), 0.01)
		assert.Zero(t, s.at(700).sum(running)+s.at(700).sum(waiting))
		same(t, s.at(700), s.at(980))
		assert.Positive(t, s.at(1000).sum(running))
		keepsUp(t, s.run, part{1140, 1500})
	},
	"replica-imbalance": func(s *story) {
		t := s.t
		late := part{900, 1200}
		requests := func(r *run, share float64) {
			for p, rate := range map[part]float64{before: 11, {660, 1200}: 33} {
				want := share * rate * float64(p.to-p.from)
				if rate > 11 && share > 0.5 {
					assert.Less(t, r.increase(p, firstToken+"_count"), want-4*math.Sqrt(want), "it cannot bear them")
					continue
				}
				assert.InDelta(t, want, r.increase(p, firstToken+"_count"), 4*math.Sqrt(want))
			}
		}
		requests(s.run, 0.7)
		keepsUp(t, s.run, before)
		keepsUp(t, s.run, part{1620, 1800})
		waits, _ := s.gauge(late, waiting)
		assert.Greater(t, waits, 50.0)
		for i := range 3 {
			other := carryOutOn(t, s.scenario, i+1)
			requests(other, 0.1)
			keepsUp(t, other, part{60, 1800})
			assert.Greater(t, s.mean(late, gap), 5*other.mean(late, gap))
		}
		even := s.scenario
		even.Config.Shares = []float64{0.25, 0.25, 0.25, 0.25}
		keepsUp(t, carryOut(t, even), late)
	},
	"engine-imbalance": func(s *story) {
		t := s.t
		keepsUp(t, s.run, before)
		keepsUp(t, s.run, part{1620, 1800})
		late := part{900, 1200}
		total := s.increase(before, firstToken+"_count")
		assert.InEpsilon(t, 11, total/540, 0.05)
		for i, want := range []float64{0.7, 0.1, 0.1, 0.1} {
			engine := `engine="` + string(rune('0'+i)) + `"`
			assert.InDelta(t, want, s.increase(before, firstToken+"_count", engine)/total, 0.02)
			waits, _ := s.gauge(late, waiting, engine)
			if i == 0 {
				assert.Greater(t, waits, 50.0)
				continue
			}
			assert.Less(t, waits, 0.1)
			assert.Greater(t, s.mean(late, gap, `engine="0"`), 5*s.mean(late, gap, engine))
		}
	},
}

func TestEveryScenarioDoesWhatItSays(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	expectations := maps.Clone(expectations)
	maps.Copy(expectations, expectationsOfClients)
	maps.Copy(expectations, expectationsOfGPUs)
	assert.Len(t, files, len(expectations))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			expect := expectations[name]
			require.NotNil(t, expect, "no expectation for %s", file)
			began := time.Now()
			s := play(t, name)
			expect(s)
			recovers(s)
			t.Logf("%v", time.Since(began).Round(time.Millisecond))
		})
	}
}

func TestEveryScenarioSaysInWordsWhatHappens(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := Load(file)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), "# "), "%s begins with a comment", file)
		assert.NotEmpty(t, s.About)
		assert.Len(t, s.Plan(), len(s.Injections)+len(s.Config.Faults))
	}
}
