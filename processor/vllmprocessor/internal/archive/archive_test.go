package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

var noon = time.Unix(1_800_000_000, 0)

// state is a state that knows up to a time; Thin leaves 8 bytes of it.
func state(at time.Time, size int) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())), make([]byte, size)...)
}

var states = Kind{
	Key: "states", Interval: time.Hour, Age: 24 * time.Hour,
	Newest: func(state []byte) (int64, bool) {
		if len(state) < 8 {
			return 0, false
		}
		return int64(binary.BigEndian.Uint64(state)), true
	},
	Thin: func(state []byte, _ int64) []byte { return state[:8] },
}

// bench has an archive whose clock stands at noon and a user with states.
type bench struct {
	archive *archive
	user    *User
	live    map[string][]byte
	dropped int
	now     time.Time
}

func newBench(limit int) *bench {
	b := &bench{live: map[string][]byte{}, now: noon}
	b.user = NewUser(states, Settings{
		Shared: &Shared{Limit: limit}, Status: &Status{}, Logger: zap.NewNop(), Now: func() time.Time { return b.now }, Every: func(time.Duration, func()) func() { return func() {} },
		Failed: func() {}, Dropped: func(n int) { b.dropped += n },
	}, func(put func(string, []byte)) {
		for key, state := range b.live {
			put(key, state)
		}
	})
	b.archive = b.user.archive
	return b
}

// end begins a state of a server and ends it.
func (b *bench) end(key, server string, at time.Time) {
	b.user.Begin(key, server)
	b.user.End(key, state(at, 10))
}

func TestAServerThatComesBackContinuesWithItsState(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	_, has := b.user.Begin("key", "server")
	assert.False(t, has, "a new server has no state")
	b.user.End("key", state(noon, 3))
	got, has := b.user.Begin("key", "server")
	assert.True(t, has)
	assert.Equal(t, state(noon, 3), got)
	_, has = b.user.Begin("other", "server")
	assert.False(t, has)
}

func TestAStateIsContinuedUpToItsAge(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]bool{24 * time.Hour: true, 24*time.Hour + 1: false} {
		b := newBench(0)
		b.end("key", "server", noon.Add(-age))
		_, has := b.user.Begin("key", "server")
		assert.Equal(t, want, has, age)
	}
}

// A state that is forgotten is given to no server, also where it was stored before. What another
// user owns stays.
func TestAForgottenStateIsGone(t *testing.T) {
	b := newBench(10)
	b.user.End("key", state(noon, 10))
	_, known := b.user.Begin("key", "server")
	require.True(t, known)
	other := NewUser(states, b.user.settings, func(func(string, []byte)) {})
	other.archive = b.archive
	other.Forget("key")
	_, known = b.user.Begin("key", "server")
	require.True(t, known)
	b.user.Forget("key")
	assert.Empty(t, b.archive.kept)
	assert.Empty(t, b.archive.owners)
	_, known = b.user.Begin("key", "server")
	assert.False(t, known)
}

func TestAStateThatCannotBeReadLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	b.user.Begin("key", "server")
	b.user.End("key", nil)
	assert.Empty(t, b.archive.kept)
	assert.Empty(t, b.archive.owners)
	assert.Empty(t, b.archive.sources)
}

func TestTheUserThatBeganFirstOwnsTheState(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	other := &User{settings: b.user.settings, archive: b.archive, snapshot: b.user.snapshot}
	b.user.Begin("key", "server")
	other.Begin("key", "server")
	other.End("key", state(noon, 1))
	assert.Empty(t, b.archive.kept, "the state of the second user is not kept")
	b.user.End("key", state(noon, 2))
	assert.Equal(t, state(noon, 2), b.archive.kept["key"].state)
}

