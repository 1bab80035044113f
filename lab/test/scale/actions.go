package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The names of what is done.
const (
	atRest        = "at rest"
	killOne       = "one killed"
	rollAll       = "all rolled"
	resizeRolling = "4 to 6, rolling"
	resizeAtOnce  = "6 to 4, at once"
)

// killOne kills a shard, and starts it again after a while, as Kubernetes does.
func (r *run) killOne(ctx context.Context) error {
	m := r.members[killed]
	r.crash(m)
	if err := r.pass(ctx, r.Away); err != nil {
		return err
	}
	if err := r.start(ctx, m, fewShards); err != nil {
		return err
	}
	return r.ready(ctx, m)
}

// replace ends a pod in order, and starts the next one in its place.
func (r *run) replace(ctx context.Context, m *member, shards int) error {
	r.stop(m)
	if err := r.pass(ctx, r.Away); err != nil {
		return err
	}
	if err := r.start(ctx, m, shards); err != nil {
		return err
	}
	return r.ready(ctx, m)
}

// rollAll replaces one pod after the other, the one with the greatest number first, as a
// StatefulSet does.
func (r *run) rollAll(ctx context.Context) error {
	for i := fewShards - 1; i >= 0; i-- {
		if err := r.replace(ctx, r.members[i], fewShards); err != nil {
			return err
		}
	}
	return nil
}

// resizeRolling changes the number of replicas and the variable SHARDS together. A StatefulSet
// starts the new pods, and then replaces the old ones, one after the other.
func (r *run) resizeRolling(ctx context.Context) error {
	for _, m := range r.members[fewShards:] {
		if err := r.start(ctx, m, manyShards); err != nil {
			return err
		}
		if err := r.ready(ctx, m); err != nil {
			return err
		}
	}
	for i := fewShards - 1; i >= 0; i-- {
		if err := r.replace(ctx, r.members[i], manyShards); err != nil {
			return err
		}
	}
	return nil
}

// resizeAtOnce changes the number of shards with "OnDelete": all pods are deleted at once.
func (r *run) resizeAtOnce(ctx context.Context) error {
	r.stopAll()
	if err := r.pass(ctx, r.Away); err != nil {
		return err
	}
	return r.startAll(ctx)
}

// The warnings that have the number to write, which complaints replaces by "#".
var (
	targetsWarning = regexp.MustCompile(`more than limits::targets \([\d#]+\).* Set limits::targets to ([\d#]+)`)
	seriesWarning  = regexp.MustCompile(`more than max_series \([\d#]+\).* set max_series to ([\d#]+)`)
)

// findLimits starts the shards with the first limits, and raises them to the numbers that the
// logs name, as a user would.
func (r *run) findLimits(ctx context.Context) error {
	r.result.Limits = limits{FirstTargets: r.maxTargets, FirstSeries: r.maxSeries}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	r.result.Limits.Kept = make([]int, fewShards)
	for i := range r.engines {
		r.result.Limits.Kept[shardOf(&r.engines[i], r.servers.Port, fewShards)]++
	}
	for i, m := range r.members[:fewShards] {
		if r.result.Limits.Kept[i] <= r.maxTargets {
			continue
		}
		err := r.wait(ctx, "the warning about limits::targets", func() (bool, error) {
			return targetsWarning.MatchString(m.text()), m.process.Ended()
		})
		if err != nil {
			return err
		}
	}
	r.result.Limits.Targets = r.advised(targetsWarning)
	if n := r.result.Limits.Targets; n > 0 {
		r.maxTargets = n
		r.say("the log says: set limits::targets to %d", n)
		if err := r.again(ctx); err != nil {
			return err
		}
	}
	// The warning about series comes with the third scrape of a server.
	if err := r.all(ctx, 3, time.Now()); err != nil {
		return err
	}
	r.result.Limits.Series = r.advised(seriesWarning)
	if n := r.result.Limits.Series; n > 0 {
		r.maxSeries = n
		r.say("the log says: set max_series to %d", n)
	}
	r.stopAll()
	if err := r.clear(); err != nil {
		return err
	}
	r.account.forget()
	r.before = r.backend.Taken()
	r.samples = nil
	r.result.Limits.Lives = len(r.lives)
	return nil
}

func (r *run) again(ctx context.Context) error {
	r.stopAll()
	if err := r.clear(); err != nil {
		return err
	}
	return r.startAll(ctx)
}

// clear removes the volumes.
func (r *run) clear() error {
	for _, m := range r.members {
		if err := os.RemoveAll(filepath.Join(r.Dir, fmt.Sprintf("shard-%d", m.number))); err != nil {
			return err
		}
	}
	return nil
}

// advised is the largest number that a warning of the present processes names, 0 without one.
func (r *run) advised(warning *regexp.Regexp) int {
	most := 0
	for _, m := range r.members {
		if m.process == nil {
			continue
		}
		for _, found := range warning.FindAllStringSubmatch(m.text(), -1) {
			if n, err := strconv.Atoi(found[1]); err == nil {
				most = max(most, n)
			}
		}
	}
	return most
}

// complaints are the warnings and errors in the logs of the processes from one on, by text, and
// how often each is there.
func (r *run) complaints() map[string]int {
	out := map[string]int{}
	for _, l := range r.lives[r.result.Limits.Lives:] {
		content, err := os.ReadFile(filepath.Join(r.Dir, fmt.Sprintf("shard-%d-%s%d.log", l.member, lifePrefix, l.number)))
		if err != nil {
			continue
		}
		for text := range strings.Lines(string(content)) {
			fields := strings.Split(strings.TrimSpace(text), "\t")
			if len(fields) < 4 || fields[1] != "warn" && fields[1] != "error" {
				continue
			}
			out[fields[1]+": "+digits.ReplaceAllString(fields[3], "#")]++
		}
	}
	return out
}

var digits = regexp.MustCompile(`\d+`)
