package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// sample is a report in which every text of the history is text.
func sample(text string) *Report {
	right, ahead := false, -90.0
	e := func(from, to, severity int, condition, cause string) replay.Episode {
		return replay.Episode{
			Subject: replay.Subject{Target: text, Engine: text}, From: at(from), To: at(to), Severity: severity, Condition: condition, Cause: cause,
			Sentence: text, Evidence: []string{text, text}, Detail: text,
		}
	}
	f := func(from, to int) rulestore.Firing {
		return rulestore.Firing{Alert: text, Labels: labels.FromStrings("instance", text, "x", text, "severity", "page"), From: at(from), To: at(to), Summary: text}
	}
	r := &Report{
		Version: 1, Server: text, From: at(0), To: at(120), Warmup: 3600, Notes: []string{text}, Zone: time.UTC, Compared: true,
		Targets: []Target{{Name: text, Names: "vLLM's own names", Labels: map[string]string{"instance": text}, Coverage: replay.Coverage{Scrapes: 480, Failed: 3, Observed: 7000, Gaps: 200, Interval: 15, Engines: 2}, Episodes: []replay.Episode{
			e(-30, 10, 0, "healthy", ""), e(10, 30, 2, "degraded", "slow_steps"), e(30, 31, 3, "stalled", ""), e(31, 120, 0, "idle", ""),
		}, Dropped: 2}},
		Pools: []replay.Episode{{Subject: replay.Subject{Pool: true, Engine: text}, From: at(5), To: at(9), Condition: "degraded", Severity: 2, Cause: "imbalanced"}},
		Rules: []string{text}, Alerts: []rulestore.Firing{f(12, 30), f(14, 20)}, Own: []rulestore.Firing{f(20, 30)},
		RuleProblems: []rulestore.Problem{{Rule: text, Text: text, At: at(1), Times: 3}},
		Incidents: []incident.Result{
			{
				Incident: incident.Incident{Name: text, From: at(9), To: at(29), Targets: []string{text}, Cause: "stalled"}, Diagnosis: &incident.Seen{By: text, At: at(10), Lead: -60, Subject: text},
				Alerts: []incident.Seen{{By: text, At: at(12), Lead: -180}}, Own: []incident.Seen{{By: text, At: at(8), Lead: 60}}, Ahead: &ahead, Reported: "slow_steps", Right: &right,
			},
			{Incident: incident.Incident{Name: text, From: at(60), To: at(70)}, Missed: true, MissedByRules: true},
			{Incident: incident.Incident{Name: text, From: at(-600), To: at(-590)}, Outside: true},
		},
		FalseAlarms: []incident.Alarm{{By: text, Subject: text, From: at(80), To: at(81)}, {By: text, From: at(90), To: at(91), Rule: true}},
	}
	r.Summarize()
	return r
}

const hostile = "<script>alert(1)</script>\x1b[31m\"'&--><style>*{}</style>\u202e"

// Nothing of the history becomes markup, and nothing is loaded: there is no script, no
// address and no inline style, and the policy refuses all of that.
func TestThePageEscapesEverythingAndNeedsNothingElse(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, HTML(&b, sample(hostile)))
	text := b.String()
	assert.NotContains(t, text, "<script")
	assert.NotContains(t, text, "\x1b")
	assert.Contains(t, text, "&lt;script&gt;")
	ids, links, styles := map[string]bool{}, map[string]bool{}, 0
	policy, stated := "default-src 'none'; style-src 'sha256-THIS'; base-uri 'none'; form-action 'none'", ""
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			require.ErrorIs(t, tokens.Err(), io.EOF)
			break
		}
		token := tokens.Token()
		if kind == html.StartTagToken && token.Data == "style" {
			styles++
			tokens.Next()
			sum := sha256.Sum256(tokens.Raw())
			policy = strings.Replace(policy, "THIS", base64.StdEncoding.EncodeToString(sum[:]), 1)
		}
		if token.Data == "meta" && len(token.Attr) == 2 && token.Attr[0].Val == "Content-Security-Policy" {
			stated = token.Attr[1].Val
		}
		for _, a := range token.Attr {
			switch a.Key {
			case "href":
				require.True(t, strings.HasPrefix(a.Val, "#"), a.Val)
				links[a.Val[1:]] = true
			case "id":
				require.False(t, ids[a.Val], "twice: %s", a.Val)
				ids[a.Val] = true
			case "src", "style", "srcset", "action", "data", "xlink:href":
				t.Errorf("%s=%q", a.Key, a.Val)
			default:
				require.False(t, strings.HasPrefix(a.Key, "on"), a.Key)
			}
		}
	}
	assert.Equal(t, 1, styles)
	assert.Equal(t, policy, stated, "only the style of the page itself is allowed")
	require.NotEmpty(t, links)
	for link := range links {
		assert.True(t, ids[link], "#%s leads nowhere", link)
	}
	assert.NotRegexp(t, `url\(|@import|https?://`, text)
}

// A page of a long history stays small enough for a browser.
func TestThePageIsBounded(t *testing.T) {
	r := sample("a")
	many := r.Targets[0].Episodes[1]
	for i := range 30_000 {
		many.From, many.To = at(0).Add(time.Duration(i)*200*time.Millisecond), at(0).Add(time.Duration(i+1)*200*time.Millisecond)
		r.Targets[0].Episodes = append(r.Targets[0].Episodes, many)
		r.Alerts = append(r.Alerts, r.Alerts[0])
	}
	var b bytes.Buffer
	require.NoError(t, HTML(&b, r))
	assert.Less(t, b.Len(), 3<<20)
	assert.Contains(t, b.String(), "more changes are in the output of --json")
	assert.Contains(t, b.String(), "more are in the output of --json")
	var text strings.Builder
	require.NoError(t, Text(&text, r, false))
	assert.Contains(t, text.String(), "fired 29982 more times")
}

