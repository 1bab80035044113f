package incident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAFileOfIncidentsInBothForms(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	want := []Incident{
		{Name: "slow GPU", From: time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC), To: time.Date(2026, 7, 1, 8, 30, 0, 0, time.UTC), Targets: []string{"a:8000", "chat-*"}, Cause: "slow_steps"},
		{Name: "incident 2", From: time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC), To: time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC)},
	}
	inYAML, err := Read(file(t, "i.yaml", `
incidents:
  - name: slow GPU
    from: 2026-07-01 10:00
    to: 2026-07-01T10:30:00+02:00
    targets: ["a:8000", "chat-*"]
    cause: slow_steps
  - {from: 2026-07-01T10:00:00Z, to: 1782903600}
`), berlin)
	require.NoError(t, err)
	assert.Equal(t, want, inYAML)
	inCSV, err := Read(file(t, "i.CSV", "\xef\xbb\xbfName, from,to,targets,cause\nslow GPU,2026-07-01 10:00,2026-07-01T10:30:00+02:00,a:8000; chat-*,slow_steps\n,2026-07-01T10:00:00Z,1782903600,,\n"), berlin)
	require.NoError(t, err)
	require.Len(t, inCSV, 2)
	assert.Equal(t, want[0], inCSV[0])
	assert.Equal(t, want[1].From, inCSV[1].From)
	assert.Empty(t, inCSV[1].Targets)
	// As a spreadsheet in Germany writes it.
	inCSV, err = Read(file(t, "i.csv", "\xef\xbb\xbfname;from;to;targets;cause\r\n\"slow GPU\";2026-07-01 10:00;2026-07-01T10:30:00+02:00;\"a:8000; chat-*\";slow_steps\r\n"), berlin)
	require.NoError(t, err)
	assert.Equal(t, want[:1], inCSV)
}

func TestAnIncidentConcernsATargetOfThatVeryName(t *testing.T) {
	for _, c := range []struct {
		target, name string
		want         bool
	}{
		{"[::1]:8000", "[::1]:8000", true}, {"[::1]:8000", "1:8000", true}, {"a", "a:8000", true}, {"chat-*", "chat-7:8000", true}, {"a", "ab:8000", false},
	} {
		i := Incident{Targets: []string{c.target}}
		assert.Equal(t, c.want, i.Concerns(c.name), c.target)
	}
}

// Each mistake names its line and what to write.
func TestMistakesInAFileOfIncidents(t *testing.T) {
	for text, want := range map[string]string{
		"incidents: [{from: 2026-07-01 10:00, to: 2026-07-01 11:00}]":                            `line 1: from: "2026-07-01 10:00" has no time zone`,
		"incidents:\n- {to: 2026-07-01T11:00:00Z}":                                               "line 2: from: is missing",
		"incidents:\n- {from: noon, to: 2026-07-01T11:00:00Z}":                                   `from: "noon" is not a time`,
		"incidents:\n- {from: 2026-07-01T11:00:00Z, to: 2026-07-01T10:00:00Z}":                   "ends (2026-07-01T10:00:00Z) before it starts",
		"incidents:\n- {from: 2025-07-01T11:00:00Z, to: 2026-07-01T10:00:00Z}":                   "is the year right?",
		"incidents:\n- {from: 2026-07-01T10:00:00Z, to: 2026-07-01T11:00:00Z, cause: gremlins}":  `cause: "gremlins" is neither a cause nor a condition`,
		"incidents:\n- {from: 2026-07-01T10:00:00Z, to: 2026-07-01T11:00:00Z, target: a}":        `the key "target" is not known`,
		"incidents:\n- {from: 2026-07-01T10:00:00Z, to: 2026-07-01T11:00:00Z, targets: [\"[\"]}": "is not a pattern",
		"incidents:\n- text":       "an incident has keys",
		"incident: []":             "field incident not found",
		"incidents: []":            "has no incident",
		"incidents: []\n---\na: b": "several documents",
		"\x00":                     "not a list of incidents",
		"incidents: {a: b}":        "not a list of incidents",
		"- 1":                      "not a list of incidents",
	} {
		_, err := Read(file(t, "i.yaml", text), nil)
		require.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"":                               "has no incident",
		"when,to\n1,2":                   `the column "when" is not known`,
		"from,to\nx,y":                   `line 2: from: "x" is not a time`,
		"from,from\n1,2":                 `the column "from" is there twice`,
		"from;to\nx;y":                   `line 2: from: "x" is not a time`,
		"from,to\n2026-07-01T10:00:00Z,": "line 2: to: is missing; for a lasting incident",
		"from,to\n\"":                    "extraneous",
		"from,to\n1,2,3":                 "wrong number of fields",
		"from,to":                        "has no incident",
	} {
		_, err := Read(file(t, "i.csv", text), nil)
		if text == "" {
			require.ErrorContains(t, err, "must name the columns")
			continue
		}
		require.Error(t, err, text)
		if want != "extraneous" {
			require.ErrorContains(t, err, want, text)
		}
	}
	_, err := Read(file(t, "big.yaml", strings.Repeat("#", maxBytes+1)), nil)
	require.ErrorContains(t, err, "is larger than")
	_, err = Read(t.TempDir(), nil)
	require.ErrorContains(t, err, "cannot be read")
}

