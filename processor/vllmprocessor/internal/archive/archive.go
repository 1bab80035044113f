package archive

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sort"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// defaultLimit bounds how many states of one kind are kept for silent servers.
	defaultLimit = 10_000
	// thinInterval is how often the state of a silent server is made smaller.
	thinInterval = time.Hour
	// settles is how long after a start servers may be silent that were not before the restart.
	settles = 10 * time.Minute
)

// archive holds states of one kind: those of silent servers, until they are too old,
// and with a storage those of all servers. The instances of one processor in several
// pipelines share it, because a storage gives each part of a component one client.
//
// Where two pipelines see the same server, each has a state of its own. The one that
// began first is stored.
type archive struct {
	Kind
	Settings
	// limit is the most states that are kept of silent servers. Until settled, in Unix
	// nanoseconds, so many more are kept: those of servers that were not silent when a
	// collector ended.
	limit, more int
	settled     int64
	// client is nil without a storage.
	client storage.Client

	// saving lets one write happen at a time. It is taken before the locks of the
	// servers, and these before mu.
	saving sync.Mutex
	warned time.Time
	stop   func()

	mu    sync.Mutex
	users []*User
	// kept are the states of silent servers.
	kept map[string]keptState
	// owners are the users whose servers have a state now, sources these servers as
	// hashes.
	owners  map[string]*User
	sources map[string]uint64
}

// keptState is a state of a silent server. newest is the time up to which it knows and
// thinned when it was last made smaller, in Unix nanoseconds. source is its server; 0
// where the state comes from the storage, which does not have it.
type keptState struct {
	state   []byte
	newest  int64
	thinned int64
	source  uint64
}

func newArchive(kind Kind, settings Settings) *archive {
	limit := defaultLimit
	if settings.Shared != nil && settings.Shared.Limit > 0 {
		limit = settings.Shared.Limit
	}
	return &archive{
		Kind: kind, Settings: settings, limit: limit,
		kept: map[string]keptState{}, owners: map[string]*User{}, sources: map[string]uint64{},
	}
}

// begin returns the state that a user continues, where there is one that is not too
// old.
func (a *archive) begin(key, server string, user *User) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners[key] == nil {
		a.owners[key] = user
		a.sources[key] = maphash.String(sourceSeed, server)
	}
	saved, known := a.kept[key]
	if known && saved.newest < a.Now().UnixNano()-int64(a.Age) {
		delete(a.kept, key)
		return nil, false
	}
	return saved.state, known
}

// end keeps the last state of a server that its user has forgotten.
func (a *archive) end(key string, state []byte, user *User) {
	newest, sound := a.Newest(state)
	a.mu.Lock()
	defer a.mu.Unlock()
	source, owned := a.disown(key, user)
	if !owned || !sound {
		return
	}
	a.kept[key] = keptState{state, newest, newest, source}
	if limit := a.room(); len(a.kept) > limit+limit/10 {
		a.prune()
	}
}

// disown records that the server of a state is forgotten by its user, and returns the server; false
// where the state belongs to another user.
func (a *archive) disown(key string, user *User) (source uint64, owned bool) {
	if owner := a.owners[key]; owner != nil && owner != user {
		return 0, false
	}
	source = a.sources[key]
	delete(a.owners, key)
	delete(a.sources, key)
	return source, true
}

// moves makes room for more states than the limit: of servers that go on, while the collector
// restarts.
func (a *archive) moves(states int) {
	a.more, a.settled = a.more+states, a.Now().Add(settles).UnixNano()
}

func (a *archive) room() int {
	if a.more > 0 && a.Now().UnixNano() >= a.settled {
		a.more = 0
	}
	return a.limit + a.more
}

// forget drops the state of a server that its user has forgotten.
func (a *archive) forget(key string, user *User) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, owned := a.disown(key, user); owned {
		delete(a.kept, key)
	}
}

// prune drops states that are too old. Where there are still too many it drops the
// oldest of the servers that have most, so that one server with many models that come
// and go takes nothing from others. It makes the remaining states smaller.
func (a *archive) prune() {
	now := a.Now().UnixNano()
	oldest := now - int64(a.Age)
	keys := make([]string, 0, len(a.kept))
	for key, saved := range a.kept {
		if saved.newest < oldest {
			delete(a.kept, key)
			continue
		}
		if a.Thin != nil && now-saved.thinned >= int64(thinInterval) {
			a.kept[key] = keptState{a.Thin(saved.state, now), saved.newest, now, saved.source}
		}
		keys = append(keys, key)
	}
	limit := a.room()
	if len(keys) <= limit {
		return
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(a.kept[x].newest, a.kept[y].newest) })
	excess := len(keys) - limit
	left := excess - a.pruneShares(keys, excess, limit)
	for _, key := range keys {
		if _, kept := a.kept[key]; kept && left > 0 {
			delete(a.kept, key)
			left--
		}
	}
	a.Dropped(excess)
}

// pruneShares drops up to excess states of the servers that have most, the oldest
// first, and returns how many. Servers with few states leave room that the others
// share, as long as all fit.
func (a *archive) pruneShares(keys []string, excess, limit int) (dropped int) {
	counts := map[uint64]int{}
	for _, key := range keys {
		counts[a.kept[key].source]++
	}
	fits := func(share int) bool {
		total := counts[0]
		for source, n := range counts {
			if source != 0 {
				total += min(n, share)
			}
		}
		return total <= limit
	}
	share := max(limit/len(counts), sort.Search(limit, func(i int) bool { return !fits(i + 1) }))
	for _, key := range keys {
		source := a.kept[key].source
		if dropped == excess || source == 0 || counts[source] <= share {
			continue
		}
		delete(a.kept, key)
		counts[source]--
		dropped++
	}
	return dropped
}

var sourceSeed = maphash.MakeSeed()
