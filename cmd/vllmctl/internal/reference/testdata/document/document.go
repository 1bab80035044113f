// Package document is read by a test, and not compiled into anything.
package document

import "time"

// Report is what a command found.
type Report struct {
	// Version is that of the format.
	Version int `json:"version"`
	// Targets are the servers,
	// one each.
	Targets []*Target `json:"targets"`
	// Counts has numbers by name.
	Counts map[string]float64 `json:"counts,omitempty"`
	Began  time.Time          `json:"began"` // Began is when it began.
	hidden int
	// Skipped is not written.
	Skipped string `json:"-"`
}

// Target is one server.
type Target struct {
	// Up reports whether it answers.
	Up    bool  `json:"up,omitzero"`
	Level level `json:"level"` // Level is a word.
	// Inner is another target.
	Inner *Target `json:"inner"`
}

type level string
