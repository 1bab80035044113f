package history

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Target is one server in the history.
type Target struct {
	// Name is the instance, with other labels where an instance alone is not unique.
	Name string
	Form Form
	// Labels are those by which the target was found: job, instance and what Prometheus or
	// relabelling added to them.
	Labels labels.Labels
	// matchers select its series. An empty value means that they do not have the label, which
	// labels.Labels cannot say.
	matchers []labels.Label
	// days is on how many days there is a series, and beside is true where the other naming of the server is judged.
	days   int
	beside bool
}

// Instance is the label of this name, of the server itself where a Prometheus that scraped a
// collector renamed it.
func (t *Target) Instance() string {
	return cmp.Or(t.Labels.Get("exported_instance"), t.Labels.Get("instance"))
}

// replicaLabels tell apart the copies of one series that redundant Prometheus servers write.
var replicaLabels = []string{"prometheus_replica", "__replica__", "replica", "receive_replica", "prometheus"}

// ofSeries are the labels that belong to a series and not to its target: those of vLLM, of
// Ray, of histograms, and the attributes of the catalogue as backends write them.
var ofSeries = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{"__name__": true, "le": true, "quantile": true, "engine": true, "model_name": true, "engine_index": true}
	for _, name := range []string{
		"WorkerId", "ReplicaId", "Component", "NodeAddress", "SessionName", "Version", "JobId", "deployment", "application", "replica", "pid",
	} {
		out[name] = true
	}
	for _, m := range catalog.All() {
		for _, a := range m.Attributes {
			out[a], out[strings.ReplaceAll(a, ".", "_")] = true, true
		}
	}
	// These are also attributes of metrics, and in labels they are always of the target.
	for _, name := range []string{"instance", "job", "pod", "namespace"} {
		delete(out, name)
	}
	return out
})

// changing are labels of our names that describe the state of a target: they change while it
// runs.
func changing(name string) bool {
	name = strings.ReplaceAll(name, ".", "_")
	return name == "service_version" || strings.HasPrefix(name, "vllm_") || strings.HasPrefix(name, "otel_scope_")
}

// Found is the result of looking for targets.
type Found struct {
	Targets []*Target
	// Copies are the labels of targets that were left out, because another Prometheus
	// server wrote the same series.
	Copies []string
	// Both is the number of servers that the history has under both namings. Each is judged once.
	Both int
	// Overflow is the number of targets above the limit.
	Overflow int
}

// Targets groups the series of Discovery into targets, at most so many, in the order of
// their names. days is on how many days each series, by its hash, is there; chosen are the labels that the matchers of
// Discovery name.
func Targets(series []labels.Labels, days map[uint64]int, most int, chosen ...string) Found {
	type group struct {
		labels labels.Labels
		ours   bool
		days   int
	}
	groups := map[string]*group{}
	for _, s := range series {
		name := s.Get("__name__")
		own := labels.NewBuilder(labels.EmptyLabels())
		s.Range(func(l labels.Label) {
			if !ofSeries()[l.Name] && !changing(l.Name) {
				own.Set(l.Name, l.Value)
			}
		})
		key := own.Labels()
		g := groups[key.String()]
		if g == nil {
			g = &group{labels: key}
			groups[key.String()] = g
		}
		g.days = max(g.days, days[s.Hash()])
		g.ours = g.ours || name == "vllm_up" || strings.HasPrefix(name, "vllm.")
	}
	all := make([]*Target, 0, len(groups))
	for _, g := range groups {
		t := &Target{Labels: g.labels, Form: Raw, days: g.days}
		if g.ours {
			t.Form = Ours
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Target) int {
		return cmp.Or(strings.Compare(a.Instance(), b.Instance()), labels.Compare(a.Labels, b.Labels))
	})
	var found Found
	all, found.Copies = withoutCopies(all)
	found.Both = besides(all)
	// Those that are not judged count where the selectors must tell targets apart.
	identify(all, chosen)
	found.Targets = slices.DeleteFunc(all, func(t *Target) bool { return t.beside })
	if n := len(found.Targets); n > most {
		found.Overflow = n - most
		found.Targets = found.Targets[:most]
	}
	return found
}

// withoutCopies keeps the first of targets that differ only in the name of the Prometheus
// server.
func withoutCopies(all []*Target) (kept []*Target, copies []string) {
	seen := map[string]bool{}
	for _, t := range all {
		key := labels.NewBuilder(t.Labels).Del(replicaLabels...).Labels().String()
		if seen[key] {
			copies = append(copies, t.Labels.String())
			continue
		}
		seen[key] = true
		kept = append(kept, t)
	}
	return kept, copies
}

// identify sets the names and matchers: job and instance, and the labels that differ where
// several targets share both. Other targets with the same job and instance may not be among
// them, because the user's matchers leave them out: the labels that these name are matched.
func identify(all []*Target, chosen []string) {
	same := map[string][]*Target{}
	names := map[string]int{}
	for _, t := range all {
		key := t.Labels.Get("job") + "\x00" + t.Labels.Get("instance")
		same[key] = append(same[key], t)
		if !t.beside {
			names[t.Instance()]++
		}
	}
	for _, group := range same {
		differ := differing(group)
		for _, t := range group {
			match := []string{"job", "instance"}
			name := []string{cmp.Or(t.Instance(), "unnamed")}
			if names[t.Instance()] > 1 && t.Labels.Get("job") != "" {
				name = append(name, "job="+t.Labels.Get("job"))
			}
			for _, l := range differ {
				match = append(match, l)
				if v := t.Labels.Get(l); v != "" && names[t.Instance()] > 1 && l != "exported_instance" {
					name = append(name, l+"="+v)
				}
			}
			for _, l := range replicaLabels {
				if t.Labels.Has(l) {
					match = append(match, l)
				}
			}
			for _, l := range chosen {
				if l != "__name__" && !ofSeries()[l] && !changing(l) {
					match = append(match, l)
				}
			}
			slices.Sort(match)
			for _, l := range slices.Compact(match) {
				t.matchers = append(t.matchers, labels.Label{Name: l, Value: t.Labels.Get(l)})
			}
			t.Name = strings.Join(name, " ")
		}
	}
}

// differing are the names of the labels in which targets differ, sorted.
func differing(all []*Target) []string {
	values := map[string]map[string]bool{}
	for _, t := range all {
		t.Labels.Range(func(l labels.Label) { values[l.Name] = map[string]bool{} })
	}
	var out []string
	for name := range values {
		for _, t := range all {
			values[name][t.Labels.Get(name)] = true
		}
		if len(values[name]) > 1 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
