package stages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

const (
	// maxChanges is how many changes are logged one by one in changeInterval: more
	// are a storm that cannot be read line by line. Changes into and out of harm have
	// as many lines of their own, so that a thousand engines that become idle do not
	// hide one that stalls.
	maxChanges     = 100
	changeInterval = time.Minute
)

// changeLog writes what changes into the collector's log.
type changeLog struct {
	logger       *zap.Logger
	relearnAfter time.Duration
	telemetry    *Telemetry
	// emits reports whether a metric is switched on, as far as this processor knows.
	emits func(metric string) bool
	// runbooks and boards are the addresses of the settings.
	runbooks, boards string

	// id is the name of the processor. tell passes changes to the extensions that answer questions.
	id   string
	tell []func([]fleet.Event)

	// mu guards what follows. since is when the interval began. logged counts its lines, of others and of harm,
	// and unlogged the changes without a line, by condition.
	mu       sync.Mutex
	since    time.Time
	logged   [2]int
	unlogged map[string]int
}

// write logs the changes of a server with a key or, without one, of the pools, one line each, and returns what it says
// about them, also about those without a line: first about harm, because a batch has room for so many.
func (l *changeLog) write(ctx context.Context, changes []diagnose.Transition, key string, resource pcommon.Map, now time.Time) []message.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= changeInterval || now.Before(l.since) {
		l.summary()
		l.since, l.logged = now, [2]int{}
	}
	var server []zap.Field
	var said [2][]message.Message // As logged.
	var told []fleet.Event
	for i := range changes {
		t := &changes[i]
		harm := 0
		if max(t.From.Severity, t.To.Severity) >= 2 {
			harm = 1
		}
		m := l.message(t, resource)
		if len(said[harm]) < message.Most && (harm == 1 || !t.Continues) { // What is well goes on without a word.
			said[harm] = append(said[harm], m)
		}
		if !t.News() {
			continue
		}
		if len(l.tell) > 0 {
			told = append(told, l.event(t, &m, key, resource))
		}
		if l.logged[harm] >= maxChanges {
			if l.unlogged == nil {
				l.unlogged = map[string]int{}
			}
			l.unlogged[t.To.Condition.String()]++
			l.telemetry.ProcessorVllmUnloggedChanges.Add(ctx, 1)
			continue
		}
		l.logged[harm]++
		if server == nil && !t.Pool {
			server = ServerFields(resource)
		}
		l.line(t, &m, server)
	}
	if len(told) > 0 {
		for _, tell := range l.tell {
			tell(told)
		}
	}
	return append(said[1], said[0]...)
}

// summary logs in one line what was not logged one by one. It has at most one field
// for each condition.
func (l *changeLog) summary() {
	if len(l.unlogged) == 0 {
		return
	}
	total := 0
	var fields []zap.Field
	for _, condition := range slices.Sorted(maps.Keys(l.unlogged)) {
		total += l.unlogged[condition]
		fields = append(fields, zap.Int("now_"+condition, l.unlogged[condition]))
	}
	l.logger.Warn(fmt.Sprintf("diagnosis: %d more changes within a minute were not logged one by one; vllm.diagnosis.condition and vllm.diagnosis.cause have all of them", total), fields...)
	clear(l.unlogged)
}

// upgraded logs that what is usual is learned again because of another version: one line
// for all engines of a server. It needs no lock.
func (l *changeLog) upgraded(u *diagnose.Upgrade, resource pcommon.Map) {
	l.logger.Info(
		fmt.Sprintf("diagnosis: the version of vLLM changed from %s to %s, which measures some metrics differently; the usual values of their signals are learned again, see %s", u.From, u.To, catalog.DefectsPage),
		append(ServerFields(resource), zap.String("previous_version", u.From), zap.String("version", u.To), zap.Strings("signals", u.Names()), zap.Int("engines", u.Engines))...,
	)
}

// logLevels are the levels by severity. The level error is for errors of the collector
// itself. A server that fails is a warning, and its severity says that it is a page.
var logLevels = [...]zapcore.Level{zap.InfoLevel, zap.InfoLevel, zap.WarnLevel, zap.WarnLevel}

