package vllmprocessor

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// watchedHost keeps what a component reports of itself.
type watchedHost struct {
	hostWith
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (h *watchedHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *watchedHost) statuses() (all []componentstatus.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		all = append(all, event.Status())
	}
	return all
}

// The status follows the storage, is reported when it changes, and is one for all that
// the processor keeps.
func TestAStorageThatFailsIsAStatus(t *testing.T) {
	const bad, good = componentstatus.StatusRecoverableError, componentstatus.StatusOK
	store := &memory{}
	host := &watchedHost{hostWith: hostWith{stateID, store}}
	config := kept()
	config.Diagnosis.Enabled = true
	p := newInstance(t, config, &archive.Shared{})
	p.begin(host)
	p.watch(steady("one:8000", noon), time.Minute)
	save := func(fail bool, archives ...*archive.User) {
		store.set(fail)
		for _, a := range archives {
			a.Save(t.Context())
		}
	}
	both := []*archive.User{p.objectives().Archive, p.diagnosis().Archive}
	save(false, both...)
	assert.Empty(t, host.statuses(), "a storage that works is not news")
	save(true, both...)
	save(true, both...)
	require.Equal(t, []componentstatus.Status{bad}, host.statuses())
	assert.ErrorContains(t, host.events[0].Err(), "check the disk")
	save(false, both[0])
	assert.Equal(t, []componentstatus.Status{bad}, host.statuses(), "the other part was not written yet")
	save(false, both...)
	assert.Equal(t, []componentstatus.Status{bad, good}, host.statuses())
	store.set(true)
	p.end()
	assert.Equal(t, []componentstatus.Status{bad, good}, host.statuses(), "the shutdown is the service's to report")
}

func TestAStorageThatCannotBeReadIsAStatus(t *testing.T) {
	host := &watchedHost{hostWith: hostWith{stateID, &memory{failRead: true}}}
	p := newInstance(t, remembering(), &archive.Shared{})
	p.begin(host)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.statuses())
	p.diagnosis().Archive.Save(t.Context())
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.statuses(), "the diagnoses were not written yet")
	p.diagnosis().Diagnoses.Save(t.Context())
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.statuses())
	p.end()
}
