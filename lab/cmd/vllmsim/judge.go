package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// mostJudged bounds how many files are played at once.
const mostJudged = 64

const judgeDescription = `Plays scenario files in simulated time, and prints for each minute and server what was true and
what the processor reported, as JSON, a line each; then a summary. Notes are on the standard
error. The status is 1 if a file could not be read or played; the others are played anyway.
lab/docs/judging.md has the form of the lines, lab/docs/scenarios.md that of the files.`

// judged is the output of one file that was played, or the reason why there is none.
type judged struct {
	output []byte
	notes  []string
	err    error
}

// judgeFiles compares the diagnosis with the truth of scenario files.
func judgeFiles(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("judge", "FILE…", judgeDescription, stderr)
	parallel := flags.Int("j", 1, "files that are played at once")
	files, err := parse(flags, args)
	switch {
	case err != nil:
		return err
	case len(files) == 0:
		return usagef("want scenario files, such as examples/scenarios/bandwidth-loss.yaml")
	case *parallel < 1 || *parallel > mostJudged:
		return usagef("-j %d is not between 1 and %d", *parallel, mostJudged)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Each file has a place for its result, so that the output is in the order of the files. A
	// file begins when one of those before it has been written: results do not pile up.
	results := make([]chan judged, len(files))
	for i := range results {
		results[i] = make(chan judged, 1)
	}
	begin := func(i int) {
		if i < len(files) {
			go func() { results[i] <- judgeFile(ctx, files[i]) }()
		}
	}
	for i := range *parallel {
		begin(i)
	}
	failed := 0
	for i := range files {
		one := <-results[i]
		for _, note := range one.notes {
			fmt.Fprintf(stderr, "vllmsim judge: %s: %s\n", files[i], note)
		}
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case one.err != nil:
			failed++
			fmt.Fprintf(stderr, "vllmsim judge: %v\n", one.err)
		default:
			if _, err := stdout.Write(one.output); err != nil {
				return fmt.Errorf("cannot write the result: %w", err)
			}
		}
		begin(i + *parallel)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files could not be read or played", failed, len(files))
	}
	return nil
}

// judgeFile plays one file. Errors name it.
func judgeFile(ctx context.Context, path string) judged {
	sc, err := scenario.Load(path)
	if err != nil {
		return judged{err: err}
	}
	story, err := judge.FromScenario(&sc)
	if err != nil {
		return judged{err: err}
	}
	played, err := judge.Play(ctx, story)
	if err != nil {
		return judged{err: fmt.Errorf("%s: %w", path, err)}
	}
	output, err := encode(sc.Name, played)
	if err != nil {
		return judged{err: fmt.Errorf("%s: cannot write the result: %w", path, err)}
	}
	return judged{output: output, notes: slices.Concat(sc.Notes, played.Notes)}
}

// encode returns the lines of a file and its summary.
func encode(name string, played *judge.Played) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for i := range played.Lines {
		if err := encoder.Encode(&played.Lines[i]); err != nil {
			return nil, err
		}
	}
	err := encoder.Encode(struct {
		Scenario string        `json:"scenario"`
		Summary  judge.Summary `json:"summary"`
	}{name, played.Summary()})
	return out.Bytes(), err
}
