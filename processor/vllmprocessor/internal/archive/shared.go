// Package archive keeps the states that outlive a server's silence or a restart of the
// collector: the trackers of objectives and the baselines of the diagnosis.
//
//	encode.go   pure: many states in one value of a storage
//	archive.go  the states of silent servers, bounded and shared fairly
//	storage.go  reads and writes the storage, and reports whether that fails
//	shared.go   what it keeps, and one archive for all pipelines of a component
//
// The content of a state belongs to the stage that it comes from.
package archive

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// Kind describes one kind of states.
type Kind struct {
	// Storage is the name of their part of the component's storage. Key is where that
	// part has them.
	Storage, Key string
	// Interval is the time between two saves: how much a crash can lose.
	Interval time.Duration
	// Age is how old the state of a silent server may be.
	Age time.Duration
	// Newest returns the time in Unix nanoseconds up to which a state knows, and
	// whether the state can be read.
	Newest func(state []byte) (at int64, sound bool)
	// Thin returns a smaller state for a silent server; nil where states cannot become
	// smaller. now is in Unix nanoseconds.
	Thin func(state []byte, now int64) []byte

	// Unread and Unsaved are logged where the storage fails. Damaged is logged where a
	// stored state cannot be read, with the number of states that can; Continued
	// otherwise.
	Unread, Unsaved, Damaged, Continued string
}

// Settings are what an instance of a processor gives its archives.
type Settings struct {
	Shared *Shared
	// ID is the name of the processor, Extension that of its storage extension; nil without one.
	ID        component.ID
	Extension *component.ID
	Status    *Status
	// Now is the clock, and Every calls a function at an interval of it.
	Now    func() time.Time
	Every  func(d time.Duration, f func()) (stop func())
	Logger *zap.Logger
	// Failed counts a write that failed, Dropped states for which there was no room.
	Failed  func()
	Dropped func(n int)
}

// Shared has the archives of the components that a factory has made, one for each
// kind of states. Its zero value has none.
type Shared struct {
	// Limit bounds the states of one kind that are kept for silent servers; 0 is the
	// default of 10,000.
	Limit int

	mu sync.Mutex
	by map[archiveOf]*archive
}

type archiveOf struct {
	component component.ID
	key       string
}

// User is the part of an instance of a processor that has states of one kind.
type User struct {
	settings Settings
	archive  *archive
	snapshot func(put func(key string, state []byte))
}

// NewUser returns a user that has no storage before Start. snapshot passes the present
// states of the instance by their keys; it is called without any lock of the archive.
func NewUser(kind Kind, settings Settings, snapshot func(put func(key string, state []byte))) *User {
	return &User{settings: settings, archive: newArchive(kind, settings), snapshot: snapshot}
}

func (u *User) states() map[string][]byte {
	states := map[string][]byte{}
	u.snapshot(func(key string, state []byte) { states[key] = state })
	return states
}

// Begin returns the state that a server continues, where there is one that is not too
// old.
func (u *User) Begin(key, server string) ([]byte, bool) {
	return u.archive.begin(key, server, u)
}

// End keeps the last state of a server that the instance has forgotten.
func (u *User) End(key string, state []byte) { u.archive.end(key, state, u) }

// Forget is End for a state that nothing needs any more.
func (u *User) Forget(key string) { u.archive.forget(key, u) }

// Save writes the states of all users to the storage.
func (u *User) Save(ctx context.Context) { u.archive.save(ctx) }

// Start joins the archive of the component. The first user opens the storage.
func (u *User) Start(ctx context.Context, host component.Host) error {
	s, of := u.settings.Shared, archiveOf{u.settings.ID, u.archive.Key}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.by[of]
	if a == nil {
		a = u.archive
		client, err := u.settings.open(ctx, host, a.Storage)
		if err != nil {
			return err
		}
		if a.client = client; client != nil {
			a.load(ctx, u)
			a.stop = a.Every(a.Interval, func() { a.save(context.Background()) })
		}
		if s.by == nil {
			s.by = map[archiveOf]*archive{}
		}
		s.by[of] = a
	}
	u.archive = a
	a.mu.Lock()
	a.users = append(a.users, u)
	a.mu.Unlock()
	return nil
}

// Shutdown keeps the last states of the user and saves. The last user closes the
// storage.
func (u *User) Shutdown(ctx context.Context) error {
	s, of := u.settings.Shared, archiveOf{u.settings.ID, u.archive.Key}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.by[of]
	if a == nil || !slices.Contains(a.users, u) {
		return nil
	}
	states := u.states()
	a.mu.Lock()
	a.moves(len(states))
	a.mu.Unlock()
	for key, state := range states {
		a.end(key, state, u)
	}
	a.mu.Lock()
	a.users = slices.DeleteFunc(a.users, func(other *User) bool { return other == u })
	last := len(a.users) == 0
	a.mu.Unlock()
	if last {
		delete(s.by, of)
	}
	if a.client == nil {
		return nil
	}
	if last {
		a.stop()
	}
	a.save(ctx)
	if !last {
		return nil
	}
	client := a.client
	a.client = nil
	return client.Close(ctx)
}
