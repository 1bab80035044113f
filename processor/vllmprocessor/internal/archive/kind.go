// Package archive keeps the states that outlive a server's silence or a restart of the
// collector: the trackers of objectives and the baselines of the diagnosis.
//
//	encode.go   pure: many states in one value of a storage
//	archive.go  the states of silent servers, bounded and shared fairly
//	storage.go  reads and writes the storage
//	shared.go   one archive for all pipelines of a component
//	status.go   the component status while the storage fails
//
// The content of a state belongs to the stage that it comes from.
package archive

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
)

// Kind describes one kind of states.
type Kind struct {
	// Storage is the name of their part of the component's storage. Key is where that
	// part has them.
	Storage, Key string
	// Interval is the time between two saves: how much a crash can lose.
	Interval time.Duration
	// Age is how old the state of a silent server may be.
	Age time.Duration
	// Newest returns the time in Unix nanoseconds up to which a state knows, and
	// whether the state can be read.
	Newest func(state []byte) (at int64, sound bool)
	// Thin returns a smaller state for a silent server; nil where states cannot become
	// smaller. now is in Unix nanoseconds.
	Thin func(state []byte, now int64) []byte

	// Unread and Unsaved are logged where the storage fails. Damaged is logged where a
	// stored state cannot be read, with the number of states that can; Continued
	// otherwise.
	Unread, Unsaved, Damaged, Continued string
}

// Settings are what an instance of a processor gives its archives.
type Settings struct {
	Shared *Shared
	// ID is the name of the processor, Extension that of its storage extension; nil without one.
	ID        component.ID
	Extension *component.ID
	Status    *Status
	// Now is the clock, and Every calls a function at an interval of it.
	Now    func() time.Time
	Every  func(d time.Duration, f func()) (stop func())
	Logger *zap.Logger
	// Failed counts a write that failed, Dropped states for which there was no room.
	Failed  func()
	Dropped func(n int)
}
