package archive

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shelf is a storage that also deletes.
type shelf struct{ store }

func (s *shelf) Delete(_ context.Context, key string) error {
	if s.fails {
		return errors.New("no disk")
	}
	delete(s.data, key)
	return nil
}

func newShelf(data map[string][]byte) *shelf { return &shelf{store{data: data}} }

// later is what a version with another form may have written.
var later = []byte("A\x01\x00\x06\x03zzzz!something")

func TestWhatCannotBeReadStaysBesideTheNextSave(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{
		"a later form":   later,
		"not a state":    Encode(map[string][]byte{"key": {1}}),
		"no form at all": []byte("x"),
	} {
		b := newBench(0)
		logs := b.logged()
		disk := newShelf(map[string][]byte{"states": value})
		b.archive.client = disk
		b.archive.load(t.Context(), b.user)
		assert.Equal(t, value, disk.data["states.unread"], name)
		require.Len(t, logs.All(), 1, name)
		assert.Equal(t, "states.unread", logs.All()[0].ContextMap()["kept_for_the_other_version_as"], name)
		b.archive.save(t.Context())
		assert.NotEqual(t, value, disk.data["states"], name)
		assert.Equal(t, value, disk.data["states.unread"], name)
	}
}

// Each start with the same version leaves it there; it goes when it can be read.
func TestWhatWasSetAsideIsTakenBack(t *testing.T) {
	t.Parallel()
	newer := state(noon.Add(time.Minute), 5)
	for name, test := range map[string]struct {
		aside []byte
		want  map[string][]byte
		stays bool
	}{
		"can be read":      {Encode(map[string][]byte{"key": state(noon, 1), "other": state(noon, 2)}), map[string][]byte{"key": newer, "other": state(noon, 2)}, false},
		"cannot be read":   {later, map[string][]byte{"key": newer}, true},
		"one state cannot": {Encode(map[string][]byte{"other": state(noon, 2), "short": {1}}), map[string][]byte{"key": newer}, true},
		"nothing new":      {Encode(map[string][]byte{"key": state(noon, 1)}), map[string][]byte{"key": newer}, false},
	} {
		b := newBench(0)
		b.now = noon.Add(2 * time.Minute)
		disk := newShelf(map[string][]byte{"states": Encode(map[string][]byte{"key": newer}), "states.unread": test.aside})
		b.archive.client = disk
		b.archive.load(t.Context(), b.user)
		got := map[string][]byte{}
		for key, kept := range b.archive.kept {
			got[key] = kept.state
		}
		assert.Equal(t, test.want, got, name)
		assert.Equal(t, test.aside, disk.data["states.unread"], "%s: the storage must have it until a save has its states", name)
		b.archive.save(t.Context())
		_, stays := disk.data["states.unread"]
		assert.Equal(t, test.stays, stays, name)
	}
}

// A full disk loses what cannot be read with the next save that succeeds, and the log says so.
func TestADiskThatTakesNothingIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	logs := b.logged()
	failed := 0
	b.archive.Failed = func() { failed++ }
	disk := newShelf(map[string][]byte{"states": later})
	disk.fails = true
	b.archive.client = disk
	b.archive.load(t.Context(), b.user)
	assert.Equal(t, 1, failed)
	require.Len(t, logs.All(), 1)
	assert.Equal(t, "no disk", logs.All()[0].ContextMap()["not_kept"])
}

// The collector crashes before its first save, which can be five minutes after the start.
func TestACrashAfterTakingBackLosesNothing(t *testing.T) {
	t.Parallel()
	data := map[string][]byte{"states.unread": Encode(map[string][]byte{"other": state(noon, 2)})}
	for range 2 {
		b := newBench(0)
		b.archive.client = newShelf(data)
		b.archive.load(t.Context(), b.user)
		assert.Equal(t, state(noon, 2), b.archive.kept["other"].state)
	}
}

// A value that cannot be read takes the place of one that can: that one is read before.
func TestWhatCanBeReadIsTakenBackBeforeAnotherTakesItsPlace(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	disk := newShelf(map[string][]byte{"states": later, "states.unread": Encode(map[string][]byte{"other": state(noon, 2)})})
	b.archive.client = disk
	b.archive.load(t.Context(), b.user)
	assert.Equal(t, state(noon, 2), b.archive.kept["other"].state)
	assert.Equal(t, later, disk.data["states.unread"])
	// Only this value has them now.
	saved, err := Decode(disk.data["states"])
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"other": state(noon, 2)}, saved)
	b.archive.save(t.Context())
	assert.Equal(t, later, disk.data["states.unread"])
}

// What a later version wrote may be whole, and what the disk has changed is of no use to any version.
func TestWhatTheDiskHasChangedReplacesNothingOfAnotherVersion(t *testing.T) {
	t.Parallel()
	whole := Encode(map[string][]byte{"key": state(noon, 1)})
	changed := bytes.Clone(whole)
	changed[len(changed)-1]++
	for name, test := range map[string]struct{ value, aside, want []byte }{
		"the disk changed it": {changed, later, later},
		"it ends early":       {whole[:len(whole)-1], later, later},
		"nothing is there":    {changed, nil, changed},
		"of another version":  {later, []byte("A\x02"), later},
	} {
		b := newBench(0)
		logs := b.logged()
		disk := newShelf(map[string][]byte{"states": test.value})
		if test.aside != nil {
			disk.data["states.unread"] = test.aside
		}
		b.archive.client = disk
		b.archive.load(t.Context(), b.user)
		assert.Equal(t, test.want, disk.data["states.unread"], name)
		require.Len(t, logs.All(), 1, name)
	}
}

// Each save of a storage that deletes nothing would log a line otherwise.
func TestWhatCannotBeRemovedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(0)
	logs := b.logged()
	failed := 0
	b.archive.Failed = func() { failed++ }
	disk := &reluctant{newShelf(map[string][]byte{"states.unread": Encode(map[string][]byte{"other": state(noon, 2)})})}
	b.archive.client = disk
	b.archive.load(t.Context(), b.user)
	for range 3 {
		b.archive.save(t.Context())
	}
	assert.Equal(t, 1, failed)
	assert.Len(t, logs.FilterMessageSnippet("cannot be removed").All(), 1)
}

// reluctant deletes nothing.
type reluctant struct{ *shelf }

func (*reluctant) Delete(context.Context, string) error { return errors.New("no") }
