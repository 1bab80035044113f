package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// alertsOn are the alerts that are measured, and one of them.
func alertsOn(t *testing.T, name string) (*alerting, []content.Alert, content.Alert) {
	t.Helper()
	a, err := newAlerting(t.TempDir())
	require.NoError(t, err)
	all, err := a.measured(t.Context())
	require.NoError(t, err)
	for i := range all {
		if all[i].Name == name {
			return a, all, all[i]
		}
	}
	require.Fail(t, "not measured", name)
	return nil, nil, content.Alert{}
}

// An alert fires once the severity has lasted as long as the shipped rule says, and not where no scrape came.
func TestWhatIsReportedFiresTheShippedAlerts(t *testing.T) {
	a, all, page := alertsOn(t, "VLLMServerNotServing")
	for i := range all {
		assert.NotContains(t, all[i].Name, "Pool", "the stories have no pools")
		assert.NotContains(t, all[i].Name, "Missing")
	}
	firings := func(gaps []judge.Fault, lasts float64) (out []fired) {
		t.Helper()
		got, err := a.firings(t.Context(), []judge.Said{{}, {At: 7200, Severity: 3}, {At: 7200 + lasts}}, gaps, 12000)
		require.NoError(t, err)
		for _, f := range got {
			if f.alert == page.Name {
				out = append(out, f)
			}
		}
		return out
	}
	got := firings(nil, 900)
	require.Len(t, got, 1)
	assert.InDelta(t, 7200+page.For.Seconds(), got[0].from, everyRule.Seconds())
	assert.InDelta(t, 8100+page.KeepFiringFor.Seconds(), got[0].to, everyRule.Seconds())
	assert.Empty(t, firings(nil, page.For.Seconds()/2), "over before it may fire")
	assert.Empty(t, firings([]judge.Fault{{Kind: judge.Missed, At: 7195, Until: 8200}}, 900), "nobody scraped it in that time")
}

// A firing is false where nobody was harmed while it was pending; a page also where the harm was less than great.
func TestAFiringWithoutHarmIsFalse(t *testing.T) {
	_, all, ticket := alertsOn(t, "VLLMServerDegraded")
	m := meta()
	m.Kind, m.Injections, m.Seconds = stories.Healthy, nil, 7200
	s := Score{Record: &Record{Meta: m, Minutes: 120, Heard: []Heard{{Heard: judge.Heard{Felt: judge.Felt{Level: judge.Clear, From: 1200, To: 1260}}}}}}
	s.Lines = []judge.Line{{Minute: 60, Harmful: true}}
	at := func(alert string, from float64) fired { return fired{alert, from, from + 600} }
	const page = "VLLMServerNotServing"
	got := firingsOf(&s, all, []fired{
		at(ticket.Name, 3620+ticket.For.Seconds()), at(ticket.Name, 6000), at(ticket.Name, 1230), at(page, 1230), at("VLLMPoolDegraded", 6000),
	})
	// One ticket is of harm, one of a clear wait by the traffic, and one of nothing; a clear wait is nothing to wake somebody for.
	assert.Equal(t, alarmRow{fires: 3, natural: 1, nothing: 1, slowed: 2}, *got[ticket.Name])
	assert.Equal(t, alarmRow{fires: 1, nothing: 1, slowed: 2}, *got[page])
	counts := []map[string]*alarmRow{nil, {ticket.Name: &alarmRow{nothing: 5, natural: 3, fires: 7, hours: 1000, slowed: 2000}}}
	table := alertsTable([]content.Alert{ticket}, counts)
	assert.Contains(t, table, "|35|", "7 in 2,000 h")
	assert.Contains(t, table, "|84 (", "5 in 1,000 h are 84 in the 16,800 h of a hundred servers")
}

// Tickets are counted in natural slow-downs as well, pages are none.
func TestTheTicketsOfAStory(t *testing.T) {
	_, _, ticket := alertsOn(t, "VLLMServerDegraded")
	m := meta()
	m.Kind, m.Injections, m.Seconds = stories.Healthy, nil, 18000
	r := Record{Meta: m, Minutes: 300, Said: []judge.Said{{}, {At: 3600, Severity: 2, Condition: "degraded"}, {At: 7200}, {At: 10800, Severity: 2, Condition: "degraded"}, {At: 14400}}}
	for minute := 55; minute < 70; minute++ {
		r.Slow = append(r.Slow, [2]int{0, minute})
	}
	fault := r
	fault.Kind = stories.Single
	records := []Record{r, fault}
	require.NoError(t, ticketed(t.Context(), 2, records))
	require.NotNil(t, records[0].Tickets)
	assert.InDelta(t, 2, *records[0].Tickets, 0, ticket.Name)
	assert.Nil(t, records[1].Tickets)
	a := ticketsIn(Scores(records), func(*Score) bool { return true })
	assert.InDelta(t, 5, a.sum[hours], 1e-9)
}
