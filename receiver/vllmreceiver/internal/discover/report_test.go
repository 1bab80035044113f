package discover

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestTheLogSaysWhatAShardKeeps(t *testing.T) {
	t.Parallel()
	shard := shardingOf(rulesOf(t, shardRules("pool", 2, 4)))
	beyond := shardingOf(rulesOf(t, shardRules("pool", 4, 4)))
	const rule = "\nrelabel_configs:\n- {source_labels: [%s], modulus: 4, target_label: __tmp, action: hashmod}\n- {source_labels: [__tmp], regex: %s, action: keep}"
	two := shardingOf(rulesOf(t, fmt.Sprintf(rule, "a, b", "2")))
	named := shardingOf(rulesOf(t, fmt.Sprintf(rule, "a", "collector-2")))
	for name, tt := range map[string]struct {
		rules         *sharding
		tally         tally
		onePool       bool
		info, warning string
	}{
		"nothing is discovered": {rules: shard},
		"other rules": {
			tally: tally{Counts: Counts{Found: 1003, Kept: 248}, together: 248},
			info:  "Discovery: relabelling keeps 248 of 1003 discovered targets",
		},
		"other rules keep none": {
			tally: tally{Counts: Counts{Found: 1003}}, info: "Discovery: relabelling keeps 0 of 1003 discovered targets",
			warning: "keeps none of 1003 discovered targets, so this collector scrapes none of them. Check the actions keep and drop",
		},
		"a shard": {
			rules: shard, tally: tally{Counts: Counts{Found: 1003, Shared: 1003, Kept: 248}, several: true, largest: "a", together: 251},
			info: "Discovery: relabelling keeps 248 of 1003 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 251",
		},
		"a large pool": {
			rules: shard, tally: tally{Counts: Counts{Found: 1003, Shared: 1003, Kept: 600}, several: true, largest: "lla\nma", together: 252},
			info:    "Discovery: relabelling keeps 600 of 1003 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 251",
			warning: `252 of 1003 discovered targets have the same hash key "lla?ma" and stay together on shard 2; an even share of 4 shards is 251. More shards do not divide them`,
		},
		"few targets": {
			rules: shard, tally: tally{Counts: Counts{Found: 2, Shared: 2, Kept: 1}, several: true, largest: "a", together: 1},
			info: "Discovery: relabelling keeps 1 of 2 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 1",
		},
		"none": {
			rules: shard, tally: tally{Counts: Counts{Found: 10, Shared: 10}, several: true},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 3",
			warning: "keeps none of 10 discovered targets for shard 2 of 4, so this collector scrapes none of them. Other shards scrape them. This happens with few pools. Use fewer shards",
		},
		"none gets to the shard": {
			rules: shard, tally: tally{Counts: Counts{Found: 10}},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 0",
			warning: "rules before the action hashmod drop all of them",
		},
		"a number beyond the modulus": {
			rules: beyond, tally: tally{Counts: Counts{Found: 10, Shared: 10}, several: true},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 4 of 4 (numbers begin with 0); an even share is 3",
			warning: "this collector is shard 4, but with modulus 4 the shards are 0 to 3, so it scrapes none of 10 discovered targets. Set modulus in relabel_configs of all collectors to the number of collectors",
		},
		"rules after the choice drop all": {
			rules: shard, tally: tally{Counts: Counts{Found: 10, Shared: 10}, chosen: 4, several: true},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 3",
			warning: "keeps none of 10 discovered targets: 4 belong to shard 2 of 4, and later rules drop them. Check the actions keep and drop",
		},
		"no target of the only pool gets to the shard": {
			rules: shard, onePool: true, tally: tally{Counts: Counts{Found: 10}},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0)",
			warning: "rules before the action hashmod drop all of them",
		},
		"all have the same key": {
			rules: shard, tally: tally{Counts: Counts{Found: 10, Shared: 9}, key: "llama"},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 3",
			warning: `keeps none of 10 discovered targets for shard 2 of 4: 9 of them have the same hash key "llama", so all of them belong to one other shard. Check source_labels of the action hashmod`,
		},
		"none has the label": {
			rules: shard, tally: tally{Counts: Counts{Found: 10, Shared: 10}},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 3",
			warning: `10 of them have none of the labels that the action hashmod hashes, so all of them belong to one other shard.`,
		},
		"none of two labels, at the shard that has them": {
			rules: two, tally: tally{Counts: Counts{Found: 10, Shared: 10, Kept: 10}, chosen: 10, key: ";", largest: ";", together: 10},
			info:    "Discovery: relabelling keeps 10 of 10 discovered targets for shard 2 of 4 (numbers begin with 0); an even share is 3",
			warning: `10 of 10 discovered targets have none of the labels that the action hashmod hashes and stay together on shard 2; an even share of 4 shards is 3. More`,
		},
		"the name of a pod in the place of its number": {
			rules: named, tally: tally{Counts: Counts{Found: 10, Shared: 10}, several: true},
			info:    "Discovery: relabelling keeps 0 of 10 discovered targets",
			warning: `keeps none of 10 discovered targets: the regex "collector-2" of the action keep matches no shard of theirs; with modulus 4, shards are 0 to 3. Set regex to the shard of this collector`,
		},
		"the name of a pod, and other rules drop all": {
			rules: named, tally: tally{Counts: Counts{Found: 10}}, info: "Discovery: relabelling keeps 0 of 10 discovered targets",
			warning: "keeps none of 10 discovered targets, so this collector scrapes none of them. Check the actions keep and drop",
		},
		"the only pool belongs to this shard": {
			rules: shard, onePool: true, tally: tally{Counts: Counts{Found: 10, Shared: 10, Kept: 10}, largest: "a", together: 10},
			info: "Discovery: relabelling keeps 10 of 10 discovered targets for shard 2 of 4 (numbers begin with 0)",
		},
		"the only pool belongs to another shard": {
			rules: shard, onePool: true, tally: tally{Counts: Counts{Found: 10, Shared: 10}},
			info: "Discovery: relabelling keeps none of 10 discovered targets for shard 2 of 4; all of them belong to one other shard",
		},
	} {
		got := tt.rules.report(tt.tally, tt.onePool)
		assert.Equal(t, tt.info, got.info, name)
		assert.Contains(t, got.warning, tt.warning, name)
		assert.Equal(t, tt.warning != "", got.warning != "", "%s: %s", name, got.warning)
		assert.Equal(t, tt.warning != "", got.about != "", name)
	}
}

