package vllmreceiver

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

// A target may log so many lines about its state in this time. What changes more
// often is counted and logged as one line later.
const (
	stateLines = 10
	stateTime  = 10 * time.Minute
)

// failureLog logs when the scrapes of a target begin to fail, fail in another
// way, and succeed again.
type failureLog struct {
	logger *zap.Logger
	// failure is what the last failure was; nil while scrapes succeed.
	failure *fetch.Error
	budget  lineBudget
}

// failed takes a failed scrape. That a pod which is being deleted stops answering is
// no reason to warn.
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

// succeeded takes a successful scrape, and reports whether the one before failed.
func (l *failureLog) succeeded(now time.Time) bool {
	failed := l.failure != nil
	l.failure = nil
	if failed || l.budget.due(now) {
		l.budget.log(l.logger, now, zapcore.InfoLevel, "Scraping works again")
	}
	return failed
}

// lineBudget bounds how many lines are logged about something that may change
// again and again.
type lineBudget struct {
	since time.Time
	lines int
	// held is how many lines were held back since the last one that was logged.
	held int
}

// renew begins another span of time where the last one is over.
func (b *lineBudget) renew(now time.Time) {
	if since := now.Sub(b.since); since >= stateTime || since < 0 {
		b.since, b.lines = now, 0
	}
}

// due reports whether lines were held back and one may be logged again, so that
// the last line in the log is about the present state.
func (b *lineBudget) due(now time.Time) bool {
	if b.held == 0 {
		return false
	}
	b.renew(now)
	return b.lines < stateLines
}

// log logs a line, or holds it back where there were too many.
func (b *lineBudget) log(logger *zap.Logger, now time.Time, level zapcore.Level, message string, fields ...zap.Field) {
	b.renew(now)
	if b.lines == stateLines {
		b.held++
		logger.Debug(message, fields...)
		return
	}
	b.lines++
	if b.held > 0 {
		message += fmt.Sprintf(" (%d lines about the target were held back, since there were more than %d in %s)",
			b.held, stateLines, stateTime)
		b.held = 0
	}
	if b.lines == stateLines {
		message += fmt.Sprintf(" (the target changes often: further lines are held back until %s and then counted)",
			b.since.Add(stateTime).UTC().Format(time.RFC3339))
	}
	logger.Log(level, message, fields...)
}
