package vllmprocessor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
)

const (
	// maxChanges is how many changes are logged one by one in changeInterval: more
	// are a storm that nobody reads line by line. Changes into and out of harm have
	// as many lines for themselves, so that a thousand engines that become idle hide
	// none that stalls.
	maxChanges     = 100
	changeInterval = time.Minute
)

// changeLog writes what changes into the collector's log.
type changeLog struct {
	logger       *zap.Logger
	relearnAfter time.Duration
	telemetry    *telemetry
	// on reports whether a metric is switched on, as far as this processor knows.
	on func(metric string) bool

	// since is when the interval began. In it logged lines were written, of harm
	// and of others, and unlogged counts those that were not, by condition.
	since    time.Time
	logged   [2]int
	unlogged map[string]int
}

// tell logs the changes of a resource, one line each.
func (l *changeLog) tell(ctx context.Context, changes []diagnose.Transition, resource pcommon.Map, now time.Time) {
	if now.Sub(l.since) >= changeInterval || now.Before(l.since) {
		l.summary()
		l.since, l.logged = now, [2]int{}
	}
	var server []zap.Field
	for i := range changes {
		t := &changes[i]
		if !t.News() {
			continue
		}
		harm := 0
		if max(t.From.Severity, t.To.Severity) >= 2 {
			harm = 1
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
		if server == nil {
			server = serverFields(resource)
		}
		l.line(t, server)
	}
}

// summary says in one line what was not logged one by one. There are as many
// fields as conditions at most.
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
	l.logger.Warn(fmt.Sprintf("diagnosis: %d more changes came within a minute than are logged one by one; vllm.diagnosis.condition and vllm.diagnosis.cause have them all", total), fields...)
	clear(l.unlogged)
}

// logLevels are those of the severities. An error is one of the collector itself: a
// server that fails is a warning, and its severity says that it is a page.
var logLevels = [...]zapcore.Level{zap.InfoLevel, zap.InfoLevel, zap.WarnLevel, zap.WarnLevel}

// withoutStacks returns a logger whose lines have no stack traces: a diagnosis is about a
// server, and the stack of this processor says nothing about it. The collector adds
// stacks to errors, and with development: true to warnings.
func withoutStacks(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.AddStacktrace(zap.LevelEnablerFunc(func(zapcore.Level) bool { return false })))
}

// line tells a change: what is now, by what it is seen, what it is compared with,
// and what to do next.
func (l *changeLog) line(t *diagnose.Transition, server []zap.Field) {
	reason := ""
	if t.Relearned {
		reason = fmt.Sprintf("The engine has been slower than usual for %s without getting worse; this is taken as usual from now on.", spell(l.relearnAfter))
	}
	words := t.Words(reason, l.on)
	var fields []zap.Field
	if evidence := t.Evidence(); len(evidence) > 0 {
		fields = append(fields, zap.Strings("evidence", evidence))
	}
	fields = append(fields, server...)
	for _, a := range t.Attributes {
		fields = append(fields, zap.String(cut(a.Name), cut(a.Value)))
	}
	fields = append(fields,
		zap.Stringer("condition", t.To.Condition),
		zap.String("previous_condition", t.From.Condition.String()),
		zap.Int("severity", t.To.Severity),
		zap.Time("at", time.Unix(0, t.At).UTC()),
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
		fields = append(fields, zap.String("scrape_failure", t.Failure))
	}
	fields = append(fields, causeNames("contributing", &t.To.Contributing), causeNames("notices", &t.To.Notices))
	if t.To.Severity >= 2 && (t.To.Condition == diagnose.Degraded || t.To.Condition == diagnose.Failing) {
		fields = append(fields, zap.Stringer("reference", t.To.Reference))
		if t.To.Objective != "" {
			fields = append(fields, zap.String("objective", t.To.Objective), zap.Float64("missed_share", t.Missed))
		}
	}
	if t.To.Severity > 0 {
		fields = append(fields, zap.Strings("next", words.Next))
	}
	fields = append(fields, zap.String("runbook", words.Runbook))
	l.logger.Log(logLevels[t.To.Severity], "diagnosis: "+words.Sentence, fields...)
}

// serverFields say which server a line is about, in the words of its resource: its
// name and its pod, or all that there is where it has no name.
func serverFields(resource pcommon.Map) []zap.Field {
	var fields []zap.Field
	for _, name := range []string{"service.name", "service.instance.id", "k8s.namespace.name", "k8s.pod.name"} {
		if value, has := resource.Get(name); has {
			fields = append(fields, zap.String(name, cut(value.AsString())))
		}
	}
	if instance, named := resource.Get("service.instance.id"); named && instance.AsString() != "" {
		return fields
	}
	var all []string
	for name, value := range resource.All() {
		all = append(all, cut(name)+"="+cut(value.AsString()))
	}
	slices.Sort(all)
	if more := len(all) - maxNamed; more > 0 {
		all = append(all[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return []zap.Field{zap.String("resource", strings.Join(all, " "))}
}

const (
	// maxShown is how many bytes of a name or value that somebody else chose stand in a
	// line, maxNamed how many attributes of a resource without a name.
	maxShown = 200
	maxNamed = 20
)

// cut shortens a text that somebody else chose.
func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("... (%d bytes)", len(text))
}

// causeNames are causes beside the primary one.
func causeNames(key string, causes *[diagnose.NumCauses]bool) zap.Field {
	var names []string
	for c, is := range causes {
		if is {
			names = append(names, diagnose.Cause(c).String())
		}
	}
	if names == nil {
		return zap.Skip()
	}
	return zap.Strings(key, names)
}

// spell writes a time without the zeros at its end: 1h, not 1h0m0s.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
