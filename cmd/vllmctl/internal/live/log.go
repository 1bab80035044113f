package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The bounds of the log. Together they are less than a megabyte.
const (
	maxLines    = 500
	maxLineText = 1500
)

// Line is a line of the log of the components.
type Line struct {
	At    time.Time
	Level zapcore.Level
	// Message is printable and has at most maxLineText bytes.
	Message string
	// fields are as the component gave them, for this package only: they are not bounded.
	fields map[string]any
}

// Log is where the components log to: a ring with the newest lines. It also passes every line
// on, with its fields and those of the level debug, because they say why a scrape failed.
type Log struct {
	with   []zapcore.Field
	shared *ring
}

type ring struct {
	mu    sync.Mutex
	to    func(*Line)
	lines []Line
	next  int
}

var _ zapcore.Core = (*Log)(nil)

// NewLog returns an empty log.
func NewLog() *Log { return &Log{shared: &ring{to: func(*Line) {}}} }

// Logger writes to the log.
func (l *Log) Logger() *zap.Logger { return zap.New(l) }

// pass passes each further line to a function, which may be called by several goroutines.
func (l *Log) pass(to func(*Line)) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.shared.to = to
}

// Enabled is true: the lines about a target that still fails have the level debug.
func (*Log) Enabled(zapcore.Level) bool { return true }

// With returns a log that adds fields to each line.
func (l *Log) With(fields []zapcore.Field) zapcore.Core {
	return &Log{with: slices.Concat(l.with, fields), shared: l.shared}
}

// Check takes every line.
func (l *Log) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, l)
}

// Write takes a line.
func (l *Log) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range l.with {
		field.AddTo(encoder)
	}
	for _, field := range fields {
		field.AddTo(encoder)
	}
	line := Line{At: entry.Time, Level: entry.Level, fields: encoder.Fields, Message: entry.Message}
	l.shared.mu.Lock()
	to := l.shared.to
	l.shared.mu.Unlock()
	to(&line)
	if entry.Level < zapcore.InfoLevel {
		return nil
	}
	line.Message, line.fields = printable(entry.Message+listed(encoder.Fields), maxLineText), nil
	l.shared.add(line)
	return nil
}

// Sync does nothing.
func (*Log) Sync() error { return nil }

// notListed are the fields that the page of an engine has, or that are the same in all lines.
var notListed = map[string]bool{
	"at": true, "next": true, "runbook": true, "otelcol.component.id": true, "otelcol.component.kind": true, "otelcol.signal": true,
}

// listed are fields as text.
func listed(fields map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if notListed[name] {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%v", name, fields[name]))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (r *ring) add(line Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < maxLines {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.next] = line
	r.next = (r.next + 1) % maxLines
}

// Lines returns the lines, the oldest first.
func (l *Log) Lines() []Line {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	return slices.Concat(l.shared.lines[l.shared.next:], l.shared.lines[:l.shared.next])
}
