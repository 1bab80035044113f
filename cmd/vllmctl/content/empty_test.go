package content_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// kept is how many targets discovery of a collector keeps; the values hold from a time on.
func kept(collector string, values ...any) series {
	return steps(fmt.Sprintf(`otelcol_receiver_vllm_discovered_targets{job="own",instance=%q,receiver="vllm",stage="kept"}`, collector), values...)
}

// Collectors began to report 3 minutes before the only server of a model leaves its namespace.
func TestAModelWithoutServersIsReported(t *testing.T) {
	const (
		end       = 3 * minute
		blue, red = `,k8s_namespace_name="blue"`, `,k8s_namespace_name="red"`
		reported  = "VLLMModelWithoutServers"
		silent    = "VLLMCollectorSilent"
	)
	server := func(name, model, ns string) []series {
		return []series{severity(name, model, 0, ns), constant(fmt.Sprintf(`vllm_up{job="vllm",instance=%q%s}`, name, ns), 1)}
	}
	between := func(begin, stop time.Duration, all []series) []series {
		for i := range all {
			all[i] = until(stop, from(begin, all[i]))
		}
		return all
	}
	// away are series that are away from end for some time.
	away := func(back time.Duration, all ...series) []series {
		for i, s := range all {
			all[i].at = func(now time.Duration) float64 {
				if now >= end && now < end+back {
					return math.NaN()
				}
				return s.at(now)
			}
		}
		return all
	}
	a := between(0, end, server("a", "m", blue))
	for name, c := range map[string]struct {
		story [][]series
		want  []string
	}{
		"the only model":                             {[][]series{a, {kept("c", 0*minute, 1., end, 0.)}}, []string{reported}},
		"one of two":                                 {[][]series{a, server("b", "n", blue), {kept("c", 0*minute, 2., end, 1.)}}, []string{reported}},
		"one of two, without own telemetry":          {[][]series{a, server("b", "n", blue)}, []string{reported}},
		"another model grows":                        {[][]series{a, server("b", "n", blue), between(end, day, server("b2", "n", blue)), {kept("c", 0*minute, 2.)}}, []string{reported}},
		"the model has servers in another namespace": {[][]series{a, server("b", "m", red), {kept("c", 0*minute, 2., end, 1.)}}, []string{reported}},
		"it keeps a server":                          {[][]series{a, server("b", "m", blue), {kept("c", 0*minute, 2., end, 1.)}}, nil},
		"the server cannot be read":                  {[][]series{{severity("a", "m", 3, blue), constant(`vllm_up{job="vllm",instance="a"}`, 0)}, {kept("c", 0*minute, 1., end, 1.)}}, []string{"VLLMServerNotServing"}},
		"nothing is known":                           {[][]series{a}, []string{silent}},
		"the collector ends":                         {[][]series{a, {until(end, kept("c", 0*minute, 1.))}}, []string{silent}},
		"one collector of two ends":                  {[][]series{a, server("b", "n", red), {until(end, kept("c", 0*minute, 1.)), kept("d", 0*minute, 1.)}}, nil},
		"one agent of a namespace is away for eight minutes": {[][]series{
			away(8*minute, append(server("a", "m", blue), kept("c", 0*minute, 1.))...), server("b", "n", blue), {kept("d", 0*minute, 1.)},
		}, nil},
		"the collector starts again": {[][]series{away(time.Minute, server("a", "m", blue)...), {kept("c", 0*minute, 1., end, 0., end+30*time.Second, 1.)}}, nil},
		"a rollout that loads the model for nine minutes": {[][]series{
			a, between(end+9*minute, day, server("a2", "m", blue)), server("b", "n", blue), {kept("c", 0*minute, 2., end, 1., end+minute, 2.)},
			between(end+minute, end+9*minute, []series{severity("a2", "", 1, blue)}),
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(40*minute, 15*time.Second, slices.Concat(c.story...)...)
			assert.ElementsMatch(t, c.want, names(fired))
			for _, f := range fired {
				if f.alert == reported {
					assert.Equal(t, firing{reported, `k8s_namespace_name="blue", model_name="m"`, end + 2*minute, 40 * minute}, f)
				}
			}
		})
	}
	t.Run("it is resolved within an hour", func(t *testing.T) {
		t.Parallel()
		fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(3*hour, minute, append(a, kept("c", 0*minute, 1., end, 0.))...)
		assert.Equal(t, []string{reported}, names(fired), "nor is the collector silent")
		assert.InDelta(t, (end + hour).Minutes(), fired[0].to.Minutes(), 2)
	})
	t.Run("the collector of another cluster finds none", func(t *testing.T) {
		t.Parallel()
		up := func(cluster string) series {
			return until(end, constant(`vllm_up{job="vllm",instance="a",k8s_cluster_name="`+cluster+`"}`, 1))
		}
		found := kept("c", 0*minute, 1., end, 0.)
		assert.Empty(t, newPlayer(t, "vllm-collector").play(40*minute, minute, up("west"), found))
		assert.Equal(t, []string{silent}, names(newPlayer(t, "vllm-collector").play(40*minute, minute, up("west"), up("east"), found)))
	})
}
