package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

func open(t *testing.T, path, fingerprint string) *Journal {
	t.Helper()
	j, err := OpenJournal(path, fingerprint)
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestAJournalIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "heldout.jsonl")
	j := open(t, path, "these sources")
	r := newRecord(meta(), played("slow_steps", "slow_steps"))
	require.NoError(t, j.Put(r))
	require.NoError(t, j.Close())

	m := meta()
	got, there := open(t, path, "these sources").Get(&m)
	require.True(t, there)
	r.Print = got.Print
	assert.Equal(t, r, got, "nothing is lost")

	_, there = open(t, path, "other sources").Get(&m)
	assert.False(t, there, "other sources may give another result")
	m.Injections[0].Wanted = 5
	j = open(t, path, "these sources")
	_, there = j.Get(&m)
	assert.False(t, there, "it is another story of the same name")
	assert.Equal(t, 1, j.Stale)
}

// oneAndAHalf writes a journal of one record and half of another.
func oneAndAHalf(t *testing.T, path string) {
	t.Helper()
	j := open(t, path, "sources")
	require.NoError(t, j.Put(newRecord(meta(), played("slow_steps", "slow_steps"))))
	require.NoError(t, j.Close())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"name":"half`)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// A run that is killed while it writes leaves half a line.
func TestHalfALineAtTheEndIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	oneAndAHalf(t, path)

	j := open(t, path, "sources")
	second := meta()
	second.Name = "second"
	require.NoError(t, j.Put(newRecord(second, played("slow_steps", "slow_steps"))))
	require.NoError(t, j.Close())
	j = open(t, path, "sources")
	for _, name := range []string{"a story", "second"} {
		m := meta()
		m.Name = name
		_, there := j.Get(&m)
		assert.True(t, there, name)
	}
}

func TestADamagedJournalIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("{}\nnot a record\n{}\n"), 0o600))
	_, err := OpenJournal(path, "sources")
	require.ErrorContains(t, err, "heldout.jsonl: line 2 is not a record")
	require.ErrorContains(t, err, "remove the file to start again")
}

func TestTheFingerprintIsThatOfTheSources(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	modules := []string{"go.mod", "lab/go.mod"}
	for _, module := range modules {
		write(module, "module x")
	}
	for _, dir := range sources {
		write(dir+"/a.go", "package a")
	}
	current := func() string {
		out, err := Fingerprint(root)
		require.NoError(t, err)
		return out
	}
	first := current()
	assert.Equal(t, first, current())
	write("lab/judge/a_test.go", "package a")
	write("lab/test/accuracy/page.go", "package accuracy")
	assert.Equal(t, first, current(), "tests and the page change no result")
	write("processor/vllmprocessor/internal/diagnose/gate.go", "package diagnose")
	second := current()
	assert.NotEqual(t, first, second)
	for _, module := range modules {
		before := current()
		write(module, "module x // other dependencies")
		assert.NotEqual(t, before, current(), module)
	}
}

// plans are stories that no engine plays.
func plans(names ...string) []stories.Plan {
	var out []stories.Plan
	for _, name := range names {
		m := meta()
		m.Name = name
		out = append(out, stories.NewPlan(m, func() (*judge.Story, error) { return &judge.Story{Name: name}, nil }))
	}
	return out
}

func runOf(t *testing.T, path string, player Player) *Run {
	t.Helper()
	return &Run{
		Player: player, Journal: open(t, path, "sources"), Workers: 2, Now: time.Now, CPU: func() float64 { return 0 },
	}
}

func TestARunContinues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	var mu sync.Mutex
	var said []string
	player := func(_ context.Context, s *judge.Story) (*judge.Played, error) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, s.Name)
		if s.Name == "bad" {
			return nil, errors.New("the engine has no blocks")
		}
		return played("slow_steps", "slow_steps"), nil
	}
	first, err := runOf(t, path, player).Play(t.Context(), plans("a", "bad", "b"))
	require.ErrorContains(t, err, "story bad cannot be played: the engine has no blocks")
	assert.Len(t, first, 2, "one bad story does not end the others")
	said = nil
	second, err := runOf(t, path, player).Play(t.Context(), plans("c", "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, said, "the others are in the journal")
	var names []string
	for i := range second {
		names = append(names, second[i].Name)
	}
	assert.Equal(t, []string{"c", "a", "b"}, names, "in the order of the plans")
}

func TestARunEndsAtItsTime(t *testing.T) {
	r := runOf(t, filepath.Join(t.TempDir(), "heldout.jsonl"), func(context.Context, *judge.Story) (*judge.Played, error) {
		return played("slow_steps", "slow_steps"), nil
	})
	r.Workers = 1
	var now atomic.Int64
	r.Now = func() time.Time { return time.Unix(now.Add(1), 0) }
	r.Until = time.Unix(12, 0)
	got, err := r.Play(t.Context(), plans(strings.Split("abcdefghijklmnopqrstuvwxyz", "")...))
	require.NoError(t, err, "it is not a failure to have little time")
	assert.NotEmpty(t, got)
	assert.Less(t, len(got), 26)
}

func TestACutStoryIsBroken(t *testing.T) {
	_, err := runOf(t, filepath.Join(t.TempDir(), "heldout.jsonl"), func(context.Context, *judge.Story) (*judge.Played, error) {
		p := played("slow_steps", "slow_steps")
		p.Lines = slices.Clip(p.Lines[:40])
		return p, nil
	}).Play(t.Context(), plans("short"))
	require.ErrorContains(t, err, "story short has 40 minutes instead of 60")
}

func TestPartsShareARun(t *testing.T) {
	all := plans("a", "b", "c", "d", "e")
	seen := map[string]int{}
	for _, text := range []string{"1/2", "2/2"} {
		some, err := part(all, text)
		require.NoError(t, err)
		for _, p := range some {
			seen[p.Name]++
		}
	}
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, seen)
	for _, text := range []string{"", "0/2", "3/2", "x", "1"} {
		_, err := part(all, text)
		require.ErrorContains(t, err, "-part", text)
	}
}