// A page and a text about many servers are bounded as those about one are, and say what they
// leave out.
func TestManyServersStayReadable(t *testing.T) {
	r := sample("a")
	one := r.Targets[0]
	quiet := Target{Coverage: replay.Coverage{Scrapes: 1}, Episodes: []replay.Episode{{From: r.From, To: r.To, Condition: "healthy"}}}
	for i := range 500 {
		busy := one
		busy.Name, busy.Episodes = fmt.Sprint("busy", i), nil
		for range 50 {
			busy.Episodes = append(busy.Episodes, one.Episodes...)
		}
		if i >= 100 {
			busy = quiet
			busy.Name = fmt.Sprint("quiet", i)
		}
		r.Targets = append(r.Targets, busy)
	}
	for range 500 {
		r.Own = append(r.Own, rulestore.Firing{Alert: "Unnamed", From: r.From, To: r.To})
		r.FalseAlarms = append(r.FalseAlarms, r.FalseAlarms[0])
	}
	var b bytes.Buffer
	require.NoError(t, HTML(&b, r))
	assert.Less(t, b.Len(), 25<<20)
	assert.Contains(t, b.String(), "later bars are missing")
	assert.Contains(t, b.String(), "202 more are in the output of --json")
	for _, all := range []bool{false, true} {
		var text strings.Builder
		require.NoError(t, Text(&text, r, all))
		assert.Equal(t, !all, strings.Contains(text.String(), "400 servers without anything to report; --all lists them"))
		assert.Equal(t, all, strings.Contains(text.String(), "quiet499"))
		assert.Contains(t, text.String(), "busy99")
		assert.Contains(t, text.String(), "and 302 more; --json lists them all")
	}
}

func TestTheTextIsPrintable(t *testing.T) {
	for _, all := range []bool{false, true} {
		var b strings.Builder
		require.NoError(t, Text(&b, sample(hostile), all))
		for _, r := range b.String() {
			require.True(t, r == '\n' || r >= ' ' && r != '\u202e', "%q", r)
		}
		for _, want := range []string{"MISSED by the diagnosis", "MISSED by the rules", "WRONG, mostly slow_steps", "is not in the period", "1m30s after the first own alert", "False alarms"} {
			assert.Contains(t, b.String(), want)
		}
		assert.Equal(t, all, strings.Contains(b.String(), "healthy  for 40m"), "what asks for nothing is listed only on request")
		assert.Contains(t, b.String(), "idle  for 1h29m", "the end of a harm is listed")
	}
}

func TestTheSummaryAddsUp(t *testing.T) {
	s := sample("a").Summary
	assert.InDelta(t, 2*7000/3600.0, s.EngineHours, 1e-9)
	assert.InDelta(t, 10/60.0, s.Hours["healthy"], 1e-9, "only within the period")
	assert.InDelta(t, 20/60.0, s.Hours["degraded"], 1e-9)
	assert.InDelta(t, 20/60.0, s.CauseHours["slow_steps"], 1e-9)
	assert.Equal(t, 2, s.Alarms, "of the server and of the pool")
	assert.Equal(t, 1, s.Severe)
	assert.Equal(t, 2, s.Pages)
	assert.InDelta(t, 2*7*12, s.PagesPerWeek, 1e-9)
	assert.Equal(t, []int{2, 1, 1, 0, 1, 2}, []int{s.Incidents, s.Missed, s.MissedByRules, s.RightCause, s.WrongCause, s.FalseAlarms})
	assert.Equal(t, -60.0, *s.LeadMedian)
	assert.Equal(t, -90.0, *s.AheadMedian)
	assert.True(t, sample("a").Failed())
	assert.False(t, (&Report{}).Failed())
	assert.Equal(t, 2.5, *median([]float64{4, 1, 3, 2}))
	assert.Nil(t, median(nil))
}

// The document has every list, also an empty one, and can be read back.
func TestTheDocumentCanBeReadBack(t *testing.T) {
	data, err := json.Marshal(sample("a"))
	require.NoError(t, err)
	var again Report
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, 1, again.Version)
	assert.Equal(t, "a", again.Own[0].Labels.Get("x"))
	assert.NotContains(t, string(data), "null,\"")
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 15 * time.Second: "15s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h",
		2*time.Hour + 5*time.Minute + 10*time.Second: "2h5m", 24 * time.Hour: "1d", 98 * time.Hour: "4d2h", -time.Minute: "-1m", 59*time.Minute + 59*time.Second + 900*time.Millisecond: "1h",
	} {
		assert.Equal(t, want, short(d), d.String())
	}
}

func TestTheAxisFollowsTheZone(t *testing.T) {
	kathmandu, err := time.LoadLocation("Asia/Kathmandu")
	require.NoError(t, err)
	for _, c := range []struct {
		length time.Duration
		want   string
	}{{2 * time.Hour, "17:45 18:00 18:15 18:30 18:45 19:00 19:15 19:30 19:45"}, {24 * time.Hour, "20:00 00:00 04:00 08:00 12:00 16:00"}, {10 * 24 * time.Hour, "07-02 07-03 07-04 07-05 07-06 07-07 07-08 07-09 07-10 07-11"}} {
		r := &Report{From: noon, To: noon.Add(c.length), Zone: kathmandu}
		var got []string
		for _, k := range ticks(r) {
			got = append(got, k.Text)
		}
		assert.Equal(t, c.want, strings.Join(got, " "))
	}
}
