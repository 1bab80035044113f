package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

const (
	// saveTimeout bounds one write. It is well within the time that a collector has
	// for its shutdown.
	saveTimeout = 10 * time.Second
	// failureInterval is the least time between two warnings about writes that fail.
	failureInterval = 10 * time.Minute
)

// open returns a client of the storage extension for one kind of states; nil where
// none is configured.
func (s *Settings) open(ctx context.Context, host component.Host, name string) (storage.Client, error) {
	if s.Extension == nil {
		return nil, nil
	}
	extension, known := host.GetExtensions()[*s.Extension]
	if !known {
		return nil, fmt.Errorf("storage: there is no extension %s; define it under extensions and list it in service::extensions, "+
			"or leave out storage and lose budgets and baselines with a restart", s.Extension)
	}
	store, can := extension.(storage.Extension)
	if !can {
		return nil, fmt.Errorf("storage: the extension %s stores nothing; write the name of a storage extension, for example file_storage", s.Extension)
	}
	client, err := store.GetClient(ctx, component.KindProcessor, s.ID, name)
	if err != nil {
		return nil, fmt.Errorf("storage: the extension %s cannot be used: %w; if another collector has it open, give each a folder of its own", s.Extension, err)
	}
	return client, nil
}

// storageKey is where the storage has the states of a form. Each form has a place of its own: what one
// version wrote is neither read nor replaced by another.
func (a *archive) storageKey(form int) string { return fmt.Sprintf("%s.%d", a.Key, form) }

// load reads the stored states. The collector starts also where they cannot be read.
func (a *archive) load(ctx context.Context, user *User) {
	data, err := a.client.Get(ctx, a.storageKey(form))
	user.settings.Status.accessed(a.Key, err)
	if err != nil {
		a.Logger.Warn(a.Unread, zap.Error(err))
		return
	}
	all, err := Decode(data)
	damaged := data != nil && err != nil
	for key, state := range all {
		newest, sound := a.Newest(state)
		damaged = damaged || !sound
		if sound {
			a.kept[key] = keptState{bytes.Clone(state), newest, newest, 0}
		}
	}
	if damaged {
		a.Logger.Warn(fmt.Sprintf(a.Damaged, len(a.kept)))
	}
	if later, err := a.client.Get(ctx, a.storageKey(form+1)); err == nil && later != nil {
		a.Logger.Warn("cannot read state saved by a later version of this program; it stays in the storage for that version, "+
			"and this version continues with the newest state that it can read", zap.String("key", a.storageKey(form+1)))
	}
	// Most belong to servers that were not silent when they were written.
	a.moves(max(len(a.kept)-a.limit, 0))
	a.prune()
	if len(a.kept) > 0 {
		a.Logger.Info(a.Continued, zap.Int("states", len(a.kept)))
	}
}

// save writes the states of all users. A write that fails loses nothing: the next one
// writes all that this one had.
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
		live[i] = user.states()
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	err := a.client.Set(ctx, a.storageKey(form), a.encode(users, live))
	for _, user := range users {
		user.settings.Status.accessed(a.Key, err)
	}
	if err != nil {
		a.Failed()
		if now := a.Now(); now.Sub(a.warned) >= failureInterval {
			a.warned = now
			a.Logger.Warn(a.Unsaved, zap.Error(err))
		}
	}
}

func (a *archive) encode(users []*User, live []map[string][]byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make(map[string][]byte, len(a.kept))
	for i, user := range users {
		for key, state := range live[i] {
			if a.owners[key] == nil {
				if a.endedSince(key, state) {
					continue
				}
				// The former owner has ended.
				a.owners[key] = user
			}
			if a.owners[key] == user {
				all[key] = state
				// The server is not silent any more.
				delete(a.kept, key)
			}
		}
	}
	// Those that are left belong to silent servers.
	a.prune()
	for key, saved := range a.kept {
		if _, live := all[key]; !live {
			all[key] = saved.state
		}
	}
	return Encode(all)
}

// endedSince reports whether a server was forgotten after its state was copied for a
// save. Then the state that was kept at its end is the one to save.
func (a *archive) endedSince(key string, copied []byte) bool {
	kept, ended := a.kept[key]
	newest, sound := a.Newest(copied)
	return ended && (!sound || kept.newest >= newest)
}

// Status reports the component status of a processor: a recoverable error while a read
// or a write of its storage has failed, OK after the next write of the same states that
// succeeds. It reports changes only. No batch waits for its lock.
type Status struct {
	mu sync.Mutex
	// host is nil before the start and once the shutdown has begun.
	host component.Host
	// failing has the kinds of states, by key, whose last access failed.
	failing map[string]bool
}

// errStorage says what fails and what to do. The storage's own error is in the log.
var errStorage = errors.New("the storage cannot be read or written, so a restart would lose objectives, baselines and diagnoses; " +
	"see the log for the reason, and check the disk, the folder and its permissions")

// Start begins to report to a host.
func (s *Status) Start(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// Stop ends the reports: the service reports the shutdown.
func (s *Status) Stop() { s.Start(nil) }

func (s *Status) accessed(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.failing) > 0
	if err == nil {
		delete(s.failing, key)
	} else {
		if s.failing == nil {
			s.failing = map[string]bool{}
		}
		s.failing[key] = true
	}
	now := len(s.failing) > 0
	switch {
	case s.host == nil || now == before:
	case now:
		componentstatus.ReportStatus(s.host, componentstatus.NewRecoverableErrorEvent(errStorage))
	default:
		componentstatus.ReportStatus(s.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}
