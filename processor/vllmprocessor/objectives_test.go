package vllmprocessor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"go.uber.org/zap/zapcore"
)

// heard is the number of requests in a step of time, by what is certain about
// them.
type heard struct{ valid, good, undecided float64 }

// tally counts what the engines observed in (from, to], with nothing but
// comparisons: below is the bound at or below the threshold, above the one at or
// above it.
func tally(engines map[string]*engineLog, metric string, from, to time.Time, below, above float64) (n heard) {
	for _, e := range engines {
		for _, request := range e.requests {
			took, has := request.took[metric]
			if !has || !request.at.After(from) || request.at.After(to) {
				continue
			}
			n.valid++
			if took <= below {
				n.good++
			} else if took <= above {
				n.undecided++
			}
		}
	}
	return n
}

// TestAllValuesFollowFromTheRequests runs two engines for two hours and
// computes every value again from the requests themselves, after each scrape.
func TestAllValuesFollowFromTheRequests(t *testing.T) {
	const scrapes, interval = 480, 15 * time.Second
	random := rand.New(rand.NewPCG(3, 7))
	engines := map[string]*engineLog{"0": {born: noon.Add(-time.Hour)}, "1": {born: noon.Add(-time.Hour)}}
	for _, e := range engines {
		for at := noon.Add(-time.Minute); at.Before(noon.Add(scrapes * interval)); at = at.Add(time.Duration(random.ExpFloat64() * 5e9)) {
			e.serve(at, map[string]float64{firstToken: random.ExpFloat64() * 1.5, wholeTime: random.ExpFloat64() * 8})
		}
	}
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95), promise("whole", wholeTime, 12*time.Second, 0.9)))

	for n := range scrapes {
		now := noon.Add(time.Duration(n) * interval)
		p.at = now
		got := p.take(body("one:8000", "m", now, []string{firstToken, wholeTime}, engines))
		if n == 0 {
			assert.Equal(t, map[string]float64{
				"valid{model_name=m,objective=ttft}": 0, "good{model_name=m,objective=ttft}": 0, "undecided{model_name=m,objective=ttft}": 0,
				"valid{model_name=m,objective=whole}": 0, "good{model_name=m,objective=whole}": 0, "undecided{model_name=m,objective=whole}": 0,
				"target{model_name=m,objective=ttft}": 0.95, "threshold{metric=" + firstToken + ",model_name=m,objective=ttft}": 2.5,
				"target{model_name=m,objective=whole}": 0.9, "threshold{metric=" + wholeTime + ",model_name=m,objective=whole}": 12,
			}, got.values, "there is nothing to compare with")
			continue
		}
		want := map[string]float64{}
		for _, o := range []struct {
			name, metric                    string
			threshold, below, above, target float64
		}{{"ttft", firstToken, 2.5, 2.5, 2.5, 0.95}, {"whole", wholeTime, 12, 10, 15, 0.9}} {
			all := tally(engines, o.metric, noon, now, o.below, o.above)
			labels := "model_name=m,objective=" + o.name
			want["valid{"+labels+"}"], want["good{"+labels+"}"], want["undecided{"+labels+"}"] = all.valid, all.good, all.undecided
			want["target{"+labels+"}"] = o.target
			want["threshold{metric="+o.metric+","+labels+"}"] = o.threshold
			from := now.Add(-time.Minute)
			if from.Before(noon) {
				from = noon
			}
			if recent := tally(engines, o.metric, from, now, o.below, o.above); recent.valid > 0 {
				want["attainment{bound=lower,"+labels+"}"] = recent.good / recent.valid
				want["attainment{bound=upper,"+labels+"}"] = (recent.good + recent.undecided) / recent.valid
			}
			for window, length := range map[string]time.Duration{"1h": time.Hour, "6h": 6 * time.Hour, "30d": 720 * time.Hour} {
				// A window begins at the last 120th of it that is over.
				since := now.Add(-length).Truncate(length / 120)
				seen := noon
				for seen.Before(since) || seen.Equal(since) {
					seen = seen.Add(interval)
				}
				// The step that ends first within the window counts whole.
				if seen.After(noon) {
					seen = seen.Add(-interval)
				}
				part := tally(engines, o.metric, seen, now, o.below, o.above)
				covered := now.Sub(maxTime(noon, since)).Seconds() / now.Sub(since).Seconds()
				want[fmt.Sprintf("coverage{%s,window=%s}", labels, window)] = covered
				lower := (1 - (part.good+part.undecided)/part.valid) / (1 - o.target)
				upper := (1 - part.good/part.valid) / (1 - o.target)
				switch {
				case part.valid == 0:
				case window == "30d":
					want["error_budget_remaining{bound=lower,"+labels+"}"] = 1 - upper
					want["error_budget_remaining{bound=upper,"+labels+"}"] = 1 - lower
				default:
					want[fmt.Sprintf("burn_rate{bound=lower,%s,window=%s}", labels, window)] = lower
					want[fmt.Sprintf("burn_rate{bound=upper,%s,window=%s}", labels, window)] = upper
				}
			}
		}
		require.InDeltaMapValues(t, want, got.values, 1e-9, "scrape %d", n)
		for series, start := range got.starts {
			require.Equal(t, noon, start, series)
		}
		require.Len(t, got.starts, 6)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// scrape is half a minute after the previous one, with new first tokens before it.
func (i *instance) scrape(engines map[string]*engineLog, model string, seconds ...float64) emittedObjectives {
	i.t.Helper()
	i.at = i.at.Add(30 * time.Second)
	for _, e := range engines {
		e.firstTokenTook(i.at.Add(-time.Second), seconds...)
	}
	return i.take(body("one:8000", model, i.at, []string{firstToken}, engines))
}

const (
	valid = "valid{model_name=m,objective=ttft}"
	good  = "good{model_name=m,objective=ttft}"
)

func TestARestartOfTheServerLosesNothingAndCountsNothingTwice(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}, "1": {born: noon}}
	engines["0"].firstTokenTook(noon, 1, 1, 1, 1, 1)
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	got := p.scrape(engines, "m", 1, 3)
	assert.Equal(t, []float64{4, 2}, []float64{got.values[valid], got.values[good]})

	engines["0"] = &engineLog{born: p.at.Add(10 * time.Second)}
	got = p.scrape(engines, "m", 1)
	assert.Equal(t, []float64{6, 4}, []float64{got.values[valid], got.values[good]}, "one of the new life and one of the other engine")
	assert.Equal(t, noon, got.starts[valid], "the sum continues")
	got = p.scrape(engines, "m", 9)
	assert.Equal(t, []float64{8, 4}, []float64{got.values[valid], got.values[good]})
}

