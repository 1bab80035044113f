package content_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

const server = `job="vllm",instance="a:8000",engine="0",model_name="m"`

// turns is a series with one value for a day, and another one from then on.
func turns(name string, before, after float64) series {
	return series{name, func(now time.Duration) float64 {
		if now < day {
			return before
		}
		return after
	}}
}

// messages plays a story, and returns what each alert that is active in the end
// says: its description, by name.
func messages(t *testing.T, group string, length, step time.Duration, story ...series) map[string]string {
	t.Helper()
	p, said := newPlayerOf(t, content.Groups(), group), map[string]string{}
	p.play(length, step, append(story, constant(`vllm_up{job="vllm",instance="any"}`, 1))...)
	for _, g := range p.groups {
		for _, rule := range g.AlertingRules() {
			for _, a := range rule.ActiveAlerts() {
				a.Annotations.Range(func(l labels.Label) {
					for _, wrong := range []string{"<error", "<no value>", "{{", "\n\n", "  ", " \n", "NaN"} {
						assert.NotContains(t, l.Value, wrong, "%s of %s", l.Name, rule.Name())
					}
				})
				said[rule.Name()] = strings.ReplaceAll(a.Annotations.Get("description"), "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/", "RUNBOOKS/")
			}
		}
	}
	return said
}

// state is a server with a condition, and a primary cause if it is not empty.
func state(labels string, severity float64, condition, cause, detail string) []series {
	all := []series{
		turns("vllm_diagnosis_severity{"+labels+"}", 0, severity),
		turns("vllm_diagnosis_condition{"+labels+`,condition="serving"}`, 1, 0),
		from(day, constant("vllm_diagnosis_condition{"+labels+`,condition="`+condition+`"}`, 1)),
	}
	if cause != "" {
		all = append(all, from(day, constant("vllm_diagnosis_cause{"+labels+`,role="primary",cause="`+cause+`",detail="`+detail+`"}`, 1)))
	}
	return all
}

func felt(labels string) []series {
	return []series{
		turns("vllm_diagnosis_first_token_wait_seconds{"+labels+"}", 0.4, 14.25),
		turns("vllm_inter_token_latency_mean_seconds{"+labels+"}", 0.02, 0.085),
		turns("vllm_num_requests_waiting{"+labels+"}", 1, 40),
		turns("vllm_arrival_rate_per_second{"+labels+"}", 0.75, 6),
		turns("vllm_request_prompt_tokens_mean{"+labels+"}", 145, 802),
	}
}

// An incident that lasts for half a day is still compared with the day before it.
func TestAServersMessageSaysAll(t *testing.T) {
	t.Parallel()
	for name, length := range map[string]time.Duration{"at once": day + 10*minute, "half a day later": day + 13*hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := append(state(server, 3, "critical", "slow_steps", "thermal"), felt(server)...)
			assert.Equal(t, `Its users get no answer or errors, or wait many times longer than usual.
Condition: critical. Cause: slow_steps (thermal). What to do: RUNBOOKS/slow_steps.md
Wait for the first token so far: 14.25s now, usual 400ms
Time between tokens: 85ms now, usual 20ms
Requests that wait: 40 now, usual 1
Requests that arrive a second: 6 now, usual 0.75
Tokens of a prompt: 802 now, usual 145
Reported since 2023-11-15 22:00:00 +0000 UTC. Usual is the median of up to 24 hours before, without harm.
Next: Send one request of your own. No answer proves an outage. A quick answer proves little while others wait: compare it with the usual wait for the first token.`, messages(t, "vllm-diagnosis", length, 5*minute, story...)["VLLMServerNotServing"])
		})
	}
}

// An incident of eighteen hours before this one is not usual.
func TestAnEarlierIncidentIsNotUsual(t *testing.T) {
	t.Parallel()
	earlier := func(name string, well, ill float64) series {
		return series{name + "{" + server + "}", func(now time.Duration) float64 {
			if now > 2*hour && now < 20*hour || now >= day {
				return ill
			}
			return well
		}}
	}
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, earlier("vllm_diagnosis_severity", 0, 3), earlier("vllm_diagnosis_first_token_wait_seconds", 0.25, 14))
	assert.Contains(t, said["VLLMServerNotServing"], "Wait for the first token so far: 14s now, usual 250ms\n")
}

