package archive

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
)

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

// Forget is End for a state that is of no use any more.
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
