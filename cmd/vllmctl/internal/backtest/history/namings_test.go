package history

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
)

// Prometheus scrapes a server, and a collector that reads it too writes our names. That is one server, unless
// something says that they are two. No name has a label without a value.
func TestAServerUnderBothNamingsCountsOnce(t *testing.T) {
	raw := func(pairs ...string) labels.Labels {
		return series(append([]string{"__name__", "vllm:num_requests_running", "instance", "a:8000"}, pairs...)...)
	}
	ours := func(pairs ...string) labels.Labels {
		return series(append([]string{"__name__", "vllm_up"}, pairs...)...)
	}
	page := func(pairs ...string) labels.Labels {
		return ours(append([]string{"job", "otel", "instance", "collector:9464", "exported_instance", "a:8000", "namespace", "monitoring", "pod", "collector-0"}, pairs...)...)
	}
	for name, c := range map[string]struct {
		in   []labels.Labels
		want []string
		form Form
		both int
	}{
		"by OTLP":                          {[]labels.Labels{raw("job", "v", "pod", "p"), ours("job", "vllm", "instance", "a:8000", "k8s_pod_name", "p")}, []string{"a:8000"}, Raw, 1},
		"by OTLP with the same job":        {[]labels.Labels{raw("job", "v", "pod", "p"), ours("job", "v", "instance", "a:8000")}, []string{"a:8000"}, Raw, 1},
		"with the same labels":             {[]labels.Labels{raw("job", "v"), ours("job", "v", "instance", "a:8000")}, []string{"a:8000"}, Ours, 0},
		"on the page of a collector":       {[]labels.Labels{raw("job", "v", "namespace", "chat", "pod", "p"), page("exported_namespace", "chat")}, []string{"a:8000"}, Raw, 1},
		"in another namespace":             {[]labels.Labels{raw("job", "v", "namespace", "chat"), page("k8s_namespace_name", "code")}, []string{"a:8000 job=v", "a:8000 job=otel"}, Raw, 0},
		"in another cluster":               {[]labels.Labels{raw("job", "v", "cluster", "x"), page("cluster", "y")}, []string{"a:8000 job=v", "a:8000 job=otel"}, Raw, 0},
		"of one of two servers, not known": {[]labels.Labels{raw("job", "v", "cluster", "x"), raw("job", "v"), ours("job", "vllm", "instance", "a:8000")}, []string{"a:8000 job=v cluster=x", "a:8000 job=v", "a:8000 job=vllm"}, Raw, 0},
		"another instance":                 {[]labels.Labels{raw("job", "v"), ours("job", "vllm", "instance", "b:8000")}, []string{"a:8000", "b:8000"}, Raw, 0},
	} {
		found := Targets(c.in, nil, 10)
		var names []string
		for _, one := range found.Targets {
			names = append(names, one.Name)
		}
		assert.ElementsMatch(t, c.want, names, name)
		assert.Equal(t, c.both, found.Both, name)
		if len(c.want) == 1 {
			assert.Equal(t, c.form, found.Targets[0].Form, name)
		}
	}
	// A server that Prometheus scraped on one day of three is judged by the longer history.
	old, now := raw("job", "v"), page()
	days := map[uint64]int{old.Hash(): 1, now.Hash(): 3}
	assert.Equal(t, Ours, Targets([]labels.Labels{old, now}, days, 10).Targets[0].Form)
	days[old.Hash()] = 3
	assert.Equal(t, Raw, Targets([]labels.Labels{old, now}, days, 10).Targets[0].Form)
}