// A server that was never read has nothing but a severity, and an alert must not be lost for that.
func TestAMessageWithoutDataSaysSo(t *testing.T) {
	t.Parallel()
	said := messages(t, "vllm-diagnosis", 10*minute, 5*minute, severity("a:8000", "m", 3, ""), pool("c", "m", 3, ""))
	assert.Equal(t, `Half or more of the servers of this pool do not serve their users, or serve them far too late. The worst servers come first.
Condition: not reported now. Cause: not known
Server a:8000: condition not reported now, cause not known
Wait for the first token so far, worst of these servers: not measured now, no usual value yet
Time between tokens, worst of these servers: not measured now, no usual value yet
Requests that wait: not measured now, no usual value yet
Reported since 2023-11-14 22:00:00 +0000 UTC. Usual is the median of up to 24 hours before, without harm.
Next: See since when. A change in all servers at one time is a release, a configuration, the network or the model storage.`, said["VLLMPoolNotServing"])
	assert.Contains(t, said["VLLMReplicaNotServing"], "Condition: not reported now. Cause: not known\nWait")
}

func TestAMessageAboutAScrapeThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, append(state(server, 3, "unreachable", "", ""),
		constant(`vllm_scrape_failure{job="vllm",instance="a:8000",outcome="timeout"}`, 1))...)
	assert.Contains(t, said["VLLMServerNotServing"], "Condition: unreachable. Cause: the scrape fails: timeout. What to do: RUNBOOKS/unreachable.md\n")
}

// A hang that ended the process: until the condition changes, nothing may send the reader to save its stacks.
func TestAMessageAboutAServerThatEndedSendsToItsLog(t *testing.T) {
	t.Parallel()
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, append(append(state(server, 3, "stalled", "", ""), felt(server)[2]),
		constant(`vllm_scrape_failure{job="vllm",instance="a:8000",outcome="refused"}`, 1))...)["VLLMServerNotServing"]
	assert.Contains(t, said, "Condition: stalled. Cause: the scrape fails: refused (nothing listens). What to do: RUNBOOKS/stalled.md\n")
	assert.Contains(t, said, "Next: Read the end of the server's log and of the process before, and check whether its process or its pod restarted.")
	assert.NotContains(t, said, "stack")
	assert.NotContains(t, said, "makes progress")
}

// The pool has no namespace, its servers have. The worst come first, and five are enough.
func TestAPoolsMessageNamesTheWorstServers(t *testing.T) {
	t.Parallel()
	story := []series{pool("c", "m", 3, ""), severity("other:8000", "other", 3, "")}
	for i := range 7 {
		labels := fmt.Sprintf(`job="vllm",instance="s%d:8000",engine="0",model_name="m",k8s_namespace_name="n",k8s_pod_name="chat-%[1]d"`, i)
		if i == 3 {
			story = append(append(story, state(labels, 3, "stalled", "", "")...), felt(labels)...)
			continue
		}
		story = append(story, state(labels, 2, "degraded", "kv_pressure", "")...)
	}
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, story...)["VLLMPoolNotServing"]
	lines := strings.Split(said, "\n")
	require.Len(t, lines, 15, said)
	assert.Equal(t, "Server s3:8000 (chat-3): stalled, cause not visible from outside", lines[2])
	for _, line := range lines[3:7] {
		assert.Regexp(t, `^Server s[0-6]:8000 \(chat-[0-6]\): degraded, cause kv_pressure$`, line)
	}
	assert.Equal(t, []string{"And 2 more", "Wait for the first token so far, worst of these servers: 14.25s now, usual 400ms"}, lines[7:9])
}

