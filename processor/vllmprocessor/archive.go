package vllmprocessor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

const (
	// maxTrackers bounds how many trackers a processor has, and how many states of
	// trackers it keeps for resources that may come back.
	maxTrackers = 10_000
	// saveInterval is how much a crash can lose.
	saveInterval = time.Minute
	// saveTimeout bounds one write; it is well within the time that a collector
	// gets to shut down.
	saveTimeout = 10 * time.Second
	// failureInterval is how often a write that fails is worth a warning.
	failureInterval = 10 * time.Minute
	// archiveKey is where the storage has the states.
	archiveKey = "objectives"
	// thinInterval is how often the state of a silent resource is made smaller.
	thinInterval = time.Hour
)

// archive keeps the states of trackers: of resources that are silent, until the
// budget window has passed them, and with a storage those of all resources. The
// instances of one processor in several pipelines share it, because a storage
// gives a component one client.
//
// Where two pipelines see the same resource, each counts it on its own; the
// state of the one that began first is kept.
type archive struct {
	budget time.Duration
	// limit is the most states that are kept of silent resources.
	limit  int
	now    func() time.Time
	logger *zap.Logger
	client storage.Client
	// failed counts writes that failed.
	failed func()

	// saving lets one write happen at a time. It is taken before the locks of the
	// processors, and these before mu.
	saving  sync.Mutex
	warned  time.Time
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	users  []*objectives
	states map[string]savedState
	owners map[string]*objectives
}

// savedState is the state of a tracker, the end of its newest step, and when what
// its windows have moved past was last left out.
type savedState struct {
	state   []byte
	newest  int64
	thinned int64
}

func newArchive(budget time.Duration, now func() time.Time, logger *zap.Logger) *archive {
	return &archive{
		budget: budget, limit: maxTrackers, now: now, logger: logger, failed: func() {},
		states: map[string]savedState{}, owners: map[string]*objectives{},
	}
}

// begin returns the state that a new tracker continues, if there is one.
func (a *archive) begin(key string, user *objectives) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owners[key] == nil {
		a.owners[key] = user
	}
	saved, known := a.states[key]
	return saved.state, known
}

// end keeps the state of a tracker that is no more.
func (a *archive) end(key string, state []byte, user *objectives) {
	newest, sound := objective.StateAge(state)
	a.mu.Lock()
	defer a.mu.Unlock()
	if owner := a.owners[key]; owner != nil && owner != user {
		return
	}
	delete(a.owners, key)
	if !sound {
		return
	}
	a.states[key] = savedState{state, newest, newest}
	if len(a.states) > a.limit+a.limit/10 {
		a.prune()
	}
}

// prune forgets states that are older than the budget window, and the oldest
// where there are too many. The others are made smaller.
func (a *archive) prune() {
	now := a.now().UnixNano()
	oldest := now - int64(a.budget)
	keys := make([]string, 0, len(a.states))
	for key, saved := range a.states {
		if saved.newest < oldest {
			delete(a.states, key)
			continue
		}
		if now-saved.thinned >= int64(thinInterval) {
			a.states[key] = savedState{objective.Thin(saved.state, now), saved.newest, now}
		}
		keys = append(keys, key)
	}
	if len(keys) <= a.limit {
		return
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(a.states[x].newest, a.states[y].newest) })
	for _, key := range keys[:len(keys)-a.limit] {
		delete(a.states, key)
	}
}

// load reads what was saved. That it cannot be read is no reason not to start.
func (a *archive) load(ctx context.Context) {
	data, err := a.client.Get(ctx, archiveKey)
	if err != nil {
		a.logger.Warn("the storage does not give back the objectives that were saved, so budgets and burn rates start anew", zap.Error(err))
		return
	}
	if data == nil {
		return
	}
	states, err := objective.DecodeArchive(data)
	unreadable := 0
	for key, state := range states {
		newest, sound := objective.StateAge(state)
		if !sound {
			unreadable++
			continue
		}
		a.states[key] = savedState{bytes.Clone(state), newest, newest}
	}
	if err != nil || unreadable > 0 {
		a.logger.Warn(fmt.Sprintf("what the storage has of objectives is damaged or was written by another version; "+
			"%d of their states could be read and continue, the others start anew", len(a.states)))
	}
	a.prune()
	a.logger.Info("objectives continue where they were saved", zap.Int("states", len(a.states)))
}

// run saves until stop is called.
func (a *archive) run() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop, a.stopped = cancel, make(chan struct{})
	go func() {
		defer close(a.stopped)
		ticker := time.NewTicker(saveInterval)
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

// save writes the states of all trackers. A write that fails changes nothing: the
// trackers go on, and the next one has all that this one had.
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
	if err := a.client.Set(ctx, archiveKey, a.encode(users, live)); err != nil {
		a.failed()
		if now := a.now(); now.Sub(a.warned) >= failureInterval {
			a.warned = now
			a.logger.Warn("the objectives could not be saved; they go on and are saved with the next attempt, but would be lost by a restart", zap.Error(err))
		}
	}
}

// encode puts the states of the users' trackers and of silent resources together.
func (a *archive) encode(users []*objectives, live []map[string][]byte) []byte {
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
				// The tracker has it now.
				delete(a.states, key)
			}
		}
	}
	return objective.EncodeArchive(all)
}

// endedSince tells whether a tracker has ended after its state was copied for a
// save. What was kept at its end is the one to save, now and later.
func (a *archive) endedSince(key string, copied []byte) bool {
	kept, ended := a.states[key]
	newest, sound := objective.StateAge(copied)
	return ended && (!sound || kept.newest >= newest)
}

// archives are those of the components that a factory has made.
type archives struct {
	mu   sync.Mutex
	byID map[component.ID]*archive
}

// attach gives a processor the archive of its component. The first one opens the
// storage.
func (s *archives) attach(ctx context.Context, id component.ID, user *objectives, open func() (storage.Client, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byID[id]
	if a == nil {
		client, err := open()
		if err != nil {
			return err
		}
		a = user.archive
		if a.client = client; client != nil {
			a.load(ctx)
			a.run()
		}
		if s.byID == nil {
			s.byID = map[component.ID]*archive{}
		}
		s.byID[id] = a
	}
	a.mu.Lock()
	a.users = append(a.users, user)
	a.mu.Unlock()
	user.archive = a
	return nil
}

// detach takes the last states of a processor and saves them. The last processor
// closes the storage.
func (s *archives) detach(ctx context.Context, id component.ID, user *objectives) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byID[id]
	if a == nil || !slices.Contains(a.users, user) {
		return nil
	}
	for key, state := range user.snapshot() {
		a.end(key, state, user)
	}
	a.mu.Lock()
	a.users = slices.DeleteFunc(a.users, func(other *objectives) bool { return other == user })
	last := len(a.users) == 0
	a.mu.Unlock()
	if last {
		delete(s.byID, id)
	}
	if a.client == nil {
		return nil
	}
	if last {
		a.stop()
		<-a.stopped
	}
	a.save(ctx)
	if !last {
		return nil
	}
	client := a.client
	a.client = nil
	return client.Close(ctx)
}
