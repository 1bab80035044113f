// Package run has what is kept of a story that was played: what the clients saw, and what the
// server showed in that time.
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
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
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
	// Live are the records of the built collector that ran in that time, scraping every 5 s.
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

// PhaseAt is the name of the phase at a time, in seconds.
func (r *Run) PhaseAt(at float64) string {
	for i, s := range r.Spans {
		if at < s.To {
			return r.Play.Phases[i].Name
		}
	}
	return "the end"
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
	about, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	var requests bytes.Buffer
	lines := json.NewEncoder(&requests)
	for i := range r.Sent {
		if err := lines.Encode(&r.Sent[i]); err != nil {
			return err
		}
	}
	if err := errors.Join(add(head, about), add(sent, requests.Bytes())); err != nil {
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
	r := &Run{}
	if err := r.read(bufio.NewReader(file)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (r *Run) read(from io.Reader) error {
	plain, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return err
	}
	defer plain.Close()
	archive, parts := tar.NewReader(plain), map[string]bool{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := r.take(header.Name, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
		parts[header.Name] = true
	}
	// An archive can end early, as an empty file does; and only at its very end is a checksum.
	for _, name := range []string{head, sent} {
		if !parts[name] {
			return fmt.Errorf("it has no %s", name)
		}
	}
	if _, err := io.Copy(io.Discard, plain); err != nil {
		return err
	}
	if len(r.Spans) > len(r.Play.Phases) {
		return fmt.Errorf("%d phases were played of %d", len(r.Spans), len(r.Play.Phases))
	}
	return nil
}

// The names of the parts of a run, besides those of the scrapes.
const head, sent = "run.json", "sent.jsonl"

func (r *Run) take(name string, from io.Reader) error {
	switch name {
	case head:
		return json.NewDecoder(from).Decode(r)
	case sent:
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
	number, is := strings.CutSuffix(name, ".txt")
	n, err := strconv.ParseUint(number, 10, 31)
	if !is || err != nil {
		return errors.New("no part of a run")
	}
	if n >= uint64(len(r.Scrapes)) {
		return fmt.Errorf("there are %d scrapes", len(r.Scrapes))
	}
	r.Scrapes[n].Body, err = io.ReadAll(from)
	return err
}
