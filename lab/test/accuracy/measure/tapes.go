package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// tapes plays stories from tapes, and tapes those that have none. So the diagnosis can be
// measured again after a change without simulating the servers again.
type tapes struct {
	// dir is the folder of the tapes of the present simulation.
	dir string
	// open makes the method that judges a tape, if it is not the processor; it may be an io.Closer.
	open func(context.Context) (judge.Method, error)
}

// newTapes returns the tapes below a folder, of the simulation whose sources are below root.
func newTapes(dir, root string) (*tapes, error) {
	made, err := fingerprint(root, simulation(), reporting)
	if err != nil {
		return nil, err
	}
	t := &tapes{dir: filepath.Join(dir, made)}
	return t, os.MkdirAll(t.dir, 0o755)
}

// simulation are the sources that decide about what servers show and what is true of it.
func simulation() []string {
	return slices.DeleteFunc(slices.Clone(sources), func(of string) bool {
		return of == "internal/catalog" || of == "processor/vllmprocessor"
	})
}

// reporting are the sources of the judge that a tape does not depend on.
var reporting = []string{
	"lab/judge/driver.go", "lab/judge/heard.go", "lab/judge/method.go", "lab/judge/processor.go", "lab/judge/reported.go", "lab/judge/reports.go",
	"lab/judge/summary.go", "lab/judge/tape.go",
}

// path is where the tape of a story is.
func (t *tapes) path(story string) string {
	return filepath.Join(t.dir, strings.ReplaceAll(story, string(filepath.Separator), "-")+".tape")
}

// has reports whether a story has a tape.
func (t *tapes) has(story string) bool {
	_, err := os.Stat(t.path(story))
	return err == nil
}

// play is a Player.
func (t *tapes) play(ctx context.Context, story *judge.Story) (*judge.Played, error) {
	played, err := t.replay(ctx, story)
	if errors.Is(err, fs.ErrNotExist) {
		return t.record(ctx, story, t.path(story.Name))
	}
	return played, err
}

// replay is a Player of stories that have a tape.
func (t *tapes) replay(ctx context.Context, story *judge.Story) (played *judge.Played, err error) {
	path := t.path(story.Name)
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var method judge.Method
	if t.open != nil {
		if method, err = t.open(ctx); err != nil {
			return nil, err
		}
		if c, is := method.(io.Closer); is {
			defer func() { err = errors.Join(err, c.Close()) }()
		}
	}
	if played, err = judge.Replay(ctx, file, method); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to play the story again", path, err)
	}
	return played, nil
}

// record plays a story, and keeps its tape where it was played to its end.
func (t *tapes) record(ctx context.Context, story *judge.Story, path string) (*judge.Played, error) {
	file, err := os.CreateTemp(t.dir, "unfinished-*")
	if err != nil {
		return nil, err
	}
	played, err := judge.PlayTaped(ctx, story, file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	return played, nil
}
