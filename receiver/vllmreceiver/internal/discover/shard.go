package discover

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// The labels of the targets of an InferencePool that relabelling rules can use.
const (
	poolNameLabel      = model.MetaLabelPrefix + "inference_pool_name"
	poolNamespaceLabel = model.MetaLabelPrefix + "inference_pool_namespace"
)

// sharding is how relabelling rules divide the targets among several collectors: the
// action hashmod makes a number of some labels, and keep keeps one number.
type sharding struct {
	hash, keep *relabel.Config
	// number is the one that is kept; -1 if the rule keeps something else than one number.
	number int64
}

// shardingOf returns nil for rules that do not divide the targets.
func shardingOf(rules []*relabel.Config) *sharding {
	for i, keep := range slices.Backward(rules) {
		if keep.Action != relabel.Keep || len(keep.SourceLabels) != 1 {
			continue
		}
		for _, hash := range slices.Backward(rules[:i]) {
			if hash.Action != relabel.HashMod || hash.TargetLabel != string(keep.SourceLabels[0]) {
				continue
			}
			text := keep.Regex.String()
			number, err := strconv.ParseUint(text, 10, 31)
			if err != nil || text != strconv.FormatUint(number, 10) {
				return &sharding{hash, keep, -1}
			}
			return &sharding{hash, keep, int64(number)}
		}
	}
	return nil
}

// key returns what is hashed of a target.
func (s *sharding) key(lb *labels.Builder) string {
	values := make([]string, len(s.hash.SourceLabels))
	for i, name := range s.hash.SourceLabels {
		values[i] = lb.Get(string(name))
	}
	return strings.Join(values, s.hash.Separator)
}

// progress is how far the rules take a target.
type progress struct {
	// reached is true if it gets to the rule that keeps one shard, chosen if that rule
	// keeps it, and kept if all rules do.
	reached, chosen, kept bool
	// key is what was hashed.
	key string
}

// apply applies the rules like Prometheus.
func (s *sharding) apply(lb *labels.Builder, rules []*relabel.Config) (p progress) {
	for _, rule := range rules {
		if s != nil && rule == s.hash {
			p.key = s.key(lb)
		}
		chooses := s != nil && rule == s.keep
		p.reached = p.reached || chooses
		if !relabel.ProcessBuilder(lb, rule) {
			return p
		}
		p.chosen = p.chosen || chooses
	}
	p.kept = true
	return p
}

// drops reports whether rules can drop a target.
func drops(rules []*relabel.Config) bool {
	return slices.ContainsFunc(rules, func(rule *relabel.Config) bool {
		switch rule.Action {
		case relabel.Keep, relabel.Drop, relabel.KeepEqual, relabel.DropEqual:
			return true
		}
		return false
	})
}

// Counts are numbers of discovered addresses, each counted once. Addresses that cannot be
// scraped are left out.
type Counts struct {
	// Found are those before the relabelling rules, Kept those that the rules keep.
	Found, Kept int
	// Shared are those that the rules divide among all shards: Kept of all shards, added
	// up, is this number. -1 if the rules do not divide the targets.
	Shared int
}

// tally counts addresses before and after relabelling.
type tally struct {
	Counts
	// chosen are those of Shared that the rule keeps which keeps one shard.
	chosen int
	// several is true if those of Shared have at least two keys; else key is the one that all have.
	several bool
	key     string
	// largest is the key with the most kept addresses, and together is their number.
	largest  string
	together int
}

// counting counts the addresses for a tally.
type counting struct {
	discovered, reached, chosen map[string]bool
	firstKey                    string
	several                     bool
}

func (c *counting) add(found *candidate) {
	c.discovered[found.address] = true
	if !found.reached {
		return
	}
	if len(c.reached) == 0 {
		c.firstKey = found.key
	}
	c.several = c.several || found.key != c.firstKey
	c.reached[found.address] = true
	if found.chosen {
		c.chosen[found.address] = true
	}
}

// tally returns the result. merged are the kept candidates by address.
func (c *counting) tally(merged map[string][]*candidate) tally {
	out := tally{Counts: Counts{Found: len(c.discovered), Kept: len(merged), Shared: len(c.reached)}, chosen: len(c.chosen), several: c.several}
	together := map[string]int{}
	if !c.several {
		out.key = c.firstKey
	}
	for _, candidates := range merged {
		key := candidates[0].key
		together[key]++
		if n := together[key]; n > out.together || n == out.together && key < out.largest {
			out.largest, out.together = key, n
		}
	}
	return out
}

// report has the lines of the log about a tally. A line that is empty is not written.
type report struct {
	info, warning string
	// about is the reason of the warning: it is not repeated while the reason is the same.
	about string
}

