package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// reporter is a host that takes the status of a component.
type reporter struct {
	component.Host
	events []componentstatus.Status
}

func (r *reporter) Report(event *componentstatus.Event) { r.events = append(r.events, event.Status()) }

// One kind of states that cannot be stored is enough for the error, and all must be stored
// for its end. Each change is reported once.
func TestTheStatusIsThatOfAllKindsTogether(t *testing.T) {
	t.Parallel()
	r := &reporter{Host: componenttest.NewNopHost()}
	s := &Status{}
	failed := errors.New("no disk")
	s.accessed("a", failed) // There is no host before the start.
	s.accessed("a", nil)
	s.Start(r)
	s.accessed("a", nil)
	s.accessed("b", nil)
	assert.Empty(t, r.events, "nothing has changed")
	s.accessed("a", failed)
	s.accessed("a", failed)
	s.accessed("b", failed)
	s.accessed("a", nil)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, r.events, "b still fails")
	s.accessed("b", nil)
	s.accessed("b", nil)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, r.events)
	s.Stop()
	s.accessed("a", failed)
	assert.Len(t, r.events, 2, "the service reports the shutdown")
}

// logged makes the archive's lines readable.
func (b *bench) logged() *observer.ObservedLogs {
	core, logs := observer.New(zapcore.InfoLevel)
	b.archive.Logger = zap.New(core)
	b.archive.Damaged, b.archive.Unsaved, b.archive.Continued = "%d readable", "unsaved", "continued"
	return logs
}

// States that end are dropped down to the limit once they are a tenth above it.
func TestEndsKeepTheArchiveBelowItsLimitAndATenth(t *testing.T) {
	t.Parallel()
	b := newBench(100)
	for n := range 110 {
		b.end(fmt.Sprint(n), fmt.Sprint("server-", n), noon.Add(time.Duration(n)*time.Second))
	}
	assert.Len(t, b.archive.kept, 110)
	assert.Zero(t, b.dropped)
	b.end("110", "server-110", noon.Add(time.Hour))
	assert.Len(t, b.archive.kept, 100)
	assert.Equal(t, 11, b.dropped)
	assert.NotContains(t, b.archive.kept, "10", "the oldest are dropped")
	assert.Contains(t, b.archive.kept, "11")
	b.archive.prune()
	assert.Len(t, b.archive.kept, 100)
	assert.Equal(t, 11, b.dropped, "as many as the limit stay")
}

// Of servers with equally many states each loses as many, whichever is older. Of states whose
// server is not known only as many are dropped as are too many.
func TestTheExcessIsTakenFromEachServer(t *testing.T) {
	t.Parallel()
	b := newBench(12)
	for _, server := range []string{"older", "newer"} {
		for n := range 10 {
			at := noon.Add(time.Duration(n) * time.Second)
			if server == "older" {
				at = at.Add(-time.Hour)
			}
			b.archive.kept[fmt.Sprint(server, n)] = keptState{state(at, 1), at.UnixNano(), 0, uint64(len(b.archive.kept)/10 + 1)}
		}
	}
	b.archive.prune()
	left := map[uint64]int{}
	for _, kept := range b.archive.kept {
		left[kept.source]++
	}
	assert.Equal(t, map[uint64]int{1: 6, 2: 6}, left)

	b = newBench(12)
	for n := range 20 {
		at := noon.Add(time.Duration(n) * time.Second)
		b.archive.kept[fmt.Sprint(n)] = keptState{state(at, 1), at.UnixNano(), 0, 0}
	}
	b.archive.prune()
	assert.Len(t, b.archive.kept, 12)
	assert.NotContains(t, b.archive.kept, "7", "the oldest are dropped")
}

// However many states are too old, the others stay and become small.
func TestOldStatesAreDroppedAndTheOthersStay(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	for n := range 20 {
		b.end(fmt.Sprint("old-", n), "server", noon.Add(-24*time.Hour-1))
		b.end(fmt.Sprint("new-", n), "server", noon.Add(-24*time.Hour))
	}
	b.archive.prune()
	assert.Len(t, b.archive.kept, 20)
	b.now = noon.Add(time.Hour)
	b.archive.Age += time.Hour
	b.archive.prune()
	for n := range 20 {
		assert.Len(t, b.archive.kept[fmt.Sprint("new-", n)].state, 8)
	}
}