// One of two servers hangs, and the other is as fast as never before.
func TestAPoolsNumbersAreThoseOfTheServersThatHarm(t *testing.T) {
	t.Parallel()
	const hangs, serves = `job="vllm",instance="a",engine="0",model_name="m"`, `job="vllm",instance="b",engine="0",model_name="m"`
	story := append(state(hangs, 3, "stalled", "", ""), pool("c", "m", 3, ""), constant("vllm_diagnosis_severity{"+serves+"}", 0),
		// Nothing is measured where no request gets a token; the gauges do not show who waits.
		series{"vllm_diagnosis_first_token_wait_seconds{" + hangs + "}", func(now time.Duration) float64 {
			if now < day {
				return 0.25
			}
			return math.NaN()
		}},
		turns("vllm_num_requests_waiting{"+hangs+"}", 2, 0),
		turns("vllm_diagnosis_first_token_wait_seconds{"+serves+"}", 0.5, 0.03125), constant("vllm_num_requests_waiting{"+serves+"}", 7),
	)
	said := messages(t, "vllm-diagnosis", day+10*minute, 5*minute, story...)
	assert.Contains(t, said["VLLMPoolNotServing"], `
Server a: stalled, cause not visible from outside
Wait for the first token so far, worst of these servers: not measured, as no request makes progress, usual 250ms
Time between tokens, worst of these servers: not measured, as no request makes progress, no usual value yet
Requests that wait: none that gauges show, usual 2
`)
	assert.Contains(t, said["VLLMReplicaNotServing"], "Condition: stalled. Cause: not visible from outside. What to do: RUNBOOKS/stalled.md\n")
	assert.Contains(t, said["VLLMReplicaNotServing"], "\nNext: Check the state of the server's processes. If other servers have its model, take it out of rotation. Save a stack dump")
}

// A gauge of 0 is not what people read beside a wait of many seconds.
func TestAGaugeOfNoneIsNotBelievedBesideALongWait(t *testing.T) {
	t.Parallel()
	for wait, want := range map[float64]string{49.83: "none that gauges show, usual 0", 0.4: "0 now, usual 0"} {
		said := messages(t, "vllm-diagnosis", day+10*minute, 30*minute, append(state(server, 3, "critical", "", ""),
			turns("vllm_diagnosis_first_token_wait_seconds{"+server+"}", 0.4, wait), constant("vllm_num_requests_waiting{"+server+"}", 0))...)
		assert.Contains(t, said["VLLMServerNotServing"], "\nRequests that wait: "+want+"\n")
		assert.Contains(t, said["VLLMServerNotServing"], "Cause: not known. What to do: RUNBOOKS/critical.md\n")
	}
}

func TestTheMessageOfAnObjectiveNamesTheServersThatMissIt(t *testing.T) {
	t.Parallel()
	const labels = `job="vllm",instance="a",engine="0",model_name="m"`
	story := append(objective("a", 0.99, 10, day, 1, 0.5), state(labels, 2, "degraded", "kv_pressure", "")...)
	said := messages(t, "vllm-slo", day+20*minute, minute, append(story, felt(labels)...)...)
	require.Contains(t, said, "VLLMBudgetBurnFast")
	_, said["VLLMBudgetBurnFast"], _ = strings.Cut(said["VLLMBudgetBurnFast"], "\n")
	assert.Regexp(t, `^Server a: degraded, cause kv_pressure
Missed the objective in 5 minutes: 50% now, usual 0%
Wait for the first token so far, worst of these servers: 14.25s now, usual 400ms
Reported since 2023-11-15 22:1[78]:00 \+0000 UTC. Usual is the median of up to 24 hours before, without harm.
Next: See how fast the budget is used now, and whether it gets worse.$`, said["VLLMBudgetBurnFast"])
}

// Whatever a server calls its model, no query fails, and no other server's numbers appear.
func TestAHostileNameBreaksNoMessage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`a"b`, `a\b`, "a`b", `x"} or vector(1) or y{z="`, `{{ $labels }}x`, "%s%q%!", "ü\u202e\x01"} {
		p := newPlayerOf(t, content.Groups(), "vllm-diagnosis")
		story := append(state(fmt.Sprintf(`job="vllm",instance="a:8000",engine="0",model_name=%q`, name), 3, "stalled", "", ""), felt(server)...)
		p.play(day+10*minute, 30*minute, append(story, constant(fmt.Sprintf(`vllm_pool_diagnosis_severity{model_name=%q}`, name), 3))...)
		seen := 0
		for _, rule := range p.groups[0].AlertingRules() {
			for _, a := range rule.ActiveAlerts() {
				if said := a.Annotations.Get("description"); strings.Contains(said, "Condition") {
					assert.NotContains(t, said, "<error")
					assert.Contains(t, said, "stalled", "%s of %q", rule.Name(), name)
					assert.Contains(t, said, ": not measured, as no request makes progress, no usual value yet", "%s of %q", rule.Name(), name)
					seen++
				}
			}
		}
		assert.Positive(t, seen, name)
	}
}