// report describes a tally. onePool is true if only one InferencePool is discovered, so
// that the other pools, and the share of each collector, are not known here.
func (s *sharding) report(t tally, onePool bool) report {
	if t.Found == 0 {
		return report{}
	}
	out := report{info: fmt.Sprintf("Discovery: relabelling keeps %d of %d discovered targets", t.Kept, t.Found)}
	if s == nil || s.number < 0 {
		switch {
		case t.Kept == 0 && s != nil && t.Shared > 0 && t.chosen == 0:
			out.about = "no number"
			out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets: the regex %q of the action keep matches no shard of theirs; "+
				"with modulus %d, shards are 0 to %d. Set regex to the shard of this collector",
				t.Found, remote.Text(s.keep.Regex.String()), s.hash.Modulus, s.hash.Modulus-1)
		case t.Kept == 0:
			out.about = "none"
			out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets, so this collector scrapes none of them. "+
				"Check the actions keep and drop of relabel_configs", t.Found)
		}
		return out
	}
	shards := s.hash.Modulus
	even := int(math.Ceil(float64(t.Shared) / float64(shards)))
	out.info += fmt.Sprintf(" for shard %d of %d (numbers begin with 0)", s.number, shards)
	if !onePool {
		out.info += fmt.Sprintf("; an even share is %d", even)
	}
	switch oneKey := onePool && !t.several; {
	case uint64(s.number) >= shards:
		out.about = "number"
		out.warning = fmt.Sprintf("Discovery: this collector is shard %d, but with modulus %d the shards are 0 to %d, so it scrapes none of %d discovered targets. "+
			"Set modulus in relabel_configs of all collectors to the number of collectors", s.number, shards, shards-1, t.Found)
	case t.Kept == 0 && t.Shared == 0:
		out.about = "before"
		out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets: rules before the action hashmod drop all of them. "+
			"Check the actions keep and drop of relabel_configs", t.Found)
	case t.Kept == 0 && t.chosen > 0:
		out.about = "after"
		out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets: %d belong to shard %d of %d, and later rules drop them. "+
			"Check the actions keep and drop of relabel_configs", t.Found, t.chosen, s.number, shards)
	case t.Kept == 0 && oneKey:
		out.info = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets for shard %d of %d; all of them belong to one other shard",
			t.Found, s.number, shards)
	case t.Kept == 0 && !t.several && t.Shared > 1:
		out.about = "same"
		out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets for shard %d of %d: %d of them %s, so all of them belong to one other shard. "+
			"Check source_labels of the action hashmod in relabel_configs", t.Found, s.number, shards, t.Shared, s.common(t.key))
	case t.Kept == 0:
		out.about = "none"
		out.warning = fmt.Sprintf("Discovery: relabelling keeps none of %d discovered targets for shard %d of %d, so this collector scrapes none of them. "+
			"Other shards scrape them. This happens with few pools. Use fewer shards, or hash __address__ to divide pools", t.Found, s.number, shards)
	case !oneKey && t.together > max(even, 1):
		out.about = "large " + t.largest
		out.warning = fmt.Sprintf("Discovery: %d of %d discovered targets %s and stay together on shard %d; an even share of %d shards is %d. "+
			"More shards do not divide them. Give each collector the CPU and memory for this many, or hash __address__ to divide their pool",
			t.together, t.Found, s.common(t.largest), s.number, shards, even)
	}
	return out
}

// common says what targets with the same key have in common.
func (s *sharding) common(key string) string {
	if strings.ReplaceAll(key, s.hash.Separator, "") == "" {
		return "have none of the labels that the action hashmod hashes"
	}
	return fmt.Sprintf("have the same hash key %q", remote.Text(key))
}

// emptyRules finds values of a relabelling rule that are set and empty, as from an
// environment variable that is not set. A shard would keep no target, because an empty
// text matches no number, and the other shards would not take its part.
func emptyRules(section map[string]any) (mistakes []error) {
	list, _ := section["relabel_configs"].([]any)
	// hashed are the labels that the action hashmod has set.
	hashed := map[string]bool{}
	for i, item := range list {
		rule, _ := item.(map[string]any)
		action, _ := rule["action"].(string)
		for _, key := range []string{"regex", "modulus"} {
			value, set := rule[key]
			empty := set && (value == nil || value == "" && key == "modulus")
			if sources, _ := rule["source_labels"].([]any); set && value == "" && strings.EqualFold(action, "keep") && len(sources) == 1 {
				// An empty text is a usual value elsewhere, but never a number.
				source, _ := sources[0].(string)
				empty = empty || hashed[source]
			}
			if empty {
				mistakes = append(mistakes, fmt.Errorf("relabel_configs::%d::%s: is empty; is the environment variable that it comes from set?", i, key))
			}
		}
		if strings.EqualFold(action, "hashmod") {
			label, _ := rule["target_label"].(string)
			hashed[label] = true
		}
	}
	return mistakes
}
