package content_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps is a series whose values hold from a time on; NaN is no sample.
func steps(name string, values ...any) series {
	return series{name, func(now time.Duration) float64 {
		v := math.NaN()
		for i := 0; i < len(values); i += 2 {
			if now >= values[i].(time.Duration) {
				v = values[i+1].(float64)
			}
		}
		return v
	}}
}

var (
	severityOfA = severity("a", "m", 0, "").name
	shareOfA    = share("a", 0).name
)

// opened is how often each alert opened.
func opened(fired []firing) map[string]int {
	all := map[string]int{}
	for _, f := range fired {
		all[f.alert]++
	}
	return all
}

func TestOneIncidentIsOnePage(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	well := pool("x", "m", 0, "")
	for name, c := range map[string]struct {
		story []series
		want  map[string]int
	}{
		"a scrape that fails": {
			[]series{steps(severityOfA, 0*minute, 3., 10*minute, none, 10*minute+15*time.Second, 3.)},
			map[string]int{"VLLMServerNotServing": 1},
		},
		"harm that becomes less and great again": {
			[]series{steps(severityOfA, 0*minute, 3., 10*minute, 2., 14*minute, 3.)}, map[string]int{"VLLMServerNotServing": 1},
		},
		"less harm that lasts is a ticket": {
			[]series{steps(severityOfA, 0*minute, 3., 10*minute, 2.)}, map[string]int{"VLLMServerNotServing": 1, "VLLMServerDegraded": 1},
		},
		"a share of the users around the limit": {
			[]series{severity("a", "m", 3, ""), well, {shareOfA, func(now time.Duration) float64 { return 0.05 + 0.01*math.Cos(now.Minutes()) }}},
			map[string]int{"VLLMReplicaHarmsUsers": 1},
		},
		"a pool that is seen later than its server": {
			[]series{severity("a", "m", 3, ""), from(5*minute, well), from(5*minute, share("a", 0.3))},
			map[string]int{"VLLMServerNotServing": 1, "VLLMReplicaHarmsUsers": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := newPlayer(t, "vllm-diagnosis").play(30*minute, 15*time.Second, c.story...)
			require.Equal(t, c.want, opened(fired), "%v", fired)
			for i := 1; i < len(fired); i++ {
				assert.LessOrEqual(t, fired[i-1].to, fired[i].from, "both at a time: %v", fired)
			}
		})
	}
}

// The share is known while the harm is great only.
func TestAReplicasPageNamesNoShareThatIsNotMeasured(t *testing.T) {
	t.Parallel()
	for severity, want := range map[float64]string{
		3: "a in a pool does not serve m, or serves it far too late: the router still sends 30% of the pool's users to it",
		2: "a in a pool does not serve m, or serves it far too late",
	} {
		p := newPlayer(t, "vllm-diagnosis")
		p.play(13*minute, 15*time.Second, steps(severityOfA, 0*minute, 3., 10*minute, severity), steps(shareOfA, 0*minute, 0.3, 10*minute, 0.3*(severity-2)),
			pool("x", "m", 0, ""))
		var said []string
		for _, rule := range p.groups[0].AlertingRules() {
			for _, a := range rule.ActiveAlerts() {
				said = append(said, a.Annotations.Get("summary"))
			}
		}
		assert.Equal(t, []string{want}, said)
	}
}

// After an outage of ten minutes few requests come, or the collector scrapes seldom, so that at some moments the
// last two minutes say nothing.
func TestABurnPageDoesNotEndAndBeginAgain(t *testing.T) {
	t.Parallel()
	const begin, end = 65 * minute, 75 * minute
	for name, c := range map[string]struct {
		scrape time.Duration
		rate   float64 // events per second after the outage
	}{"few events": {15 * time.Second, 10. / 120}, "a scrape each 90 s": {90 * time.Second, 10}, "a scrape a minute": {time.Minute, 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := objective("a", 0.99, 10, 0, 1, 1)
			valid := func(now time.Duration) float64 {
				after := max(now-end, 0)
				v := 10*min(now, end).Seconds() + c.rate*after.Seconds()
				if c.rate < 1 { // in pairs, so that two minutes have eight or twelve
					v = 10*min(now, end).Seconds() + 4*math.Floor(after.Seconds()/48)
				}
				return v
			}
			story[1].at = valid
			story[2].at = func(now time.Duration) float64 { return valid(now) - 10*(min(max(now, begin), end)-begin).Seconds() }
			for i, s := range story {
				story[i].at = func(now time.Duration) float64 { return s.at(now.Truncate(c.scrape)) }
				if i > 0 && c.scrape > 15*time.Second {
					story[i].at = func(now time.Duration) float64 {
						if now%c.scrape != 0 {
							return math.NaN()
						}
						return s.at(now)
					}
				}
			}
			p := newPlayer(t, "vllm-slo")
			p.noMarkers = true
			fired := p.play(end+20*minute, 15*time.Second, story...)
			assert.Equal(t, 1, opened(fired)["VLLMBudgetBurnFast"], "%v", fired)
			assert.LessOrEqual(t, first(t, fired, "VLLMBudgetBurnFast").to, end+5*minute)
		})
	}
}

// Ten requests a minute, and each 150 s three more are refused: 11 % for an hour, but no two minutes are alike.
func TestErrorsThatComeTogetherPage(t *testing.T) {
	t.Parallel()
	bursts := series{shed, func(now time.Duration) float64 { return 3 * math.Floor(now.Minutes()/2.5) }}
	fired := newPlayer(t, "vllm-gateway").play(hour, 15*time.Second, counter(requests, 10./60, 0, 10./60), bursts)
	assert.Equal(t, map[string]int{"VLLMGatewayErrors": 1}, opened(fired), "%v", fired)
}

// Two engines of a server, of which one is well; and six servers.
func TestAMessageIsReadAloud(t *testing.T) {
	t.Parallel()
	story := []series{
		pool("c", "m", 3, ""), constant(`vllm_scrape_failure{job="vllm",instance="lone",outcome="timeout"}`, 1),
		constant(`vllm_scrape_failure{job="vllm",instance="lone",outcome="refused"}`, 1),
	}
	story = append(story, state(`job="vllm",instance="lone",model_name="other"`, 3, "unreachable", "", "")...)
	story = append(story, share("a", 0.25))
	for _, s := range "abcdef" {
		of := `job="vllm",instance="` + string(s) + `",model_name="m",engine=`
		story = append(story, state(of+`"0"`, 3, "critical", "", "")...)
		story = append(story, constant("vllm_diagnosis_severity{"+of+`"1"}`, 0), constant("vllm_diagnosis_condition{"+of+`"1",condition="serving"}`, 1))
	}
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, story...)
	assert.Contains(t, said["VLLMPoolNotServing"], "Server a: critical, cause not known; the router still sends 25% of the users to it\n")
	assert.Contains(t, said["VLLMPoolNotServing"], "\nAnd 1 more\n")
	assert.Contains(t, said["VLLMServerNotServing"], "Cause: the scrape fails: refused (nothing listens), timeout. What to do: RUNBOOKS/unreachable.md\n")
}