func TestSumsAreReportedWhenNothingHappens(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	got := p.scrape(engines, "m")
	assert.Equal(t, 0.0, got.values[valid])
	assert.Contains(t, got.values, valid)
	assert.NotContains(t, got.values, "attainment{bound=lower,model_name=m,objective=ttft}", "nothing is neither success nor failure")
	p.scrape(engines, "m", 1)
	p.scrape(engines, "m")
	got = p.scrape(engines, "m")
	assert.Equal(t, 1.0, got.values[valid])
	assert.NotContains(t, got.values, "attainment{bound=lower,model_name=m,objective=ttft}")
	assert.Contains(t, got.values, "burn_rate{bound=lower,model_name=m,objective=ttft,window=1h}")
}

func TestABatchInPartsIsReportedOnce(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95), promise("whole", wholeTime, 10*time.Second, 0.9)))
	engines := map[string]*engineLog{"0": {born: noon}, "1": {born: noon}}
	both := []string{firstToken, wholeTime}
	p.take(body("one:8000", "m", noon, both, engines))
	for n := 1; n < 5; n++ {
		p.at = p.at.Add(time.Minute)
		for _, e := range engines {
			e.serve(p.at, map[string]float64{firstToken: 1, wholeTime: 20})
		}
		// By engine, and by histogram.
		values := map[string]float64{}
		for _, part := range []struct {
			names  []string
			engine string
		}{{[]string{firstToken}, "0"}, {[]string{firstToken}, "1"}, {[]string{wholeTime}, "0"}, {[]string{wholeTime}, "1"}} {
			got := p.take(body("one:8000", "m", p.at, part.names, map[string]*engineLog{part.engine: engines[part.engine]}))
			assert.Empty(t, got.ended)
			for series, value := range got.values {
				assert.NotContains(t, values, series, "reported twice at one time")
				values[series] = value
			}
		}
		assert.Equal(t, float64(2*n), values[valid])
		assert.Equal(t, float64(2*n), values[good])
		assert.Equal(t, float64(2*n), values["valid{model_name=m,objective=whole}"])
		assert.Equal(t, 0.0, values["good{model_name=m,objective=whole}"])
		// The same body again is not news.
		p.take(body("one:8000", "m", p.at, both, engines))
	}
}

