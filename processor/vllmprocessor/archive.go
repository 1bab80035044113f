package vllmprocessor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/states"
)

const (
	// maxKept bounds how many states of one kind are kept for resources that may
	// come back.
	maxKept = 10_000
	// saveTimeout bounds one write; it is well within the time that a collector
	// gets to shut down.
	saveTimeout = 10 * time.Second
	// failureInterval is how often a write that fails is worth a warning.
	failureInterval = 10 * time.Minute
	// thinInterval is how often the state of a silent resource is made smaller.
	thinInterval = time.Hour
)

// kind is what an archive has to know of the states that it keeps; what is in them
// is for their user.
type kind struct {
	// storage is the name of their part of the component's storage, key where that
	// part has them.
	storage, key string
	// interval is the time between two saves: how much a crash can lose.
	interval time.Duration
	// age is how old a state of a silent resource may be.
	age time.Duration
	// newest returns the time in nanoseconds up to which a state knows, and whether
	// it can be read at all.
	newest func(state []byte) (at int64, sound bool)
	// thin returns a state of a silent resource made smaller; nil where that cannot
	// be.
	thin func(state []byte, now int64) []byte
	// unread and unsaved are said where the storage fails, damaged where what it
	// gives cannot be read, with the number of states that can, and continued
	// otherwise. merged is logged where a state is of several resources, which an
	// earlier version took for one.
	unread, unsaved, damaged, continued, merged string
}

// keeper is a user of an archive: an instance of a processor.
type keeper interface {
	// snapshot returns the present states of the instance by their keys. It is
	// called without the processor's lock.
	snapshot() map[string][]byte
	// accessed takes the result of a read or a write of the storage, nil where it
	// succeeded, of the kind of states with a key.
	accessed(key string, err error)
}

// archive keeps states of one kind: those of resources that are silent, until they
// are too old, and with a storage those of all resources. The instances of one
// processor in several pipelines share it, because a storage gives each part of a
// component one client.
//
// Where two pipelines see the same resource, each has a state of its own; the one
// that began first is kept.
type archive struct {
	kind
	// limit is the most states that are kept of silent resources.
	limit  int
	now    func() time.Time
	logger *zap.Logger
	client storage.Client
	// failed counts writes that failed, dropped states for which there is no room.
	failed  func()
	dropped func(n int)

	// saving lets one write happen at a time. It is taken before the locks of the
	// processors, and these before mu.
	saving  sync.Mutex
	warned  time.Time
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	users  []keeper
	states map[string]savedState
	owners map[string]keeper
	// sources are the resources of the states that have an owner, as hashes.
	sources map[string]uint64
	// moved are the keys of earlier versions whose states were given to a key of this
	// version, at most limit.
	moved      map[string]string
	saidMerged bool
}

// savedState is a state, the time up to which it knows, and when it was last made
// smaller. source is the resource that it is of; 0 where the state comes from the
// storage, which does not say it.
type savedState struct {
	state   []byte
	newest  int64
	thinned int64
	source  uint64
}

func newArchive(of kind, now func() time.Time, logger *zap.Logger) *archive {
	return &archive{
		kind: of, limit: maxKept, now: now, logger: logger, failed: func() {}, dropped: func(int) {},
		states: map[string]savedState{}, owners: map[string]keeper{}, sources: map[string]uint64{}, moved: map[string]string{},
	}
}

// begin returns the state that a user continues, if there is one that is not too
// old. before is the key that an earlier version gave to the same resource; it is
// empty where the key has not changed.
func (a *archive) begin(key, before, resource string, user keeper) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners[key] == nil {
		a.owners[key] = user
		a.sources[key] = maphash.String(sourceSeed, resource)
	}
	if before != "" {
		a.move(before, key)
	}
	saved, known := a.states[key]
	if known && saved.newest < a.now().UnixNano()-int64(a.age) {
		delete(a.states, key)
		return nil, false
	}
	return saved.state, known
}

// move gives the state of a key of an earlier version to the key that its resource
// has now. Several resources can have had that key; then the state is of all of them.
// The first one continues with it and the others start anew: nothing says what part
// of the state is whose.
func (a *archive) move(before, key string) {
	if to, moved := a.moved[before]; moved {
		if to != key && !a.saidMerged {
			a.saidMerged = true
			a.logger.Warn(a.merged)
		}
		return
	}
	saved, known := a.states[before]
	if _, newer := a.states[key]; !known || newer || a.owners[before] != nil || len(a.moved) >= a.limit {
		return
	}
	delete(a.states, before)
	a.states[key] = saved
	a.moved[before] = key
}

// end keeps a state that its user has no longer.
func (a *archive) end(key string, state []byte, user keeper) {
	newest, sound := a.newest(state)
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner := a.owners[key]; owner != nil && owner != user {
		return
	}
	source := a.sources[key]
	delete(a.owners, key)
	delete(a.sources, key)
	if !sound {
		return
	}
	a.states[key] = savedState{state, newest, newest, source}
	if len(a.states) > a.limit+a.limit/10 {
		a.prune()
	}
}

