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
		paged     = "VLLMModelDown"
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
	arrivals := func(rate float64) []series {
		name := `vllm_arrival_rate_per_second{job="vllm",instance="a",engine="0",model_name="m"` + blue + "}"
		return []series{until(end, steps(name, 0*minute, rate, minute, 0.))}
	}
	for name, c := range map[string]struct {
		story [][]series
		want  []string
	}{
		"the only model":                             {[][]series{a, {kept("c", 0*minute, 1., end, 0.)}}, []string{reported}},
		"one of two":                                 {[][]series{a, server("b", "n", blue), {kept("c", 0*minute, 2., end, 1.)}}, []string{reported}},
		"one of two, without own telemetry":          {[][]series{a, server("b", "n", blue)}, []string{reported}},
		"another model grows":                        {[][]series{a, server("b", "n", blue), between(end, day, server("b2", "n", blue)), {kept("c", 0*minute, 2.)}}, []string{reported}},
		"another namespace grows":                    {[][]series{a, server("b", "n", red), between(end, day, server("b2", "n", red)), {kept("c", 0*minute, 2.)}}, []string{reported}},
		"the model has servers in another namespace": {[][]series{a, server("b", "m", red), {kept("c", 0*minute, 2., end, 1.)}}, []string{reported}},
		"it keeps a server":                          {[][]series{a, server("b", "m", blue), {kept("c", 0*minute, 2., end, 1.)}}, nil},
		"the server cannot be read":                  {[][]series{{severity("a", "m", 3, blue), constant(`vllm_up{job="vllm",instance="a"}`, 0)}, {kept("c", 0*minute, 1., end, 1.)}}, []string{"VLLMServerNotServing"}},
		"nothing is known":                           {[][]series{a}, []string{silent}},
		"the collector ends":                         {[][]series{a, {until(end, kept("c", 0*minute, 1.))}}, []string{silent}},
		"one collector of two ends":                  {[][]series{a, server("b", "n", red), {until(end, kept("c", 0*minute, 1.)), kept("d", 0*minute, 1.)}}, nil},
		"one agent of a namespace is away for eight minutes": {[][]series{
			away(8*minute, append(server("a", "m", blue), kept("c", 0*minute, 1.))...), server("b", "n", blue), {kept("d", 0*minute, 1.)},
		}, nil},
		"the collector starts again": {[][]series{away(4*minute, server("a", "m", blue)...), {kept("c", 0*minute, 1., end, 0., end+30*time.Second, 1.)}}, nil},
		"a rollout that loads the model for nine minutes": {[][]series{
			a, between(end+9*minute, day, server("a2", "m", blue)), server("b", "n", blue),
			{kept("c", 0*minute, 2., end, 1., end+minute, 2.)},
			between(end+minute, end+9*minute, []series{severity("a2", "", 1, blue)}),
		}, nil},
	} {
		// The same with a request in the hour before is a page.
		for alert, requests := range map[string]float64{reported: 0, paged: 0.5} {
			t.Run(name+": "+alert, func(t *testing.T) {
				t.Parallel()
				fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(40*minute, 15*time.Second, slices.Concat(append(c.story, arrivals(requests))...)...)
				want := slices.Clone(c.want)
				if i := slices.Index(want, reported); i >= 0 {
					want[i] = alert
				}
				assert.ElementsMatch(t, want, names(fired))
				for _, f := range fired {
					if f.alert == alert {
						assert.Equal(t, firing{alert, `k8s_namespace_name="blue", model_name="m"`, end + 2*minute, 40 * minute}, f)
					}
				}
			})
		}
	}
	// What happens after the only server has left, and from when to when the alert fires.
	found := kept("c", 0*minute, 1., end, 0.)
	for name, c := range map[string]struct {
		story    [][]series
		length   time.Duration
		from, to time.Duration
	}{
		"for a day":                    {[][]series{a, {found}}, 26 * hour, end + 2*minute, end + day - minute},
		"until a server is back":       {[][]series{a, between(5*hour, day, server("a2", "m", blue)), {found}}, 6 * hour, end + 2*minute, 5*hour - minute},
		"while another server starts":  {[][]series{a, between(hour, 2*hour, []series{severity("a2", "", 1, blue)}), {found}}, 3 * hour, end + 2*minute, 3 * hour},
		"while a collector is updated": {[][]series{a, {until(2*hour, found), from(2*hour+4*minute, kept("d", 0*minute, 0.))}}, 4 * hour, end + 2*minute, 2*hour - minute},
		"once a start takes too long":  {[][]series{a, {found}, between(end, day, []series{severity("a2", "", 1, blue)})}, 2 * hour, end + 12*minute, 2 * hour},
		"once a start has failed":      {[][]series{a, {found, steps(severity("a2", "", 0, blue).name, end, 1., end+4*minute, 2.)}}, 2 * hour, end + 6*minute, 2 * hour},
	} {
		for alert, requests := range map[string]float64{reported: 0, paged: 0.5} {
			t.Run("it stays "+name+": "+alert, func(t *testing.T) {
				t.Parallel()
				fired := newPlayer(t, "vllm-diagnosis", "vllm-collector").play(c.length, minute, slices.Concat(append(c.story, arrivals(requests))...)...)
				fired = slices.DeleteFunc(fired, func(f firing) bool { return f.alert == "VLLMServerDegraded" })
				assert.Equal(t, []string{alert}, names(fired), "nor is the collector silent")
				assert.Equal(t, firing{alert, `k8s_namespace_name="blue", model_name="m"`, c.from, c.to}, fired[0])
				if name == "while a collector is updated" && assert.Len(t, fired, 2) {
					assert.Equal(t, []time.Duration{2*hour + 6*minute, c.length}, []time.Duration{fired[1].from, fired[1].to})
				}
			})
		}
	}
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
