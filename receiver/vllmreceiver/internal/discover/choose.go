package discover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/relabel"
)

// source is one set of discovered addresses with what is done to them.
type source struct {
	groups []*targetgroup.Group
	// chains are the relabelling rules; each chain makes targets of its own from
	// every address, so that a pod can be several targets.
	chains [][]*relabel.Config
	// attributes are put on every target.
	attributes map[string]string
	// pods has the state of the discovered pods; nil without any.
	pods *podBook
	// choose reports whether a pod is scraped; nil where the rules alone decide.
	choose func(*podState) bool
}

// resolved is what the sources give.
type resolved struct {
	// targets are ordered by address, and each address is there once.
	targets []Target
	// unusable is how many addresses could not be used, by reason.
	unusable map[string]int
	// short is the interval that a group asks for where it is too short.
	short map[string]time.Duration
}

// resolve returns the targets of all sources.
func (d *Defaults) resolve(sources []source) resolved {
	merged := map[string][]*candidate{}
	unusable, short := map[string]int{}, map[string]time.Duration{}
	for _, s := range sources {
		for _, group := range s.groups {
			for _, labels := range group.Targets {
				uid, pod := podOf(labels, group.Labels)
				if uid != "" {
					pod = s.pods.find(uid, pod)
				}
				if s.choose != nil && !s.choose(&pod) {
					continue
				}
				for _, chain := range s.chains {
					c, err := d.candidate(labels, group.Labels, chain)
					if err != nil {
						unusable[err.Error()]++
						continue
					}
					if c == nil {
						continue
					}
					if c.asked > 0 {
						short[group.Source] = c.asked
					}
					maps.Copy(c.target.Attributes, s.attributes)
					if uid != "" {
						c.target.Pod, c.uid = &pod.Pod, uid
					}
					address := c.target.URL.String()
					merged[address] = append(merged[address], c)
				}
			}
		}
	}
	targets := make([]Target, 0, len(merged))
	for _, address := range slices.Sorted(maps.Keys(merged)) {
		targets = append(targets, merge(merged[address]))
	}
	return resolved{targets, unusable, short}
}

// merge makes one target of those that have the same address, as the containers
// and ports of a pod have after relabelling, and gives it what any of them
// knows. Where they disagree, the one whose own port is scraped is right; where
// none is, the attribute would be a guess and is left out. Of several pods, as
// where a pod has got the address of one that is on its way out, the one that
// serves counts alone.
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

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// limit keeps at most n targets. Those that are scraped already stay before
// new ones come, so that the choice does not change with every update.
func limit(targets []Target, scraped map[string]bool, n int) (kept []Target, over int) {
	if len(targets) <= n {
		return targets, 0
	}
	kept = slices.Clone(targets)
	slices.SortStableFunc(kept, func(a, b Target) int {
		known, other := scraped[a.URL.String()], scraped[b.URL.String()]
		switch {
		case known && !other:
			return -1
		case other && !known:
			return 1
		}
		return 0
	})
	return kept[:n], len(targets) - n
}
