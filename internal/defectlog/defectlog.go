// Package defectlog logs which known defects of vLLM's own metrics matter for servers. The
// receiver uses it, and the processor for metrics that are not from the receiver.
package defectlog

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

const (
	// maxSeen is how many servers are remembered as logged, twice: see recently. It
	// is about 40 bytes for each. A server that was forgotten is logged again when it
	// restarts.
	maxSeen = 10000
	// maxLines is how many lines wait at a time for further servers, of less than 10 kB each.
	maxLines = 50
	// maxLinesAnHour is how many lines are written within an hour. Further servers are only
	// counted: clients of a processor can send any number of servers and versions.
	maxLinesAnHour = 100
	// MaxVersions is for how many versions of one server the defects are logged at most. A
	// server that reports another version at each restart does not fill the log.
	MaxVersions = 5
	// maxTargets is how many servers a line names at most, and maxTarget how long a name
	// is at most, in bytes.
	maxTargets = 20
	maxTarget  = 300
	// maxVersion is how long a version in a line is at most, in bytes.
	maxVersion = 40
)

// Log logs once for each target and version which known defects of vLLM's metrics
// matter for it. Targets that are found in the same interval and have the same version and
// defects share a line: a thousand replicas are one line.
type Log struct {
	logger *zap.Logger
	// wait is how long a line waits for further targets.
	wait time.Duration

	mu      sync.Mutex
	seen    recently
	waiting []*line
	// hour is when the hour of the budget began, and lines is how many it has had.
	hour  time.Time
	lines int
	// counted is how many servers were not named since the last line.
	counted int
}

// line is a line that waits for further targets.
type line struct {
	since time.Time
	// version is printable. released is false where it is not a version that vLLM can have.
	version        string
	released       bool
	sure, possible []catalog.DefectID
	// targets are the first ones, and count is the number of all.
	targets []string
	count   int
}

// New returns a log whose lines wait for further servers.
func New(logger *zap.Logger, wait time.Duration) *Log {
	return &Log{logger: logger, wait: wait, seen: recently{seed: maphash.MakeSeed()}}
}

// Logged reports whether the target with this version was logged before.
func (l *Log) Logged(target, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.has(target, version)
}

// Add adds a server to the line of its version and defects, and reports whether it did. A
// server without defects is not logged.
func (l *Log) Add(at time.Time, target string, server *catalog.Server) bool {
	sure, possible := catalog.Matters(server)
	if len(sure)+len(possible) == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.has(target, server.Version) {
		return false
	}
	l.seen.add(target, server.Version)
	version, released := printable(server.Version, maxVersion), server.Released()
	i := slices.IndexFunc(l.waiting, func(line *line) bool {
		return line.version == version && line.released == released && slices.Equal(line.sure, sure) && slices.Equal(line.possible, possible)
	})
	if i < 0 {
		if len(l.waiting) >= maxLines {
			l.write(at)
		}
		i = len(l.waiting)
		l.waiting = append(l.waiting, &line{since: at, version: version, released: released, sure: sure, possible: possible})
	}
	line := l.waiting[i]
	line.count++
	if len(line.targets) < maxTargets {
		line.targets = append(line.targets, printable(target, maxTarget))
	}
	return true
}

// Flush writes the lines that have waited long enough. Each scrape calls it.
func (l *Log) Flush(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 && at.Sub(l.waiting[0].since) >= l.wait {
		l.write(at)
	}
}

// Close writes all lines.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(l.hour)
}

// write writes all lines, as far as the budget of the hour allows. mu is held.
func (l *Log) write(at time.Time) {
	if since := at.Sub(l.hour); since >= time.Hour || since < 0 {
		l.hour, l.lines = at, 0
	}
	for _, line := range l.waiting {
		if l.lines >= maxLinesAnHour {
			if l.lines == maxLinesAnHour {
				l.lines++
				l.logger.Info(fmt.Sprintf("The limit of %d lines an hour about known defects of vLLM servers is reached: until %s, further servers are counted but not logged; see %s",
					maxLinesAnHour, l.hour.Add(time.Hour).UTC().Format(time.RFC3339), catalog.DefectsPage))
			}
			l.counted += line.count
			continue
		}
		l.lines++
		message := line.message()
		if l.counted > 0 {
			message += fmt.Sprintf(" (%d servers before were only counted)", l.counted)
			l.counted = 0
		}
		l.logger.Info(message, line.fields(l.logger.Core().Enabled(zap.DebugLevel))...)
	}
	l.waiting = nil
}

// fields are the fields of the line. The names of the defects, often more than twenty, are for those who debug.
func (line *line) fields(debug bool) []zap.Field {
	fields := []zap.Field{zap.Strings("targets", line.targets)}
	if more := line.count - len(line.targets); more > 0 {
		fields = append(fields, zap.Int("more", more))
	}
	fields = append(fields, zap.String("version", line.version))
	if debug {
		fields = append(fields, zap.Strings("defects", texts(line.sure)))
	}
	if debug && len(line.possible) > 0 {
		fields = append(fields, zap.Strings("possible_defects", texts(line.possible)))
	}
	return fields
}

// message is the sentence of the line.
func (line *line) message() string {
	subject := "vLLM " + line.version + " has "
	switch {
	case line.version == "":
		subject = "vLLM of an unknown version can have "
	case !line.released:
		why := "not a release number"
		if _, number := catalog.ParseRelease(line.version); number {
			why = "older than metrics that it sends"
		}
		subject = "vLLM with the version " + line.version + ", which is " + why + ", can have "
	}
	servers := "this server sends"
	if line.count > 1 {
		servers = fmt.Sprintf("these %d servers send", line.count)
	}
	text := subject + counted(len(line.sure)) + " in metrics that " + servers
	switch sure, possible := len(line.sure), len(line.possible); {
	case sure == 0:
		text = subject + counted(possible) + " in metrics that " + servers + ", but only with some models, requests or deployments"
	case possible > 0:
		text += fmt.Sprintf(", and %d more with some models, requests or deployments", possible)
	}
	return text + "; see " + catalog.DefectsPage
}

// printable is a text from another machine as one line of a limited size.
func printable(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}

func counted(defects int) string {
	if defects == 1 {
		return "1 known defect"
	}
	return fmt.Sprintf("%d known defects", defects)
}

func texts(ids []catalog.DefectID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// recently is a set of servers that keeps at least the newest maxSeen and never
// more than twice as many.
type recently struct {
	seed          maphash.Seed
	newer, former map[uint64]struct{}
}

func (r *recently) key(target, version string) uint64 {
	return maphash.Comparable(r.seed, [2]string{target, version})
}

func (r *recently) has(target, version string) bool {
	key := r.key(target, version)
	_, newer := r.newer[key]
	_, former := r.former[key]
	return newer || former
}

func (r *recently) add(target, version string) {
	if r.newer == nil || len(r.newer) >= maxSeen {
		r.newer, r.former = map[uint64]struct{}{}, r.newer
	}
	r.newer[r.key(target, version)] = struct{}{}
}