// withoutStacks returns a logger whose lines have no stack traces: a diagnosis is about a
// server, and the stack of this processor says nothing about it. The collector adds
// stacks to errors, and with development: true to warnings.
func withoutStacks(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.AddStacktrace(zap.LevelEnablerFunc(func(zapcore.Level) bool { return false })))
}

// message is what people read about a change of a server with a resource, or of a pool.
func (l *changeLog) message(t *diagnose.Transition, resource pcommon.Map) message.Message {
	reason := ""
	if t.Relearned {
		reason = fmt.Sprintf("The engine has been slower than usual for %s without getting worse; this is taken as usual from now on.", Spell(l.relearnAfter))
	}
	m := message.Message{Attributes: pcommon.NewMap(), Since: t.Since, Words: t.Words(reason, l.emits), Signals: t.Evidence(), Board: l.board(t, resource)}
	if t.To.Severity == 0 {
		m.Next = nil
	}
	if page, has := strings.CutPrefix(m.Runbook, catalog.RunbookBase); has {
		m.Runbook = strings.TrimSuffix(l.runbooks, "/") + "/" + page
	}
	for _, a := range t.Attributes {
		m.Attributes.PutStr(a.Name, a.Value)
	}
	return m
}

// line logs a change: the condition now, its evidence, what it is compared with, and
// what to do next.
func (l *changeLog) line(t *diagnose.Transition, words *message.Message, server []zap.Field) {
	var fields []zap.Field
	if len(words.Signals) > 0 {
		fields = append(fields, zap.Strings("evidence", wording.Lines(words.Signals)))
	}
	fields = append(fields, server...)
	for _, a := range t.Attributes {
		fields = append(fields, zap.String(Cut(a.Name), Cut(a.Value)))
	}
	fields = append(fields,
		zap.Stringer("condition", t.To.Condition),
		zap.String("previous_condition", t.From.Condition.String()),
		zap.Int("severity", t.To.Severity),
		zap.Time("at", time.Unix(0, t.At).UTC()),
		zap.Time("since", time.Unix(0, t.Since).UTC()),
	)
	if words.Detail != "" {
		fields = append(fields, zap.String("detail", words.Detail))
	}
	if t.To.Explained {
		fields = append(fields, zap.Stringer("cause", t.To.Primary))
		if words.NotSeparable != "" {
			fields = append(fields, zap.String("not_separable", words.NotSeparable))
		}
	}
	if t.Failure != "" {
		fields = append(fields, zap.String("scrape_failure", Cut(t.Failure)))
	}
	fields = append(fields, causeNames("contributing", &t.To.Contributing, &t.Shares), causeNames("notices", &t.To.Notices, &t.Shares))
	if t.To.Harms() {
		fields = append(fields, zap.Stringer("reference", t.To.Reference))
		if t.To.Objective != "" {
			fields = append(fields, zap.String("objective", t.To.Objective), zap.Float64("missed_share", t.Missed))
		}
	}
	if len(words.Next) > 0 {
		fields = append(fields, zap.Strings("next", words.Next))
	}
	fields = append(fields, zap.String("runbook", words.Runbook))
	if words.Board != "" {
		fields = append(fields, zap.String("board", words.Board))
	}
	level := logLevels[t.To.Severity]
	said := "diagnosis: "
	if t.Refined || t.Continues {
		// It is as bad as before.
		level = zap.InfoLevel
	}
	if t.Continues {
		said += "as before the collector restarted: "
	}
	l.logger.Log(level, said+words.Sentence, fields...)
}

// causeNames is a log field of causes other than the primary one, the largest share of the
// harm first.
func causeNames(key string, which *[diagnose.NumCauses]bool, shares *diagnose.Shares) zap.Field {
	var causes []diagnose.Cause
	for c, is := range which {
		if is {
			causes = append(causes, diagnose.Cause(c))
		}
	}
	if causes == nil {
		return zap.Skip()
	}
	slices.SortStableFunc(causes, func(a, b diagnose.Cause) int { return cmp.Compare(shares[b], shares[a]) })
	return zap.Stringers(key, causes)
}
