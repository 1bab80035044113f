package content_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// severity is a server with one engine; more are labels of its resource.
func severity(server, model string, v float64, more string) series {
	return constant(fmt.Sprintf(`vllm_diagnosis_severity{job="vllm",instance=%q,engine="0",model_name=%q%s}`, server, model, more), v)
}

// pool is a pool as a collector reports it: job and instance are the collector's.
func pool(collector, model string, v float64, more string) series {
	return constant(fmt.Sprintf(`vllm_pool_diagnosis_severity{job="otelcol-vllm",instance=%q,model_name=%q%s}`, collector, model, more), v)
}

// affected returns "alert instance" or "alert model" for each alert that fired.
func affected(t *testing.T, story ...series) (found []string) {
	t.Helper()
	p := newPlayer(t, "vllm-diagnosis")
	story = append(story, constant(`vllm_up{job="vllm",instance="any"}`, 1))
	seen := map[string]bool{}
	for _, f := range p.play(20*minute, 30*time.Second, story...) {
		set := p.metric("{" + f.labels + "}")
		who := set.Get("instance")
		if who == "" {
			who = set.Get("model_name")
		}
		if ns := set.Get("k8s_namespace_name"); ns != "" {
			who += "@" + ns
		}
		if key := f.alert + " " + who; !seen[key] {
			seen[key] = true
			found = append(found, key)
		}
	}
	return found
}

func TestAServerPagesOnlyWhereItIsInNoPool(t *testing.T) {
	const blue, red = `,k8s_namespace_name="blue"`, `,k8s_namespace_name="red"`
	const east = `,k8s_cluster_name="east"`
	for name, c := range map[string]struct {
		story []series
		want  []string
	}{
		"all is well": {[]series{severity("a", "m", 0, ""), severity("b", "m", 1, ""), pool("c", "m", 0, "")}, nil},
		"no pool": {
			[]series{severity("a", "m", 3, ""), severity("b", "m", 2, "")},
			[]string{"VLLMServerNotServing a", "VLLMServerDegraded b"},
		},
		"the default pool, by model": {
			[]series{severity("a", "m", 3, blue), severity("b", "m", 0, red), severity("c", "other", 3, blue), pool("x", "m", 2, "")},
			[]string{"VLLMPoolDegraded m", "VLLMReplicaNotServing a@blue", "VLLMServerNotServing c@blue"},
		},
		"pools by model and namespace": {
			[]series{severity("a", "m", 3, blue), severity("b", "m", 3, red), pool("x", "m", 3, blue)},
			[]string{"VLLMPoolNotServing m@blue", "VLLMReplicaNotServing a@blue", "VLLMServerNotServing b@red"},
		},
		"pools by model and namespace, servers with a cluster": {
			[]series{severity("a", "m", 3, blue+east), severity("b", "m", 3, red+east), pool("x", "m", 0, blue)},
			[]string{"VLLMReplicaNotServing a@blue", "VLLMServerNotServing b@red"},
		},
		"pools by model, namespace and cluster": {
			[]series{severity("a", "m", 3, blue+east), severity("b", "m", 3, blue), pool("x", "m", 0, blue+east)},
			[]string{"VLLMReplicaNotServing a@blue", "VLLMServerNotServing b@blue"},
		},
		"a server of which no engine was ever seen is in no pool": {
			[]series{constant(`vllm_diagnosis_severity{job="vllm",instance="a"}`, 3), severity("b", "m", 0, ""), pool("x", "m", 0, "")},
			[]string{"VLLMServerNotServing a"},
		},
		"two collectors report the same pool: one alert": {
			[]series{severity("a", "m", 0, ""), pool("x", "m", 3, ""), pool("y", "m", 3, "")},
			[]string{"VLLMPoolNotServing m"},
		},
		"two engines of a server: one alert": {
			[]series{severity("a", "m", 3, ""), constant(`vllm_diagnosis_severity{job="vllm",instance="a",engine="1",model_name="m"}`, 0)},
			[]string{"VLLMServerNotServing a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ElementsMatch(t, c.want, affected(t, c.story...))
		})
	}
}

// share is what a server of model m harms of its pool's users.
func share(server string, v float64) series {
	return constant(fmt.Sprintf(`vllm_diagnosis_user_share_ratio{job="vllm",instance=%q,engine="0",model_name="m"}`, server), v)
}

// One incident is one open alert, which names the server.
func TestAReplicaThatDoesNotServeHasOneAlert(t *testing.T) {
	lost := constant(`vllm_pool_diagnosis_cause{job="otelcol-vllm",instance="x",model_name="m",cause="servers_lost",role="primary"}`, 1)
	for name, c := range map[string]struct {
		story []series
		want  []string
	}{
		"users are sent to it":       {[]series{severity("a", "m", 3, ""), share("a", 0.05), pool("x", "m", 2, ""), lost}, []string{"VLLMReplicaHarmsUsers a"}},
		"hardly any are":             {[]series{severity("a", "m", 3, ""), share("a", 0.04), pool("x", "m", 2, ""), lost}, []string{"VLLMReplicaNotServing a"}},
		"it is not known":            {[]series{severity("a", "m", 3, ""), share("b", 0.5), pool("x", "m", 2, ""), lost}, []string{"VLLMReplicaNotServing a"}},
		"the others are harmed, too": {[]series{severity("a", "m", 3, ""), share("a", 0.3), pool("x", "m", 2, "")}, []string{"VLLMReplicaHarmsUsers a", "VLLMPoolDegraded m"}},
		"it serves them badly":       {[]series{severity("a", "m", 2, ""), share("a", 0), pool("x", "m", 2, "")}, []string{"VLLMServerDegraded a", "VLLMPoolDegraded m"}},
		"half of the pool is lost":   {[]series{severity("a", "m", 3, ""), share("a", 0.3), pool("x", "m", 3, ""), lost}, []string{"VLLMReplicaHarmsUsers a", "VLLMPoolNotServing m"}},
		"no pool has its model":      {[]series{severity("a", "m", 3, ""), share("a", 0.3), pool("x", "n", 0, "")}, []string{"VLLMServerNotServing a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.ElementsMatch(t, c.want, affected(t, c.story...))
		})
	}
}