// A storage of which a part cannot be read is reported with the number of states that can.
func TestWhatTheStorageLacksIsReported(t *testing.T) {
	t.Parallel()
	sound := map[string][]byte{}
	for n := range 20 {
		sound[fmt.Sprint(n)] = state(noon, 1)
	}
	mixed := map[string][]byte{"short": {1}, "shorter": {}}
	maps.Copy(mixed, sound)
	whole := Encode(sound)
	for name, test := range map[string]struct {
		data []byte
		kept int
		want []string
	}{
		"all sound":          {whole, 20, []string{"continued"}},
		"two unreadable":     {Encode(mixed), 20, []string{"20 readable", "continued"}},
		"all unreadable":     {Encode(map[string][]byte{"short": {1}}), 0, []string{"0 readable"}},
		"changed at the end": {append(slices.Clone(whole[:len(whole)-1]), 7), 0, []string{"0 readable"}},
		"empty":              {Encode(nil), 0, nil},
		"not there":          {nil, 0, nil},
	} {
		b := newBench(0)
		logs := b.logged()
		b.archive.client = &store{data: map[string][]byte{"states.1": test.data}}
		b.archive.load(t.Context(), b.user)
		assert.Len(t, b.archive.kept, test.kept, name)
		var got []string
		for _, line := range logs.All() {
			got = append(got, line.Message)
		}
		assert.Equal(t, test.want, got, name)
	}
}

// Writes that fail are all counted, and reported once in an interval.
func TestFailedSavesAreReportedOnceInAnInterval(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	logs := b.logged()
	failed := 0
	b.archive.Failed = func() { failed++ }
	b.archive.client = &store{fails: true}
	for _, after := range []time.Duration{0, time.Second, 10*time.Minute - 1, 10 * time.Minute} {
		b.now = noon.Add(after)
		b.archive.save(t.Context())
	}
	assert.Equal(t, 4, failed)
	assert.Equal(t, 2, logs.FilterMessage("unsaved").Len())
}

// A state is saved by the user that has its server now. A copy of a state that has ended
// in the meantime is saved only where it is newer than what was kept at the end.
func TestASaveTakesEachStateFromItsOwner(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	other := NewUser(states, b.user.settings, func(func(string, []byte)) {})
	newer, older := state(noon, 1), state(noon.Add(-time.Minute), 2)
	save := func(own, others map[string][]byte) map[string][]byte {
		all, err := Decode(b.archive.encode([]*User{b.user, other}, []map[string][]byte{own, others}))
		require.NoError(t, err)
		return all
	}
	b.user.Begin("owned", "server")
	assert.Equal(t, map[string][]byte{"owned": older}, save(map[string][]byte{"owned": older}, map[string][]byte{"owned": newer}),
		"what another user has of the server does not count")
	assert.Equal(t, map[string][]byte{"free": older}, save(nil, map[string][]byte{"free": older}), "the former owner has ended")
	assert.Same(t, other, b.archive.owners["free"], "the server has this owner from now on")
	for name, test := range map[string]struct{ kept, copied, want []byte }{
		"the copy is older":     {newer, older, newer},
		"the copy is as old":    {newer, state(noon, 9), newer},
		"the copy is newer":     {older, newer, newer},
		"the copy has no time":  {newer, []byte{1}, newer},
		"none was kept":         {nil, newer, newer},
		"none, and has no time": {nil, []byte{1}, []byte{1}},
	} {
		b = newBench(0)
		if test.kept != nil {
			b.user.Begin("key", "server")
			b.user.End("key", test.kept)
		}
		rest := map[string][]byte{"key": test.copied}
		for n := range 9 {
			rest[fmt.Sprint("another-", n)] = newer
		}
		saved := save(rest, nil)
		assert.Equal(t, test.want, saved["key"], name)
		assert.Len(t, saved, 10, "%s: the others are saved all the same", name)
	}
}

// What has just the greatest length is stored and read.
func TestTheGreatestKeyAndStateAreKept(t *testing.T) {
	t.Parallel()
	all := map[string][]byte{string(make([]byte, maxKey)): {1}, "b": make([]byte, MaxSize)}
	got, err := Decode(Encode(all))
	require.NoError(t, err)
	assert.Equal(t, all, got)
}

// A storage has some seconds for a write, and no more.
func TestASaveIsBoundedInTime(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	slow := &slowStore{}
	b.archive.client = slow
	began := time.Now()
	b.archive.save(t.Context())
	assert.Greater(t, slow.deadline.Sub(began), 5*time.Second)
	assert.Less(t, slow.deadline.Sub(began), time.Minute)
}

// slowStore is a storage that records until when it may write.
type slowStore struct {
	store
	deadline time.Time
}

func (s *slowStore) Set(ctx context.Context, _ string, _ []byte) error {
	s.deadline, _ = ctx.Deadline()
	return ctx.Err()
}
