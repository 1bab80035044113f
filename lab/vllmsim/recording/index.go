// Package recording keeps bodies of /metrics on disk: it records them from a
// server and plays them back.
//
// A recording is a folder with one file per body and an index.json with the time and the
// content type of each. Any folder of text files can be played back;
// the index only adds status codes and content types.
package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// IndexName is the name of the index within a recording.
const IndexName = "index.json"

// Index describes a recording.
type Index struct {
	// URL is what was recorded, without credentials.
	URL string `json:"url"`
	// VLLMVersion is the answer of the server's /version, if it had one.
	VLLMVersion string `json:"vllm_version,omitempty"`
	// Scrapes are all attempts in order.
	Scrapes []Scrape `json:"scrapes"`
}

// Scrape is one attempt.
type Scrape struct {
	// Time is when the request was sent.
	Time time.Time `json:"time"`
	// File is the body's file; empty where Error is set.
	File        string `json:"file,omitempty"`
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	// Seconds is how long the answer took.
	Seconds float64 `json:"seconds"`
	// Error is the reason why there is no body.
	Error string `json:"error,omitempty"`
}

// ReadIndex reads the index of a folder. A folder without one gives an empty
// index.
func ReadIndex(dir string) (Index, error) {
	var index Index
	raw, err := os.ReadFile(filepath.Join(dir, IndexName))
	if errors.Is(err, fs.ErrNotExist) {
		return index, nil
	}
	if err != nil {
		return index, err
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return index, fmt.Errorf("%s: %w", filepath.Join(dir, IndexName), err)
	}
	return index, nil
}

// write replaces the index in one step, so that an interrupted recording has a
// whole one.
func (i Index) write(dir string) error {
	raw, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, IndexName+".new")
	if err := os.WriteFile(temporary, append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, IndexName))
}