// prune forgets states that are too old, and where there are too many the oldest of
// the resources that have most, so that one with many models that come and go takes
// nothing from others. The others are made smaller.
func (a *archive) prune() {
	now := a.now().UnixNano()
	oldest := now - int64(a.age)
	keys := make([]string, 0, len(a.states))
	for key, saved := range a.states {
		if saved.newest < oldest {
			delete(a.states, key)
			continue
		}
		if a.thin != nil && now-saved.thinned >= int64(thinInterval) {
			a.states[key] = savedState{a.thin(saved.state, now), saved.newest, now, saved.source}
		}
		keys = append(keys, key)
	}
	if len(keys) <= a.limit {
		return
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(a.states[x].newest, a.states[y].newest) })
	excess := len(keys) - a.limit
	left := excess - a.pruneShares(keys, excess)
	for _, key := range keys {
		if _, kept := a.states[key]; kept && left > 0 {
			delete(a.states, key)
			left--
		}
	}
	a.dropped(excess)
}

// pruneShares forgets up to excess states of the resources that have most, the oldest
// first, and returns how many. What resources with few states leave free is for the
// others, as long as all fit.
func (a *archive) pruneShares(keys []string, excess int) (dropped int) {
	counts := map[uint64]int{}
	for _, key := range keys {
		counts[a.states[key].source]++
	}
	fits := func(share int) bool {
		total := counts[0]
		for source, n := range counts {
			if source != 0 {
				total += min(n, share)
			}
		}
		return total <= a.limit
	}
	share := max(a.limit/len(counts), sort.Search(a.limit, func(i int) bool { return !fits(i + 1) }))
	for _, key := range keys {
		source := a.states[key].source
		if dropped == excess || source == 0 || counts[source] <= share {
			continue
		}
		delete(a.states, key)
		counts[source]--
		dropped++
	}
	return dropped
}

var sourceSeed = maphash.MakeSeed()

// load reads what was saved. That it cannot be read is no reason not to start.
func (a *archive) load(ctx context.Context, user keeper) {
	data, err := a.client.Get(ctx, a.key)
	user.accessed(a.key, err)
	if err != nil {
		a.logger.Warn(a.unread, zap.Error(err))
		return
	}
	if data == nil {
		return
	}
	all, err := states.Decode(data)
	unreadable := 0
	for key, state := range all {
		newest, sound := a.newest(state)
		if !sound {
			unreadable++
			continue
		}
		a.states[key] = savedState{bytes.Clone(state), newest, newest, 0}
	}
	if err != nil || unreadable > 0 {
		a.logger.Warn(fmt.Sprintf(a.damaged, len(a.states)))
	}
	a.prune()
	if len(a.states) > 0 {
		a.logger.Info(a.continued, zap.Int("states", len(a.states)))
	}
}

// run saves until stop is called.
func (a *archive) run() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop, a.stopped = cancel, make(chan struct{})
	go func() {
		defer close(a.stopped)
		ticker := time.NewTicker(a.interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				a.save(context.Background())
			}
		}
	}()
}

// save writes the states of all users. A write that fails changes nothing: the
// users go on, and the next one has all that this one had.
func (a *archive) save(ctx context.Context) {
	a.saving.Lock()
	defer a.saving.Unlock()
	if a.client == nil {
		return
	}
	a.mu.Lock()
	users := slices.Clone(a.users)
	a.mu.Unlock()
	live := make([]map[string][]byte, len(users))
	for i, user := range users {
		live[i] = user.snapshot()
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	err := a.client.Set(ctx, a.key, a.encode(users, live))
	for _, user := range users {
		user.accessed(a.key, err)
	}
	if err != nil {
		a.failed()
		if now := a.now(); now.Sub(a.warned) >= failureInterval {
			a.warned = now
			a.logger.Warn(a.unsaved, zap.Error(err))
		}
	}
}

// encode puts the states of the users and of silent resources together.
func (a *archive) encode(users []keeper, live []map[string][]byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prune()
	all := make(map[string][]byte, len(a.states))
	for key, saved := range a.states {
		all[key] = saved.state
	}
	for i, user := range users {
		for key, state := range live[i] {
			if a.owners[key] == nil {
				if a.endedSince(key, state) {
					continue
				}
				// The one that it belonged to has ended.
				a.owners[key] = user
			}
			if a.owners[key] == user {
				all[key] = state
				// The user has it now.
				delete(a.states, key)
			}
		}
	}
	return states.Encode(all)
}

// endedSince reports whether a state has ended after it was copied for a save. What was
// kept at its end is the one to save, now and later.
func (a *archive) endedSince(key string, copied []byte) bool {
	kept, ended := a.states[key]
	newest, sound := a.newest(copied)
	return ended && (!sound || kept.newest >= newest)
}
