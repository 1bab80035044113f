package scrape

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

// shown are the lines above debug.
func shown(logs *observer.ObservedLogs) []string {
	var out []string
	for _, entry := range logs.All() {
		if entry.Level > zap.DebugLevel {
			out = append(out, entry.Message)
		}
	}
	return out
}

func TestAChangeOfTheCauseIsLogged(t *testing.T) {
	r := newRig(t)
	r.fail(http.StatusServiceUnavailable)
	r.fail(http.StatusServiceUnavailable)
	r.fail(http.StatusUnauthorized)
	r.fail(http.StatusUnauthorized)
	r.scrape("vllm:num_requests_running 1\n")
	lines := shown(r.logs)
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], "Scraping failed: the server answered 503")
	assert.Contains(t, lines[1], "Scraping fails in another way now: the server answered 401")
	assert.Equal(t, "Scraping works again", lines[2])
}

// A day of a target that fails in every other scrape, each 15 s.
func TestTheLogLinesOfATargetThatFlapsAreLimited(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := failureLog{logger: zap.New(core)}
	now := firstScrape
	const scrapes = 24 * 60 * 4
	for i := range scrapes {
		if i%2 == 0 {
			l.failed(now, &fetch.Error{Outcome: fetch.OutcomeRefused, Message: "connection refused"}, false)
		} else {
			l.succeeded(now)
		}
		now = now.Add(15 * time.Second)
	}
	lines := shown(logs)
	// Ten lines in each ten minutes.
	assert.LessOrEqual(t, len(lines), 24*6*10)
	assert.GreaterOrEqual(t, len(lines), 24*6*9)
	held := 0
	for _, line := range lines {
		var n int
		if i := strings.Index(line, " ("); i >= 0 {
			if _, err := fmt.Sscanf(line[i:], " (%d lines", &n); err == nil {
				held += n
			}
		}
	}
	assert.Equal(t, scrapes, len(lines)+held+l.budget.held, "each change is in the log, or counted")
	assert.Equal(t, "Scraping failed: connection refused", lines[0])
	assert.Equal(t, "Scraping works again (the target changes often: further lines are not logged until "+
		"2027-01-01T00:10:00Z, and then counted)", lines[9])
	assert.Equal(t, "Scraping failed: connection refused (30 lines about the target were not logged: the limit is 10 in 10m0s)", lines[10])
}

// The log must not end with a state that has been over for hours.
func TestTheLastLogLineIsAboutTheCurrentState(t *testing.T) {
	for name, tt := range map[string]struct {
		fails bool
		want  string
	}{
		"works": {false, "Scraping works again (4 lines"},
		"fails": {true, "Scraping still fails: connection refused (5 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			l := failureLog{logger: zap.New(core)}
			now := firstScrape
			refused := &fetch.Error{Outcome: fetch.OutcomeRefused, Message: "connection refused"}
			for i := range 14 {
				if i%2 == 0 {
					l.failed(now, refused, false)
				} else {
					l.succeeded(now)
				}
				now = now.Add(15 * time.Second)
			}
			if tt.fails {
				// It fails for another hour.
				l.succeeded(now)
			}
			for range 240 {
				if tt.fails {
					l.failed(now, refused, false)
				} else {
					l.succeeded(now)
				}
				now = now.Add(15 * time.Second)
			}
			lines := shown(logs)
			require.Len(t, lines, 11)
			assert.Contains(t, lines[10], tt.want)
		})
	}
}
