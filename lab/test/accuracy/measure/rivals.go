package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/rivals"
)

// Rival is a method that others would take, with what it said of the stories that it has played.
type Rival struct {
	// Name is for the page.
	Name    string
	Records []Record
}

// rivalMethod is one of them: its value of the flag -method, and a new one for each story.
type rivalMethod struct {
	flag, name string
	open       func(context.Context) (judge.Method, error)
}

var rivalMethods = []rivalMethod{
	{"nsigma", "NSigma", func(context.Context) (judge.Method, error) { return rivals.NewNSigma(30, false), nil }},
	// The usual form forgets what is usual while harm lasts, and needs half an hour. Of 10 and 30 windows, quiet or
	// not, this finds the most causes on the tuning set, with the most false warnings.
	{"nsigma-quiet", "NSigma of 10 quiet minutes", func(context.Context) (judge.Method, error) { return rivals.NewNSigma(10, true), nil }},
	{"wire", "rules on vLLM's own names", func(ctx context.Context) (judge.Method, error) { return rivals.NewWire(ctx) }},
}

// rivalOf is that of a value of the flag; nil for an empty one, which is the processor.
func rivalOf(flag string) (*rivalMethod, error) {
	i := slices.IndexFunc(rivalMethods, func(m rivalMethod) bool { return m.flag == flag })
	if flag == "" {
		return nil, nil
	}
	if i < 0 {
		return nil, fmt.Errorf("-method %q: want nsigma, nsigma-quiet or wire, or nothing for the processor", flag)
	}
	return &rivalMethods[i], nil
}

// journal is where the results of a set are, and fingerprint that of what they depend on.
func (m *rivalMethod) journal(dir, set string) string {
	return filepath.Join(dir, set+"-"+m.flag+".jsonl")
}

func (*rivalMethod) fingerprint(root string) (string, error) {
	return fingerprint(root, append(simulation(), "lab/test/accuracy/rivals", "cmd/vllmctl/content"), nil)
}

// readRivals reads the results of the rivals that have played a set. Those of other sources do not count.
func readRivals(dir, set, root string) (out []Rival, err error) {
	for i := range rivalMethods {
		m := &rivalMethods[i]
		made, err := m.fingerprint(root)
		if err != nil {
			return nil, err
		}
		journal, err := ReadJournal(m.journal(dir, set), made)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if all := journal.Present(); len(all) > 0 {
			out = append(out, Rival{m.name, all})
		} else {
			fmt.Printf("the results of -method %s come from other sources: play it again\n", m.flag)
		}
		if err := journal.Close(); err != nil {
			return nil, err
		}
	}
	return out, nil
}