func TestAnEngineThatMissesAScrapeLosesNothing(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}, "1": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	// Neither engine is in the second batch alone; the third has both again.
	p.at = p.at.Add(30 * time.Second)
	engines["0"].firstTokenTook(p.at, 1)
	engines["1"].firstTokenTook(p.at, 9)
	got := p.take(body("one:8000", "m", p.at, []string{firstToken}, map[string]*engineLog{"0": engines["0"]}))
	assert.Empty(t, got.values, "half of it is not a whole")
	assert.Empty(t, got.ended)
	got = p.scrape(engines, "m", 1)
	assert.Equal(t, []float64{4, 3}, []float64{got.values[valid], got.values[good]})
	assert.Equal(t, noon, got.starts[valid])
	// All was seen: 60 s until now, since the last half minute before that hour.
	since := p.at.Add(-time.Hour).Truncate(30 * time.Second)
	assert.InDelta(t, 60/p.at.Sub(since).Seconds(), got.values[coveredHour], 1e-9)
}

func TestASumBeginsWithTheOldestOfItsSteps(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	old, young := &engineLog{born: noon}, &engineLog{born: noon}
	p.take(body("one:8000", "m", noon, []string{firstToken}, map[string]*engineLog{"1": old}))
	p.at = p.at.Add(30 * time.Second)
	p.take(body("one:8000", "m", p.at, nil, map[string]*engineLog{"1": old}))
	// One engine has a step of a minute, the other one, which is new, of half.
	got := p.scrape(map[string]*engineLog{"0": young, "1": old}, "m", 1)
	assert.Equal(t, 2.0, got.values[valid])
	assert.Equal(t, noon, got.starts[valid])
	since := p.at.Add(-time.Hour).Truncate(30 * time.Second)
	assert.InDelta(t, 60/p.at.Sub(since).Seconds(), got.values[coveredHour], 1e-9)
}

func TestAServerWithoutAHistogramIsNoContradiction(t *testing.T) {
	p := run(t, within(promise("whole", wholeTime, 10*time.Second, 0.9), promise("tpot", perToken, 50*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{wholeTime}, engines))
	p.at = p.at.Add(30 * time.Second)
	engines["0"].serve(p.at, map[string]float64{wholeTime: 2})
	got := p.take(body("one:8000", "m", p.at, []string{wholeTime}, engines))
	assert.Equal(t, 1.0, got.values["valid{model_name=m,objective=whole}"])
	assert.NotContains(t, got.values, "joint_attainment{bound=lower,model_name=m}")
	assert.Empty(t, p.sentences(zapcore.WarnLevel))
}

func TestBatchesCloseTogetherCountOnce(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	p.scrape(engines, "m", 1)
	// Batches within a 120th of the window: the last lacks the histogram.
	p.at = p.at.Add(100 * time.Millisecond)
	engines["0"].firstTokenTook(p.at, 1)
	p.take(body("one:8000", "m", p.at, []string{firstToken}, engines))
	p.at = p.at.Add(100 * time.Millisecond)
	p.take(body("one:8000", "m", p.at, nil, engines))
	got := p.scrape(engines, "m", 1)
	assert.Equal(t, 3.0, got.values[valid])
}

func TestRequestsOfOneTokenAreGood(t *testing.T) {
	p := run(t, within(promise("tpot", perToken, 50*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{perToken}, engines))
	p.at = p.at.Add(time.Minute)
	engines["0"].serve(p.at, map[string]float64{perToken: 0})
	engines["0"].serve(p.at, map[string]float64{perToken: 0.07})
	got := p.take(body("one:8000", "m", p.at, []string{perToken}, engines))
	assert.Equal(t, 2.0, got.values["valid{model_name=m,objective=tpot}"])
	assert.Equal(t, 1.0, got.values["good{model_name=m,objective=tpot}"])
}

func TestJointAttainmentIsOfFinishedRequests(t *testing.T) {
	config := within(
		promise("ttft", firstToken, 2500*time.Millisecond, 0.95),
		promise("whole", wholeTime, 10*time.Second, 0.9), promise("tpot", perToken, 50*time.Millisecond, 0.95))
	p := run(t, config)
	engines := map[string]*engineLog{"0": {born: noon}, "1": {born: noon}}
	names := []string{firstToken, wholeTime, perToken}
	p.take(body("one:8000", "m", noon, names, engines))
	p.at = p.at.Add(30 * time.Second)
	for n := range 10 {
		// 3 of 10 take too long; 4 of 10 stream too slowly.
		took := map[string]float64{firstToken: 1, wholeTime: 2, perToken: 0.02}
		if n < 3 {
			took[wholeTime] = 20
		}
		if n >= 6 {
			took[perToken] = 0.2
		}
		engines[fmt.Sprint(n%2)].serve(p.at, took)
	}
	got := p.take(body("one:8000", "m", p.at, names, engines))
	assert.InDelta(t, 0.3, got.values["joint_attainment{bound=lower,model_name=m}"], 1e-12)
	assert.InDelta(t, 0.6, got.values["joint_attainment{bound=upper,model_name=m}"], 1e-12)

	for range 2 {
		p.at = p.at.Add(30 * time.Second)
		engines["0"].serve(p.at, map[string]float64{wholeTime: 2})
		got = p.take(body("one:8000", "m", p.at, names, engines))
		assert.NotContains(t, got.values, "joint_attainment{bound=lower,model_name=m}")
	}
	logged := p.sentences(zapcore.WarnLevel)
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], "differ in their number of requests")
}

