//go:build linux

// Package defects shows on a real vLLM what internal/catalog/defects.yaml says of its
// metrics: it makes something happen of which it knows what the metrics must show, and
// compares.
package defects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// server is a configuration of vLLM with the events on it.
type server struct {
	story.Server
	events []Event
}

var servers = []server{
	{
		story.Server{
			Name: "small",
			Flags: []string{
				fmt.Sprintf("--block-size=%d", blockSize), fmt.Sprintf("--num-gpu-blocks-override=%d", blocks),
				fmt.Sprintf("--max-model-len=%d", longest), fmt.Sprintf("--max-num-batched-tokens=%d", budget),
				"--enable-server-load-tracking", "--enable-prompt-tokens-details", "--trust-request-chat-template",
				"--enable-lora", "--max-loras=1", "--max-lora-rank=8", "--lora-modules",
			},
			Env:      []string{"VLLM_SERVER_DEV_MODE=1"},
			Adapters: adapters,
		}, events,
	},
	{
		story.Server{
			Name: "several",
			Flags: []string{
				fmt.Sprintf("--block-size=%d", blockSize), fmt.Sprintf("--num-gpu-blocks-override=%d", blocks),
				fmt.Sprintf("--max-model-len=%d", longest), "--data-parallel-size=2", "--api-server-count=2",
				`--speculative-config={"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4}`,
			},
		}, several,
	},
}

// Result is what was found out about a version.
type Result struct {
	Version  string    `json:"version"`
	At       time.Time `json:"at"`
	Verdicts []Verdict `json:"verdicts"`
}

// limit is how long an event may take; a slow release takes some minutes for the longest.
const limit = 4 * time.Minute

// Run starts the servers one after the other, and writes a line for each defect and the file
// defects/VERSION.json. With names only these events, or those of these servers, happen; the
// file keeps what it has of others.
func Run(ctx context.Context, folder, version string, names []string, say io.Writer) error {
	out := filepath.Join(folder, "defects")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(out, version+".json")
	result, err := kept(path)
	if err != nil {
		return err
	}
	result.Version = version
	var failed error
	for _, one := range servers {
		chosen := slices.DeleteFunc(slices.Clone(one.events), func(e Event) bool {
			return len(names) > 0 && !slices.Contains(names, one.Name) && !slices.Contains(names, e.Name)
		})
		if len(chosen) == 0 {
			continue
		}
		log := filepath.Join(out, one.Name+"-"+version+".log")
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		s := &serve.Server{Folder: folder, Version: version, Story: one.Server, Log: log}
		began := time.Now()
		if err := s.Start(ctx); err != nil {
			// What the other servers show is kept.
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(say, "vLLM %s (%s) started in %s\n", version, one.Name, time.Since(began).Round(time.Second))
		result.add(play(ctx, &Target{URL: s.URL()}, version, chosen, say))
		failed = errors.Join(failed, s.Stop(), ctx.Err())
	}
	raw, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(failed, os.WriteFile(path, append(raw, '\n'), 0o644))
}

// kept is what a run before found out.
func kept(path string) (*Result, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &Result{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Result{}
	return r, json.Unmarshal(raw, r)
}

// add replaces the verdicts of defects, and adds those of others.
func (r *Result) add(verdicts []Verdict) {
	r.At = time.Now().UTC().Truncate(time.Second)
	for _, v := range verdicts {
		r.Verdicts = slices.DeleteFunc(r.Verdicts, func(old Verdict) bool { return old.Defect == v.Defect })
		r.Verdicts = append(r.Verdicts, v)
	}
}

// play lets the events happen, and judges each.
func play(ctx context.Context, t *Target, version string, events []Event, say io.Writer) []Verdict {
	var out []Verdict
	for i := range events {
		e := &events[i]
		began := time.Now()
		seen := &Seen{Did: map[string]float64{}}
		err := happen(ctx, t, e, seen)
		fmt.Fprintf(say, "%s: %s (%s)\n", e.Name, e.About, time.Since(began).Round(100*time.Millisecond))
		for _, j := range e.Shows {
			v := Verdict{Defect: j.Defect, Event: e.Name, Verdict: Unknown}
			if err != nil {
				v.Says = err.Error()
			} else {
				v = j.judge(e.Name, version, seen)
			}
			mark := ""
			if v.Contradicts {
				mark = "NOT AS THE PAGE SAYS: "
			}
			fmt.Fprintf(say, "  %-32s %-12s %s%s\n", v.Defect, v.Verdict, mark, v.Says)
			out = append(out, v)
		}
	}
	return out
}

func happen(ctx context.Context, t *Target, e *Event, s *Seen) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.Before, err = t.rest(ctx); err != nil {
		return err
	}
	if err := e.Do(ctx, t, s); err != nil {
		return err
	}
	s.After, err = t.rest(ctx)
	return err
}