// An hour that does not exist, because the clocks were changed, is refused.
func TestTimesWithoutAZoneFollowTheClockOfTheZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	winter, err := ParseTime("2026-01-01 10:00", berlin)
	require.NoError(t, err)
	assert.Equal(t, 9, winter.Hour())
	summer, err := ParseTime("2026-07-01 10:00", berlin)
	require.NoError(t, err)
	assert.Equal(t, 8, summer.Hour())
	_, err = ParseTime("2026-03-29 02:30", berlin)
	require.ErrorContains(t, err, "does not exist in Europe/Berlin")
	// 02:30 exists twice on the last Sunday of October; 01:59 and 03:00 were not.
	_, err = ParseTime("2026-10-25 02:30", berlin)
	require.ErrorContains(t, err, "exists twice in Europe/Berlin")
	for text, hour := range map[string]int{"2026-10-25 01:59:59": 23, "2026-10-25 03:00": 2} {
		got, err := ParseTime(text, berlin)
		require.NoError(t, err, text)
		assert.Equal(t, hour, got.Hour(), text)
	}
	howe, err := time.LoadLocation("Australia/Lord_Howe") // By half an hour.
	require.NoError(t, err)
	_, err = ParseTime("2026-04-05 01:45", howe)
	require.ErrorContains(t, err, "exists twice")
	for _, text := range []string{"2026-07-01T10:00:00Z", "2026-07-01 12:00:00+02:00", "2026-07-01T12:00+02:00", "1782900000"} {
		got, err := ParseTime(text, nil)
		require.NoError(t, err, text)
		assert.Equal(t, time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC), got, text)
	}
}

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time { return noon.Add(time.Duration(minutes * float64(time.Minute))) }

func episode(target string, from, to float64, severity int, condition, cause string) replay.Episode {
	return replay.Episode{Subject: replay.Subject{Target: target}, From: at(from), To: at(to), Severity: severity, Condition: condition, Cause: cause}
}

func firing(alert string, from, to float64, pairs ...string) rulestore.Firing {
	return rulestore.Firing{Alert: alert, From: at(from), To: at(to), Labels: labels.FromStrings(pairs...)}
}

func story() *Story {
	s := &Story{Margin: 15 * time.Minute, Names: map[string][]string{"a:1": {"a:1", "pod-a"}}, Ruled: true}
	s.Period.From, s.Period.To = at(-60), at(600)
	return s
}