func TestStatesThatAreTooOldOrTooManyAreDropped(t *testing.T) {
	t.Parallel()
	b := newBench(3)
	b.end("old", "old", noon.Add(-25*time.Hour))
	for i, key := range []string{"a", "b", "c", "d"} {
		b.end(key, key, noon.Add(time.Duration(i-4)*time.Minute))
	}
	b.archive.prune()
	assert.Len(t, b.archive.kept, 3)
	assert.NotContains(t, b.archive.kept, "old")
	assert.NotContains(t, b.archive.kept, "a", "the oldest is dropped where there are too many")
	assert.Equal(t, 1, b.dropped)
}

func TestAServerWithManyStatesDoesNotPushOutThoseOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(20)
	for i := range 3 {
		b.end(fmt.Sprint("good-", i), fmt.Sprint("good-", i), noon.Add(-time.Hour))
	}
	for i := range 200 {
		b.end(fmt.Sprint("noisy-", i), "noisy", noon.Add(time.Duration(i-200)*time.Second))
	}
	b.archive.prune()
	assert.Len(t, b.archive.kept, 20)
	for i := range 3 {
		assert.Contains(t, b.archive.kept, fmt.Sprint("good-", i))
	}
	assert.Contains(t, b.archive.kept, "noisy-199", "the newest stay")
	assert.Empty(t, b.archive.sources)
}

// A server with a few more states than the limit divided by all servers keeps them: the
// others leave that free, and the noisy one has far more.
func TestStatesThatFitAreNotPushedOut(t *testing.T) {
	t.Parallel()
	b := newBench(100)
	for i := range 15 {
		b.end(fmt.Sprint("good-", i), "good", noon.Add(-time.Hour))
	}
	for i := range 30 {
		b.end(fmt.Sprint("small-", i), fmt.Sprint("small-", i), noon.Add(-time.Minute))
	}
	for i := range 300 {
		b.end(fmt.Sprint("noisy-", i), "noisy", noon.Add(time.Duration(i-300)*time.Millisecond))
	}
	b.archive.prune()
	assert.Len(t, b.archive.kept, 100)
	for i := range 15 {
		assert.Contains(t, b.archive.kept, fmt.Sprint("good-", i))
	}
}

func TestTheStateOfASilentServerBecomesSmallAfterAnHour(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	b.end("key", "server", noon)
	b.now = noon.Add(time.Hour - 1)
	b.archive.prune()
	assert.Len(t, b.archive.kept["key"].state, 18)
	b.now = noon.Add(time.Hour)
	b.archive.prune()
	assert.Len(t, b.archive.kept["key"].state, 8)
}

// The states are copied before they are put together. A state that ends in between is
// newer than its copy and stays.
func TestAStateThatEndsDuringASaveIsSavedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	b.user.Begin("key", "server")
	copied := map[string][]byte{"key": state(noon.Add(-time.Minute), 1)}
	b.user.End("key", state(noon, 2))
	for range 2 {
		saved, err := Decode(b.archive.encode([]*User{b.user}, []map[string][]byte{copied}))
		require.NoError(t, err)
		assert.Equal(t, map[string][]byte{"key": state(noon, 2)}, saved)
	}
}

// Two states must never have one key.
func TestAKeyHasEveryPart(t *testing.T) {
	t.Parallel()
	all := map[string]bool{}
	for _, key := range []string{
		KeyOf("a", nil, "x"), KeyOf("b", nil, "x"), KeyOf("a", nil, "y"), KeyOf("x", nil, "a"),
		KeyOf("a", []input.Attribute{{Name: "n", Value: "v"}}, "x"), KeyOf("a", []input.Attribute{{Name: "v", Value: "n"}}, "x"),
		KeyOf("a", []input.Attribute{{Name: "nv"}}, "x"),
	} {
		assert.Len(t, key, 32)
		all[key] = true
	}
	assert.Len(t, all, 7)
}

// store is a storage in memory.
type store struct {
	component.StartFunc
	component.ShutdownFunc
	data            map[string][]byte
	fails           bool
	opened, closed  int
	clientsAtOnce   int
	mostClientsEver int
}