func TestPatternsChooseModels(t *testing.T) {
	p := run(t, within(
		promise("llama", firstToken, 2500*time.Millisecond, 0.95, "meta-llama/*"),
		promise("typo", firstToken, 2500*time.Millisecond, 0.95, "lama-*"),
		promise("all", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "meta-llama/L", noon, []string{firstToken}, engines))
	got := p.scrape(engines, "meta-llama/L", 1)
	assert.Contains(t, got.values, "valid{model_name=meta-llama/L,objective=llama}")
	assert.Contains(t, got.values, "valid{model_name=meta-llama/L,objective=all}")
	assert.NotContains(t, got.values, "valid{model_name=meta-llama/L,objective=typo}")
	assert.Equal(t, 2, p.objectives().Trackers.Used())
	for range 5 {
		p.scrape(engines, "meta-llama/L", 1)
	}
	logged := p.sentences(zapcore.WarnLevel)
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], `the pattern "lama-*" matches none of the models seen: meta-llama/L`)
}

// Clients choose the names that a gateway reports, so these prove no pattern right.
func TestAGatewayReportsNoModelsOfServers(t *testing.T) {
	p := run(t, within(promise("typo", firstToken, 2500*time.Millisecond, 0.95, "lama-*")))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(pickerPage(t, 0, "lama-7b 10", "lama-7b NotFound 3"))
	p.take(body("one:8000", "meta-llama/L", noon, []string{firstToken}, engines))
	for range 5 {
		p.scrape(engines, "meta-llama/L", 1)
	}
	logged := p.sentences(zapcore.WarnLevel)
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], `the pattern "lama-*" matches none of the models seen: meta-llama/L;`)
}

func TestAServerThatEndsEndsItsObjectives(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95)))
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	emitted := p.scrape(engines, "m", 1)
	p.at = p.at.Add(time.Minute)
	stale := body("one:8000", "m", p.at, []string{firstToken}, engines)
	markGone(stale)
	got := p.take(stale)
	assert.Empty(t, got.values)
	assert.Len(t, got.ended, len(emitted.values))
	assert.Subset(t, got.ended, []string{"target{model_name=m,objective=ttft}", "threshold{metric=vllm.time_to_first_token,model_name=m,objective=ttft}"},
		"a limit without a server would be drawn without end")

	got = p.scrape(engines, "m", 9)
	assert.Equal(t, 2.0, got.values[valid], "it continues within max_staleness")
	assert.Equal(t, 1.0, got.values[good])
}

func TestSwitchesHold(t *testing.T) {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95))
	off := false
	config.Metrics = map[string]MetricConfig{"vllm.slo.burn_rate": {Enabled: &off}, "vllm.slo.good": {Enabled: &off}}
	p := run(t, config)
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	got := p.scrape(engines, "m", 1)
	assert.Contains(t, got.values, valid)
	assert.NotContains(t, got.values, good)
	assert.NotContains(t, got.values, "burn_rate{bound=lower,model_name=m,objective=ttft,window=1h}")
	assert.Contains(t, got.values, "error_budget_remaining{bound=lower,model_name=m,objective=ttft}")
}

func TestWithoutObjectivesNothingIsReportedOfThem(t *testing.T) {
	p := run(t, within())
	engines := map[string]*engineLog{"0": {born: noon}}
	p.take(body("one:8000", "m", noon, []string{firstToken}, engines))
	assert.Empty(t, p.scrape(engines, "m", 1).values)
}