// Journals of several machines, one behind the other, are one.
func TestJournalsCanBeJoined(t *testing.T) {
	dir := t.TempDir()
	var both []byte
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		j := open(t, path, "sources")
		m := meta()
		m.Name = name
		require.NoError(t, j.Put(newRecord(m, played("slow_steps", "slow_steps"))))
		require.NoError(t, j.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		both = append(both, text...)
	}
	path := filepath.Join(dir, "both")
	require.NoError(t, os.WriteFile(path, both, 0o600))
	j := open(t, path, "sources")
	for _, name := range []string{"a", "b"} {
		m := meta()
		m.Name = name
		_, there := j.Get(&m)
		assert.True(t, there, name)
	}
}

// fullDisk takes half of what is written while it is full.
type fullDisk struct {
	*os.File
	full bool
}

func (f *fullDisk) Write(b []byte) (int, error) {
	if !f.full {
		return f.File.Write(b)
	}
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(err, errors.New("no space left on device"))
}

func TestAFullDiskEndsTheRunAndSpoilsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	n := 0
	r := runOf(t, path, func(context.Context, *judge.Story) (*judge.Played, error) {
		n++
		return played("slow_steps", "slow_steps"), nil
	})
	r.Workers = 1
	file, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
	require.NoError(t, err)
	disk := &fullDisk{File: file}
	r.Journal.file = disk
	_, err = r.Play(t.Context(), plans("a"))
	require.NoError(t, err)
	disk.full = true
	got, err := r.Play(t.Context(), plans("a", "b", "c", "d", "e", "f", "g"))
	require.ErrorContains(t, err, "story b: the result cannot be kept")
	require.ErrorContains(t, err, "no space left on device")
	assert.Less(t, n, 5, "the others would be lost as well")
	assert.Len(t, got, 1)
	disk.full = false
	_, err = r.Play(t.Context(), plans("h"))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	j := open(t, path, "sources")
	for name, there := range map[string]bool{"a": true, "b": false, "h": true} {
		m := meta()
		m.Name = name
		_, is := j.Get(&m)
		assert.Equal(t, there, is, name)
	}
}

func TestAnEndedRunIsSaidOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := runOf(t, filepath.Join(t.TempDir(), "heldout.jsonl"), func(ctx context.Context, _ *judge.Story) (*judge.Played, error) {
		cancel()
		return nil, ctx.Err()
	}).Play(ctx, plans("a", "b", "c"))
	require.EqualError(t, err, "ended early: context canceled; the same command continues")
}

// Journals from before all lines of these stories were kept have too few of them.
func TestOldRecordsOfTheExpositionAreStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	m := meta()
	m.Kind = stories.Exposition
	j := open(t, path, "sources")
	old := newRecord(m, played("slow_steps", "slow_steps"))
	text, err := json.Marshal(m)
	require.NoError(t, err)
	sum := sha256.Sum256(append([]byte("sources"), text...))
	old.Print = hex.EncodeToString(sum[:8])
	line, err := json.Marshal(old)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, os.WriteFile(path, append(line, '\n'), 0o600))
	j = open(t, path, "sources")
	_, there := j.Get(&m)
	assert.False(t, there)
	require.NoError(t, j.Put(newRecord(m, played("slow_steps", "slow_steps"))))
	_, there = j.Get(&m)
	assert.True(t, there)
}

// A page can be made while a run is under way: what the run has half written stays.
func TestReadingAJournalDoesNotChangeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heldout.jsonl")
	_, err := ReadJournal(path, "sources")
	require.ErrorIs(t, err, os.ErrNotExist)
	oneAndAHalf(t, path)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	j, err := ReadJournal(path, "sources")
	require.NoError(t, err)
	m := meta()
	_, there := j.Get(&m)
	assert.True(t, there)
	require.Error(t, j.Put(newRecord(meta(), played("slow_steps", "slow_steps"))))
	require.NoError(t, j.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}