func (s *store) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	s.opened++
	s.clientsAtOnce++
	s.mostClientsEver = max(s.mostClientsEver, s.clientsAtOnce)
	return s, nil
}
func (s *store) Get(_ context.Context, key string) ([]byte, error) { return s.data[key], nil }
func (s *store) Set(_ context.Context, key string, value []byte) error {
	if s.fails {
		return errors.New("no disk")
	}
	s.data[key] = value
	return nil
}
func (*store) Delete(context.Context, string) error               { return errors.ErrUnsupported }
func (*store) Batch(context.Context, ...*storage.Operation) error { return errors.ErrUnsupported }
func (s *store) Close(context.Context) error                      { s.closed++; s.clientsAtOnce--; return nil }

type host struct {
	component.Host
	store *store
}

var stored = component.MustNewID("store")

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{stored: h.store}
}

func TestTwoPipelinesShareOneClientAndBothAreSaved(t *testing.T) {
	t.Parallel()
	h := host{componenttest.NewNopHost(), &store{data: map[string][]byte{}}}
	left, right := newBench(0), newBench(0)
	right.user.settings.Shared = left.user.settings.Shared
	for _, b := range []*bench{left, right} {
		b.user.settings.Extension = &stored
		require.NoError(t, b.user.Start(t.Context(), h))
	}
	for name, b := range map[string]*bench{"left": left, "right": right} {
		b.user.Begin(name, name)
		b.live[name] = state(noon, 1)
	}
	require.NoError(t, left.user.Shutdown(t.Context()))
	assert.Zero(t, h.store.closed, "the other still uses it")
	require.NoError(t, right.user.Shutdown(t.Context()))
	assert.Equal(t, []int{1, 1, 1}, []int{h.store.opened, h.store.closed, h.store.mostClientsEver})
	saved, err := Decode(h.store.data["states.1"])
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"left": state(noon, 1), "right": state(noon, 1)}, saved)

	again := newBench(0)
	again.user.settings.Extension = &stored
	require.NoError(t, again.user.Start(t.Context(), h))
	_, has := again.user.Begin("left", "left")
	assert.True(t, has, "it was read from the storage")
	require.NoError(t, again.user.Shutdown(t.Context()))
}

func TestAFailedSaveLosesNothing(t *testing.T) {
	t.Parallel()
	h := host{componenttest.NewNopHost(), &store{data: map[string][]byte{}, fails: true}}
	b := newBench(0)
	b.user.settings.Extension = &stored
	failed := 0
	b.archive.Failed = func() { failed++ }
	require.NoError(t, b.user.Start(t.Context(), h))
	b.end("key", "server", noon)
	b.user.Save(t.Context())
	assert.Equal(t, 1, failed)
	h.store.fails = false
	require.NoError(t, b.user.Shutdown(t.Context()))
	saved, err := Decode(h.store.data["states.1"])
	require.NoError(t, err)
	assert.Contains(t, saved, "key")
}

func TestAUserShutsDownWithoutStart(t *testing.T) {
	t.Parallel()
	require.NoError(t, newBench(0).user.Shutdown(t.Context()))
}

// A rollback loses nothing: each version reads and writes the place of its own form, and the log says
// that there is another.
func TestStatesOfALaterVersionStay(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	logs := b.logged()
	later := []byte("unknown")
	disk := &store{data: map[string][]byte{"states.1": Encode(map[string][]byte{"key": state(noon, 1)}), "states.2": later}}
	b.archive.client = disk
	b.archive.load(t.Context(), b.user)
	b.archive.save(t.Context())
	assert.Equal(t, later, disk.data["states.2"])
	assert.Equal(t, state(noon, 1), b.archive.kept["key"].state)
	assert.Equal(t, 1, logs.FilterMessageSnippet("a later version").Len())
}
