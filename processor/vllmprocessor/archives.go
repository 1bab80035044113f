package vllmprocessor

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// archives are those of the components that a factory has made, one for each kind
// of states.
type archives struct {
	mu sync.Mutex
	by map[archiveOf]*archive
}

type archiveOf struct {
	component component.ID
	key       string
}

// attach gives a user the archive of its component, which is fresh if it is the
// first. The first one opens the storage.
func (s *archives) attach(ctx context.Context, id component.ID, user keeper, fresh *archive, open func(name string) (storage.Client, error)) (*archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := archiveOf{id, fresh.key}
	a := s.by[of]
	if a == nil {
		client, err := open(fresh.storage)
		if err != nil {
			return fresh, err
		}
		a = fresh
		if a.client = client; client != nil {
			a.load(ctx, user)
			a.run()
		}
		if s.by == nil {
			s.by = map[archiveOf]*archive{}
		}
		s.by[of] = a
	}
	a.mu.Lock()
	a.users = append(a.users, user)
	a.mu.Unlock()
	return a, nil
}

// detach takes the last states of a user and saves them. The last user closes the
// storage.
func (s *archives) detach(ctx context.Context, id component.ID, user keeper, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := archiveOf{id, key}
	a := s.by[of]
	if a == nil || !slices.Contains(a.users, user) {
		return nil
	}
	for key, state := range user.snapshot() {
		a.end(key, state, user)
	}
	a.mu.Lock()
	a.users = slices.DeleteFunc(a.users, func(other keeper) bool { return other == user })
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

// openStorage returns a client of the storage extension for one kind of states;
// nil where none is configured.
func (p *vllmProcessor) openStorage(ctx context.Context, host component.Host, name string) (storage.Client, error) {
	id := p.config.Storage
	if id == nil {
		return nil, nil
	}
	extension, known := host.GetExtensions()[*id]
	if !known {
		return nil, fmt.Errorf("storage: there is no extension %s; define it under extensions and list it in service::extensions, "+
			"or leave out storage and lose budgets and baselines with a restart", id)
	}
	store, can := extension.(storage.Extension)
	if !can {
		return nil, fmt.Errorf("storage: the extension %s stores nothing; write the name of a storage extension, for example file_storage", id)
	}
	client, err := store.GetClient(ctx, component.KindProcessor, p.id, name)
	if err != nil {
		return nil, fmt.Errorf("storage: the extension %s cannot be used: %w; if another collector has it open, give each a folder of its own", id, err)
	}
	return client, nil
}
