package discover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/relabel"
)

// source is one set of discovered addresses with its rules.
type source struct {
	groups []*targetgroup.Group
	// chains are the relabelling rules. Each chain makes one target of each address, so
	// that a pod can be several targets.
	chains [][]*relabel.Config
	// labels are added to every address before the rules.
	labels map[string]string
	// attributes are added to every target.
	attributes map[string]string
	// pods has the state of the discovered pods; nil without any.
	pods *podBook
	// choose reports whether a pod is scraped; nil if only the rules decide.
	choose func(*podState) bool
}

// resolved is the result of resolve.
type resolved struct {
	// targets are ordered by address, and each address is there once.
	targets []Target
	// unusable counts the addresses that could not be used, by reason.
	unusable map[string]int
	// short has the intervals that are too short, by group.
	short map[string]time.Duration
	// tally counts the addresses before and after the rules.
	tally tally
}

// resolve returns the targets of all sources. s is how the rules divide the targets; nil
// if they do not.
func (d *Defaults) resolve(sources []source, s *sharding) resolved {
	merged := map[string][]*candidate{}
	count := counting{discovered: map[string]bool{}, reached: map[string]bool{}, chosen: map[string]bool{}}
	unusable, short := map[string]int{}, map[string]time.Duration{}
	for _, from := range sources {
		for _, group := range from.groups {
			for _, labels := range group.Targets {
				uid, pod := podOf(labels, group.Labels)
				if uid != "" {
					pod = from.pods.find(uid, pod)
				}
				if from.choose != nil && !from.choose(&pod) {
					continue
				}
				for _, chain := range from.chains {
					c, err := d.candidate(labels, group.Labels, from.labels, chain, s)
					if err != nil {
						unusable[err.Error()]++
						continue
					}
					count.add(c)
					if !c.kept {
						continue
					}
					if c.asked > 0 {
						short[group.Source] = c.asked
					}
					maps.Copy(c.target.Attributes, from.attributes)
					if uid != "" {
						c.target.Pod, c.uid = &pod.Pod, uid
					}
					merged[c.address] = append(merged[c.address], c)
				}
			}
		}
	}
	targets := make([]Target, 0, len(merged))
	for _, address := range slices.Sorted(maps.Keys(merged)) {
		targets = append(targets, merge(merged[address]))
	}
	return resolved{targets, unusable, short, count.tally(merged)}
}

// merge makes one target of the candidates with the same address, such as the containers
// of a pod after relabelling. It has the attributes of all of them. If they differ in an
// attribute, the candidate whose own port is scraped is right; without one the attribute
// is omitted. If several pods have the same address, as while one of them terminates,
// only the pod that serves is used.
func merge(candidates []*candidate) Target {
	best := slices.MinFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(first(a.serves(), b.serves()), first(a.onPort, b.onPort), cmp.Compare(a.target.Interval, b.target.Interval), cmp.Compare(a.target.Timeout, b.target.Timeout))
	})
	out := best.target
	out.Attributes = maps.Clone(out.Attributes)
	unsure := map[string]bool{}
	for _, c := range candidates {
		if c.uid != best.uid && c.uid != "" && best.uid != "" {
			continue
		}
		for name, value := range c.target.Attributes {
			if known, ok := out.Attributes[name]; !ok {
				out.Attributes[name] = value
			} else if known != value && !best.onPort {
				unsure[name] = true
			}
		}
	}
	maps.DeleteFunc(out.Attributes, func(name, _ string) bool { return unsure[name] })
	return out
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// limit returns at most n targets. Targets that are scraped already go first, so that the
// choice does not change with every update.
func limit(targets []Target, scraped map[string]bool, n int) (kept []Target, over int) {
	if len(targets) <= n {
		return targets, 0
	}
	kept = slices.Clone(targets)
	slices.SortStableFunc(kept, func(a, b Target) int { return first(scraped[a.URL.String()], scraped[b.URL.String()]) })
	return kept[:n], len(targets) - n
}