// A fleet that changes every second for an hour has few lines, the last of which is right.
func TestTheShareIsLoggedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		r := &Runner{
			settings: parse(t, "static_configs: [{targets: [a]}]"+shardRules("pool", 0, 2)),
			options:  Options{Logger: zap.New(core), Delay: 5 * time.Second},
			share:    shareLog{gap: 10 * time.Second},
		}
		r.sharding = shardingOf(r.settings.RelabelConfigs)
		wait := func(d time.Duration) {
			for end := time.After(d); ; {
				select {
				case <-r.share.due:
					r.logShare()
				case <-end:
					return
				}
			}
		}
		lines := func() (all []string) {
			for _, entry := range logs.TakeAll() {
				all = append(all, entry.Level.String()+" "+entry.Message)
			}
			return all
		}
		count := func(n, kept int) {
			r.noteShare(tally{Counts: Counts{Found: n, Shared: n, Kept: kept}, several: true, largest: "a"})
		}
		count(3, 1)
		wait(time.Second)
		count(1003, 500)
		assert.Empty(t, lines(), "the discovery is not complete yet")
		wait(9500 * time.Millisecond)
		assert.Equal(t, []string{"info Discovery: relabelling keeps 500 of 1003 discovered targets for shard 0 of 2 (numbers begin with 0); an even share is 502"}, lines())
		count(1003, 500)
		wait(time.Hour)
		assert.Empty(t, lines(), "nothing has changed")
		for i := range 3600 {
			count(1100+i, 0)
			wait(time.Second)
		}
		wait(maxShareGap)
		got := lines()
		// Waits of 20 s, 40 s, 80 s, ... up to ten minutes.
		assert.LessOrEqual(t, len(got), 14, "%s", strings.Join(got, "\n"))
		assert.Contains(t, got[len(got)-1], "keeps 0 of 4699 discovered targets")
		warnings := 0
		for _, line := range got {
			if strings.HasPrefix(line, "warn") {
				warnings++
			}
		}
		assert.Equal(t, 1, warnings, "the same warning is not repeated")

		r.settings = parse(t, "static_configs: [{targets: [a]}]")
		count(5, 5)
		wait(time.Hour)
		assert.Empty(t, lines(), "without rules that drop there is nothing to say")
	})
}
