package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/realruns"
)

// replayRecording sends recordings of real servers through the processor.
func replayRecording(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("replay-recording", "[FOLDER…]",
		"Sends recordings of real vLLM servers through the processor, in the time of the recording, and prints what it\n"+
			"reports. A FOLDER has NAME.csv or NAME.csv.gz as an index.csv names them, or NAME-series.csv without an index,\n"+
			"and the requests of the clients in NAME-requests.csv. Without one, the recordings below --shared are read; where\n"+
			"there are none, nothing is replayed, and the status is 0.", stderr)
	shared := flags.String("shared", "../shared", "folder of shared data, with profiles/series and profiles/runs")
	interval := flags.Duration("interval", 10*time.Second, "time between two scrapes")
	offset := flags.Duration("offset", 0, "time of the first scrape")
	window := flags.Duration("window", time.Minute, "window of the processor")
	latencies := flags.String("latencies", string(realruns.Clients), "reconstruct latencies from clients, or from gauges only")
	version := flags.String("vllm", "", "version of vLLM of recordings that do not name it")
	only := flags.String("run", "", "name of the only recording to replay")
	asJSON := flags.Bool("json", false, "print one line of JSON for each recording")
	page := flags.String("page", "", "write the table into this page, between the marks of the part \"recordings\"")
	folders, err := parse(flags, args)
	if err != nil {
		return err
	}
	if *page != "" && *only != "" {
		return usagef("-page writes the table of all recordings, so that -run cannot choose one")
	}
	settings := realruns.Settings{
		Interval: *interval, Offset: *offset, Source: realruns.Source(*latencies), Processor: map[string]any{"window": window.String()},
	}
	if err := settings.Validate(); err != nil {
		return usageError{err}
	}
	explicit := len(folders) > 0
	if !explicit {
		folders = realruns.Folders(*shared)
	}
	var chosen []*realruns.Recording
	read := 0
	for _, folder := range folders {
		of := *version
		if of == "" && !explicit {
			of = realruns.SharedVersion
		}
		recordings, err := realruns.ReadFolder(folder, of)
		if errors.Is(err, realruns.ErrAbsent) && !explicit {
			fmt.Fprintf(stderr, "vllmsim replay-recording: skipped, %s has no recordings; --shared names another folder of shared data\n", folder)
			continue
		}
		if err != nil {
			return err
		}
		read += len(recordings)
		for _, r := range recordings {
			if *only != "" && r.Name != *only {
				continue
			}
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 && read > 0 {
		return fmt.Errorf("no recording is named %q in %s", *only, strings.Join(folders, ", "))
	}
	if *page != "" {
		return writeRecordings(ctx, *page, chosen, settings)
	}
	for _, r := range chosen {
		result, err := realruns.Replay(ctx, r, settings)
		if err != nil {
			return err
		}
		write := result.WriteText
		if *asJSON {
			write = result.WriteJSON
		}
		if err := write(stdout); err != nil {
			return err
		}
	}
	return nil
}

// writeRecordings replaces the part of the page about accuracy. Without recordings the part
// stays as it is.
func writeRecordings(ctx context.Context, path string, recordings []*realruns.Recording, settings realruns.Settings) error {
	if len(recordings) == 0 {
		return nil
	}
	part, err := realruns.Page(ctx, recordings, settings)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err = pageparts.Replace(page, map[string]string{"recordings": part})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o644)
}