// A server that is back, and requests that are sent elsewhere, end the alerts within two minutes.
func TestTheAlertsOfAPoolEndSoon(t *testing.T) {
	const end = 10 * minute
	until10 := func(s series, after float64) series {
		return series{s.name, func(now time.Duration) float64 {
			if now >= end {
				return after
			}
			return s.at(now)
		}}
	}
	for alert, story := range map[string][]series{
		"VLLMReplicaHarmsUsers": {severity("a", "m", 3, ""), until10(share("a", 0.3), 0), pool("x", "m", 0, "")},
		"VLLMReplicaNotServing": {until10(severity("a", "m", 3, ""), 0), pool("x", "m", 0, "")},
		"VLLMPoolNotServing":    {until10(pool("x", "m", 3, ""), 0)},
		"VLLMPoolDegraded":      {until10(pool("x", "m", 2, ""), 0)},
	} {
		f := first(t, newPlayer(t, "vllm-diagnosis").play(20*minute, 15*time.Second, story...), alert)
		assert.LessOrEqual(t, f.to, end+2*minute, alert)
		assert.GreaterOrEqual(t, f.to, end-15*time.Second, alert)
	}
}

func TestAVanishedServerIsReported(t *testing.T) {
	const end = 30 * minute
	a, b := severity("a", "m", 0, ""), severity("b", "m", 0, "")
	up := constant(`vllm_up{job="vllm",instance="b"}`, 1)
	gone := func(t *testing.T, story ...series) []firing {
		t.Helper()
		return newPlayer(t, "vllm-diagnosis").play(2*hour, minute, append(story, up)...)
	}
	t.Run("one of two", func(t *testing.T) {
		t.Parallel()
		f := first(t, gone(t, until(end+hour, a), b), "VLLMServerVanished")
		assert.Equal(t, `instance="a", job="vllm", model_name="m"`, f.labels)
		assert.Equal(t, 10*minute, f.from-(end+hour))
	})
	t.Run("it was drained", func(t *testing.T) {
		t.Parallel()
		draining := from(end+hour-minute, constant(`vllm_diagnosis_condition{job="vllm",instance="a",engine="0",model_name="m",condition="draining"}`, 1))
		assert.Empty(t, gone(t, until(end+hour, a), b, until(end+hour, draining)))
	})
	t.Run("another took its place", func(t *testing.T) {
		t.Parallel()
		assert.Empty(t, gone(t, until(end+hour, a), b, from(end+hour, severity("a2", "m", 0, ""))))
	})
	t.Run("it comes back", func(t *testing.T) {
		t.Parallel()
		back := series{a.name, func(now time.Duration) float64 {
			if now > end+hour && now < end+hour+8*minute {
				return until(0, a).at(now)
			}
			return 0
		}}
		assert.Empty(t, gone(t, back, b))
	})
}

func TestFewerServersThanExpectedPage(t *testing.T) {
	// The default is one. The gateway is still read, so the collector is not silent.
	gateway := constant(`vllm_up{job="inference-gateway",instance="g"}`, 1)
	fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(hour, 30*time.Second, gateway, until(20*minute, severity("a", "m", 0, "")))
	assert.Equal(t, []string{"VLLMModelWithoutServers", "VLLMTooFewServers"}, names(fired))
	assert.Equal(t, 30*minute, first(t, fired, "VLLMTooFewServers").from)
}

func TestASilentCollectorIsOneAlert(t *testing.T) {
	up, a, b := constant(`vllm_up{job="vllm",instance="a"}`, 1), severity("a", "m", 0, ""), severity("b", "m", 0, "")
	fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(3*hour, minute,
		until(90*minute, up), until(90*minute, a), until(90*minute, b))
	assert.Equal(t, []string{"VLLMCollectorSilent"}, names(fired))
	f := first(t, fired, "VLLMCollectorSilent")
	assert.Equal(t, firing{"VLLMCollectorSilent", "", 100 * minute, 3 * hour}, f)

	// Of two clusters one is silent.
	east := until(90*minute, constant(`vllm_up{job="vllm",instance="a",k8s_cluster_name="east"}`, 1))
	west := constant(`vllm_up{job="vllm",instance="a",k8s_cluster_name="west"}`, 1)
	f = first(t, newPlayer(t, "vllm-collector").play(2*hour, minute, east, west), "VLLMCollectorSilent")
	assert.Equal(t, `k8s_cluster_name="east"`, f.labels)
}

func TestAServerWithoutDiagnosisIsReported(t *testing.T) {
	running := func(server string) series {
		return constant(fmt.Sprintf(`vllm_num_requests_running{job="vllm",instance=%q,engine="0",model_name="m"}`, server), 1)
	}
	assert.Equal(t, []string{"VLLMDiagnosisMissing b"}, affected(t, running("a"), severity("a", "m", 0, ""), running("b")))
}
