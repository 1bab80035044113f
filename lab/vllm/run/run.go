// Package run has what is kept of a story that was played: what the clients saw, and what the
// server showed meanwhile.
package run

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/otelcol-vllm/otelcol-vllm/internal/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Run is a story that was played once.
type Run struct {
	Play story.Play `json:"play"`
	// Version is that of vLLM, Simulated whether the simulator played.
	Version   string `json:"version"`
	Simulated bool   `json:"simulated,omitempty"`
	// Capacity is how many requests of the book's lengths the server answers in a second.
	Capacity float64   `json:"capacity"`
	Seed     uint64    `json:"seed"`
	Began    time.Time `json:"began"`
	// Spans are the times of the phases, in seconds since it began.
	Spans []Span `json:"spans"`
	// Sent are the requests, Scrapes what the server showed.
	Sent    []judge.Sent `json:"-"`
	Scrapes []Scrape     `json:"scrapes"`
	// Live are the records of the built collector that ran meanwhile, scraping every 5 s.
	Live []Record `json:"live,omitempty"`
}

// Span is when a phase was.
type Span struct{ From, To float64 }

// Scrape is one look at a server.
type Scrape struct {
	// At is when the request was sent, in seconds since the beginning.
	At float64 `json:"at"`
	// Status is that of /metrics; 0 without an answer.
	Status int `json:"status"`
	// Failure is why there was no answer, as the receiver names it: refused, timeout or reset.
	Failure string `json:"failure,omitempty"`
	Body    []byte `json:"-"`
	// Load is the answer of /load, and Health the status of /health; empty and 0 without one.
	Load   string `json:"load,omitempty"`
	Health int    `json:"health,omitempty"`
}

// End is when the run ended, in seconds.
func (r *Run) End() float64 {
	if len(r.Spans) == 0 {
		return 0
	}
	return r.Spans[len(r.Spans)-1].To
}

// Usual is what clients waited in the steady phase.
func (r *Run) Usual() judge.Usual { return judge.UsualOf(r.Sent, 0) }

// Write writes a run into a file.
func (r *Run) Write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// Bodies differ little from one to the next: a window that holds many of them makes the
	// file a tenth as large.
	compressor, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(64<<20))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, compressor.Close()) }()
	archive := tar.NewWriter(compressor)
	defer func() { err = errors.Join(err, archive.Close()) }()
	add := func(name string, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	head, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	var sent bytes.Buffer
	lines := json.NewEncoder(&sent)
	for i := range r.Sent {
		if err := lines.Encode(&r.Sent[i]); err != nil {
			return err
		}
	}
	if err := errors.Join(add("run.json", head), add("sent.jsonl", sent.Bytes())); err != nil {
		return err
	}
	for i := range r.Scrapes {
		if len(r.Scrapes[i].Body) > 0 {
			if err := add(fmt.Sprintf("%05d.txt", i), r.Scrapes[i].Body); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read reads a run from a file that Write wrote.
func Read(path string) (*Run, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plain, err := zstd.NewReader(bufio.NewReader(file), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	archive, r := tar.NewReader(plain), &Run{}
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := r.take(head.Name, archive); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, head.Name, err)
		}
	}
}

func (r *Run) take(name string, from io.Reader) error {
	switch name {
	case "run.json":
		return json.NewDecoder(from).Decode(r)
	case "sent.jsonl":
		for lines := json.NewDecoder(from); ; {
			var s judge.Sent
			if err := lines.Decode(&s); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			r.Sent = append(r.Sent, s)
		}
	}
	var n int
	if _, err := fmt.Sscanf(strings.TrimLeft(name, "0"), "%d.txt", &n); err != nil && name != "00000.txt" {
		return errors.New("no part of a run")
	}
	if n >= len(r.Scrapes) {
		return fmt.Errorf("there are %d scrapes", len(r.Scrapes))
	}
	var err error
	r.Scrapes[n].Body, err = io.ReadAll(from)
	return err
}
