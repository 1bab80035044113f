package vllmreceiver

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"
	"weak"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

const (
	// maxServersSeen is how many servers are remembered as logged, twice: see recently. It
	// is about 40 bytes for each. A server that was forgotten is logged again when it
	// restarts.
	maxServersSeen = 10000
	// maxDefectLines is how many lines wait at a time for further servers.
	maxDefectLines = 50
	// maxDefectVersions is for how many versions of one target the defects are logged at
	// most. A server that reports another version at each restart does not fill the log.
	maxDefectVersions = 5
)

// judgedServer is what the known defects of a target were last looked up for.
type judgedServer struct {
	plan    weak.Pointer[normalize.Plan]
	version string
	// lines is for how many versions they were logged.
	lines int
}

// defectLog logs once for each target and version which known defects of vLLM's metrics
// matter for it. Targets that are found in the same interval and have the same version and
// defects share a line: a thousand replicas are one line.
type defectLog struct {
	logger *zap.Logger
	// wait is how long a line waits for further targets.
	wait time.Duration

	mu      sync.Mutex
	seen    recently
	waiting []*defectLine
}

// defectLine is a line that waits for further targets.
type defectLine struct {
	since          time.Time
	version        string
	sure, possible []catalog.DefectID
	// targets are the first ones, and count is the number of all.
	targets []string
	count   int
}

func newDefectLog(logger *zap.Logger, wait time.Duration) *defectLog {
	return &defectLog{logger: logger, wait: wait, seen: recently{seed: maphash.MakeSeed()}}
}

// logged reports whether the target with this version was logged before.
func (l *defectLog) logged(target, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.has(target, version)
}

// add adds a server to the line of its version and defects, and reports whether it did. A
// server without defects is not logged.
func (l *defectLog) add(at time.Time, target string, server *catalog.Server) bool {
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
	i := slices.IndexFunc(l.waiting, func(line *defectLine) bool {
		return line.version == server.Version && slices.Equal(line.sure, sure) && slices.Equal(line.possible, possible)
	})
	if i < 0 {
		if len(l.waiting) >= maxDefectLines {
			l.write()
		}
		i = len(l.waiting)
		l.waiting = append(l.waiting, &defectLine{since: at, version: server.Version, sure: sure, possible: possible})
	}
	line := l.waiting[i]
	if line.count++; len(line.targets) < maxNamesPerLine {
		line.targets = append(line.targets, target)
	}
	return true
}

// flush writes the lines that have waited long enough. Each scrape calls it.
func (l *defectLog) flush(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 && at.Sub(l.waiting[0].since) >= l.wait {
		l.write()
	}
}

// close writes all lines.
func (l *defectLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write()
}

// write writes all lines. mu is held.
func (l *defectLog) write() {
	for _, line := range l.waiting {
		fields := []zap.Field{zap.Strings("targets", line.targets)}
		if more := line.count - len(line.targets); more > 0 {
			fields = append(fields, zap.Int("more", more))
		}
		fields = append(fields, zap.String("version", remote.Text(line.version)), zap.Strings("defects", texts(line.sure)))
		if len(line.possible) > 0 {
			fields = append(fields, zap.Strings("possible_defects", texts(line.possible)))
		}
		l.logger.Info(line.message(), fields...)
	}
	l.waiting = nil
}

// message is the sentence of the line.
func (line *defectLine) message() string {
	subject := "vLLM " + remote.Text(line.version) + " has "
	if line.version == "" {
		subject = "vLLM of an unknown version can have "
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

// recently is a set of servers that keeps at least the newest maxServersSeen and never
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
	if r.newer == nil || len(r.newer) >= maxServersSeen {
		r.newer, r.former = map[uint64]struct{}{}, r.newer
	}
	r.newer[r.key(target, version)] = struct{}{}
}
