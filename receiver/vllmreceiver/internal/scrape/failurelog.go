package scrape

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

// A target logs at most stateLines lines about its state in stateTime. Further changes
// are counted, and a later line reports their number.
const (
	stateLines = 10
	stateTime  = 10 * time.Minute
)

// failureLog logs when the scrapes of a target begin to fail, fail in another
// way, and succeed again.
type failureLog struct {
	logger *zap.Logger
	// failure is the last failure; nil while scrapes succeed.
	failure *fetch.Error
	budget  lineBudget
}

// failed logs a failed scrape. It does not warn about a pod that is being deleted, which
// is expected to stop answering.
func (l *failureLog) failed(now time.Time, cause *fetch.Error, terminating bool) {
	before := l.failure
	l.failure = cause
	outcome := zap.Stringer("outcome", cause.Outcome)
	switch {
	case terminating && before == nil:
		l.budget.log(l.logger, now, zapcore.InfoLevel, "The pod is being deleted and cannot be scraped any more: "+cause.Message, outcome)
	case terminating:
		l.logger.Debug("The pod is being deleted and cannot be scraped: "+cause.Message, outcome)
	case before == nil:
		l.budget.log(l.logger, now, zapcore.WarnLevel, "Scraping failed: "+cause.Message, outcome)
	case before.Message != cause.Message:
		l.budget.log(l.logger, now, zapcore.WarnLevel, "Scraping fails in another way now: "+cause.Message, outcome)
	case l.budget.due(now):
		l.budget.log(l.logger, now, zapcore.WarnLevel, "Scraping still fails: "+cause.Message, outcome)
	default:
		l.logger.Debug("Scraping still fails: "+cause.Message, outcome)
	}
}

// succeeded logs a successful scrape after a failure. It reports whether the scrape
// before failed.
func (l *failureLog) succeeded(now time.Time) bool {
	failed := l.failure != nil
	l.failure = nil
	if failed || l.budget.due(now) {
		l.budget.log(l.logger, now, zapcore.InfoLevel, "Scraping works again")
	}
	return failed
}

// lineBudget limits the log lines about a state that may change often.
type lineBudget struct {
	since time.Time
	lines int
	// held is how many lines were held back since the last logged line.
	held int
}

// renew starts another period if the last one is over.
func (b *lineBudget) renew(now time.Time) {
	if since := now.Sub(b.since); since >= stateTime || since < 0 {
		b.since, b.lines = now, 0
	}
}

// due reports whether lines were held back and another line may be logged now. So the last
// line in the log is about the current state.
func (b *lineBudget) due(now time.Time) bool {
	if b.held == 0 {
		return false
	}
	b.renew(now)
	return b.lines < stateLines
}

// log logs a line, or holds it back if there were too many.
func (b *lineBudget) log(logger *zap.Logger, now time.Time, level zapcore.Level, message string, fields ...zap.Field) {
	b.renew(now)
	if b.lines == stateLines {
		b.held++
		logger.Debug(message, fields...)
		return
	}
	b.lines++
	if b.held > 0 {
		message += fmt.Sprintf(" (%d lines about the target were not logged: the limit is %d in %s)",
			b.held, stateLines, stateTime)
		b.held = 0
	}
	if b.lines == stateLines {
		message += fmt.Sprintf(" (the target changes often: further lines are not logged until %s, and then counted)",
			b.since.Add(stateTime).UTC().Format(time.RFC3339))
	}
	logger.Log(level, message, fields...)
}
