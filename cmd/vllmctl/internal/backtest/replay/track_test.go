package replay

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func see(t *tracker, minute float64, condition string, severity int, cause string) {
	t.see(&reading{
		subject: Subject{Target: "a"}, at: noon.Add(time.Duration(minute * float64(time.Minute))),
		verdict: Verdict{Verdict: verdict.Verdict{Diagnosis: wording.Diagnosis{Condition: condition, Cause: cause}}, Severity: severity},
	})
}

func TestEpisodesEndWhereTheVerdictChanges(t *testing.T) {
	tr := newTracker(5 * time.Minute)
	see(tr, 0, "healthy", 0, "")
	see(tr, 1, "healthy", 1, "") // A notice.
	see(tr, 2, "degraded", 2, "slow_steps")
	see(tr, 3, "degraded", 2, "slow_steps")
	see(tr, 4, "degraded", 2, "kv_pressure")
	see(tr, 5, "unknown", 1, "")
	see(tr, 6, "unknown", 2, "")
	see(tr, 20, "unknown", 2, "") // After a silence.
	tr.see(&reading{subject: Subject{Target: "a"}, at: noon.Add(21 * time.Minute), verdict: Verdict{ended: true, Severity: -1}})
	see(tr, 22, "healthy", 0, "")
	type short struct {
		condition, cause string
		from, to         float64
	}
	var got []short
	for _, e := range tr.finish() {
		got = append(got, short{e.Condition, e.Cause, e.From.Sub(noon).Minutes(), e.To.Sub(noon).Minutes()})
	}
	assert.Equal(t, []short{
		{"healthy", "", 0, 2},
		{"degraded", "slow_steps", 2, 4},
		{"degraded", "kv_pressure", 4, 5},
		{"unknown", "", 5, 6},
		{"unknown", "", 6, 6},
		{"unknown", "", 20, 21},
		{"healthy", "", 22, 22},
	}, got)
}

func TestTheNumberOfEpisodesIsBounded(t *testing.T) {
	tr := newTracker(time.Hour)
	tr.most = 10
	for i := range 30 {
		see(tr, float64(i), []string{"healthy", "idle"}[i%2], 0, "")
	}
	assert.Len(t, tr.finish(), 10)
	assert.Equal(t, 20, tr.dropped)
}

func TestLabelsOfATargetBecomeAttributes(t *testing.T) {
	got := attributesOf(labels.FromStrings("job", "v", "instance", "a:8000", "namespace", "n", "pod", "p", "cluster", "c", "team", "x", "k8s_pod_uid", "u"), true)
	assert.Equal(t, map[string]any{
		"service.namespace": "v", "k8s.namespace.name": "n", "k8s.pod.name": "p", "k8s.cluster.name": "c", "team": "x", "k8s.pod.uid": "u",
	}, got)
	for instance, want := range map[string]string{
		"a:8000": "http://a:8000", "[::1]:8000": "http://[::1]:8000", "plain": "http://target", "a b:1": "http://target", "": "http://target", "x:": "http://target", "u@h:1": "http://target",
	} {
		attributes := map[string]any{}
		assert.Equal(t, want, endpointOf(instance, attributes), instance)
		if want == "http://target" {
			assert.Equal(t, instance, attributes["service.instance.id"])
		} else {
			assert.Empty(t, attributes)
		}
	}
}

// A label of the server that has the name of one of Prometheus's is written as the server
// wrote it.
func TestLabelsAreThoseOfTheServer(t *testing.T) {
	target := labels.FromStrings("job", "v", "instance", "a:8000", "pod", "p")
	for want, l := range map[string]labels.Labels{
		``:                      labels.FromStrings("__name__", "x", "job", "v", "instance", "a:8000", "pod", "p"),
		`{pod="own"}`:           labels.FromStrings("__name__", "x", "job", "v", "instance", "a:8000", "pod", "p", "exported_pod", "own"),
		`{a="\"\\\n",le="0.5"}`: labels.FromStrings("__name__", "x", "le", "0.5", "a", "\"\\\n", "job", "v"),
		`{exported_other="x"}`:  labels.FromStrings("__name__", "x", "exported_other", "x"),
		`{job="other"}`:         labels.FromStrings("__name__", "x", "job", "other"),
		`{b="c"}`:               labels.FromStrings("__name__", "x", "b", "c", "with.dot", "y"),
	} {
		assert.Equal(t, want, shown(l, target))
	}
	for _, v := range []float64{0, 1, -1, 1e14, 1e300, 0.1, 123456.789, 5e-324} {
		require.NotEmpty(t, appendNumber(nil, v))
	}
	assert.Equal(t, "12", string(appendNumber(nil, 12)))
	assert.Equal(t, "0.1", string(appendNumber(nil, 0.1)))
}