func TestIncidentsAreComparedWithWhatWasReported(t *testing.T) {
	s := story()
	s.Episodes = []replay.Episode{
		episode("a:1", -30, 3, 0, "healthy", ""),
		episode("a:1", 3, 5, 2, "degraded", "prefill_heavy"),
		episode("a:1", 5, 20, 2, "degraded", "slow_steps"),
		episode("b:1", 0, 5, 3, "stalled", ""),
		episode("a:1", 100, 104, 3, "unreachable", ""),
		episode("a:1", 200, 300, 2, "degraded", "kv_pressure"),
	}
	s.Own = []rulestore.Firing{firing("Slow", 13, 20, "instance", "a:1"), firing("Other", 2, 3, "instance", "c:1"), firing("Slow", 16, 20, "instance", "a:1"), firing("Late", 30, 40, "instance", "a:1"), firing("Too late", 36, 40, "instance", "a:1")}
	s.Pages = []rulestore.Firing{
		firing("P", 4, 10, "instance", "a:1", "severity", "page"), firing("Job", -10, 30, "job", "vllm", "severity", "ticket"),
		firing("Q", 400, 410, "instance", "a:1"), firing("T", 410, 420, "severity", "ticket"),
	}
	results, alarms := Compare([]Incident{
		{Name: "slow", From: at(0), To: at(20), Targets: []string{"pod-*"}, Cause: "slow_steps"},
		{Name: "wrong", From: at(101), To: at(105), Targets: []string{"a"}, Cause: "stalled"},
		{Name: "missed", From: at(150), To: at(160), Targets: []string{"a:1"}},
		{Name: "in the middle of another", From: at(250), To: at(260), Targets: []string{"a:1"}},
		{Name: "before", From: at(-120), To: at(-90)},
	}, s)
	require.Len(t, results, 5)
	slow := results[0]
	require.NotNil(t, slow.Diagnosis)
	assert.Equal(t, Seen{By: "degraded, prefill_heavy", At: at(3), Lead: -180, Subject: "a:1"}, *slow.Diagnosis)
	assert.Equal(t, "slow_steps", slow.Reported, "what lasted longest")
	assert.True(t, *slow.Right)
	require.NotNil(t, slow.Ahead)
	assert.Equal(t, 600.0, *slow.Ahead)
	require.Len(t, slow.Own, 2, "up to the margin after the end")
	assert.Equal(t, "Late", slow.Own[1].By)
	require.Len(t, slow.Alerts, 2)
	assert.Equal(t, "Job", slow.Alerts[0].By)
	assert.Equal(t, 600.0, slow.Alerts[0].Lead)
	assert.False(t, slow.Missed || slow.MissedByRules)

	assert.False(t, *results[1].Right)
	assert.Equal(t, "unreachable", results[1].Reported)
	assert.Equal(t, 60.0, results[1].Diagnosis.Lead)
	assert.True(t, results[1].MissedByRules)

	assert.True(t, results[2].Missed)
	assert.Nil(t, results[2].Right)

	assert.False(t, results[3].Missed)
	assert.True(t, results[3].Diagnosis.Already)
	assert.Nil(t, results[3].Ahead)

	assert.True(t, results[4].Outside)
	assert.False(t, results[4].Missed)

	var names []string
	for _, a := range alarms {
		names = append(names, a.By+" "+a.Subject)
	}
	assert.Equal(t, []string{"stalled b:1", "Q a:1"}, names, "a ticket is no page")
}

func TestTheMarginDecidesWhatBelongsToAnIncident(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		missed   bool
		alarms   int
	}{
		{-14, -12, false, 0}, {-16, -15.5, true, 1}, {-30, -14, true, 0}, {19, 40, false, 0}, {20, 25, true, 0}, {34, 36, true, 0}, {36, 40, true, 1},
	} {
		s := story()
		s.Episodes = []replay.Episode{episode("a:1", c.from, c.to, 2, "degraded", "slow_steps")}
		results, alarms := Compare([]Incident{{From: at(0), To: at(20)}}, s)
		assert.Equal(t, c.missed, results[0].Missed, "%v", c)
		assert.Len(t, alarms, c.alarms, "%v", c)
	}
}

func TestEpisodesThatFollowEachOtherAreOneAlarm(t *testing.T) {
	warm := episode("a", -50, -40, 3, "stalled", "")
	warm.Warmup = true
	runs := Alarms([]replay.Episode{
		warm, episode("a", 0, 10, 2, "degraded", "x"), episode("b", 5, 6, 3, "stalled", ""), episode("a", 10, 12, 3, "stalled", ""),
		episode("a", 12, 13, 0, "healthy", ""), episode("a", 16, 18, 2, "degraded", ""), episode("a", 24, 25, 2, "degraded", ""),
	})
	require.Len(t, runs, 3)
	assert.Len(t, runs[0], 3)
	assert.Len(t, runs[1], 1)
}

func TestWhatPages(t *testing.T) {
	for severity, want := range map[string]bool{"": true, "page": true, "Critical": true, "ticket": false, "warning": false, "info": false} {
		f := firing("A", 0, 1, "severity", severity)
		assert.Equal(t, want, Page(&f), severity)
	}
}
