package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The harm of these tests is felt from 100 to 200 s, in a story of 400 s.
func hear(level Level, said []Said, pages []Page, interval float64) Heard {
	return Hear([]Felt{{Level: level, What: "token", From: 100, To: 200}}, said, pages, interval, 400)[0]
}

var (
	healthyFrom  = func(at float64) Said { return Said{At: at, Condition: "healthy"} }
	degradedFrom = func(at float64) Said {
		return Said{At: at, Condition: "degraded", Severity: 2, Cause: "slow_steps"}
	}
	failingFrom = func(at float64) Said { return Said{At: at, Condition: "failing", Severity: 3} }
)

func TestTheFirstWarningWhileHarmLastsIsItsReport(t *testing.T) {
	none := Said{}
	for name, c := range map[string]struct {
		said           []Said
		report         Said
		after, cleared float64
		greatest       int
	}{
		"30 s after":               {[]Said{healthyFrom(0), degradedFrom(130), healthyFrom(250)}, degradedFrom(130), 30, 50, 2},
		"before":                   {[]Said{healthyFrom(0), degradedFrom(80), healthyFrom(210)}, degradedFrom(80), -20, 10, 2},
		"never":                    {[]Said{healthyFrom(0)}, none, 0, -1, 0},
		"nothing is said":          {nil, none, 0, -1, 0},
		"only after the end":       {[]Said{healthyFrom(0), degradedFrom(201), healthyFrom(300)}, none, 0, -1, 0},
		"at the end":               {[]Said{healthyFrom(0), degradedFrom(200), healthyFrom(300)}, degradedFrom(200), 100, 100, 2},
		"over when harm begins":    {[]Said{degradedFrom(50), healthyFrom(100), degradedFrom(120)}, degradedFrom(120), 20, -1, 2},
		"not cleared":              {[]Said{healthyFrom(0), degradedFrom(130)}, degradedFrom(130), 30, -1, 2},
		"cleared while it lasts":   {[]Said{degradedFrom(130), healthyFrom(180), degradedFrom(230), healthyFrom(240)}, degradedFrom(130), 30, 0, 2},
		"the first of two":         {[]Said{degradedFrom(130), failingFrom(160), degradedFrom(220), healthyFrom(230)}, degradedFrom(130), 30, 30, 3},
		"a notice is no warning":   {[]Said{{At: 110, Condition: "busy", Severity: 1}, healthyFrom(190)}, none, 0, -1, 1},
		"cleared to a notice only": {[]Said{degradedFrom(110), {At: 215, Condition: "busy", Severity: 1}}, degradedFrom(110), 10, 15, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := hear(Great, c.said, nil, 5)
			assert.Equal(t, c.report, h.Report)
			assert.Equal(t, c.report != none, h.Reported())
			assert.InDelta(t, c.after, h.After, 1e-9)
			assert.InDelta(t, c.cleared, h.Cleared, 1e-9)
			assert.Equal(t, c.greatest, h.Greatest)
		})
	}
}

// Harm has to be reported after 45 s, with scrapes each 15 s after 60 s, and five times the usual
// after 90 s. From then on a server that is said to be well is denied harm.
func TestHarmIsDeniedByWhoSaysAfterTheDeadlineThatAllIsWell(t *testing.T) {
	for name, c := range map[string]struct {
		level    Level
		interval float64
		said     []Said
		want     float64
	}{
		"great":             {Great, 5, []Said{healthyFrom(0)}, 200 - 145},
		"an outage":         {Outage, 5, []Said{healthyFrom(0)}, 200 - 145},
		"each 15 s":         {Great, 15, []Said{healthyFrom(0)}, 200 - 160},
		"five times":        {Clear, 5, []Said{healthyFrom(0)}, 200 - 190},
		"the same at 15 s":  {Clear, 15, []Said{healthyFrom(0)}, 200 - 190},
		"idle":              {Great, 5, []Said{{At: 0, Condition: "idle"}}, 55},
		"something else":    {Great, 5, []Said{{At: 0, Condition: "learning"}}, 0},
		"reported in time":  {Great, 5, []Said{healthyFrom(0), degradedFrom(144)}, 0},
		"reported too late": {Great, 5, []Said{healthyFrom(0), degradedFrom(150)}, 5},
		"in two parts":      {Great, 5, []Said{healthyFrom(0), degradedFrom(150), healthyFrom(170), degradedFrom(180), healthyFrom(190)}, 5 + 10 + 10},
		"only afterwards":   {Great, 5, []Said{degradedFrom(110), healthyFrom(200)}, 0},
	} {
		t.Run(name, func(t *testing.T) { assert.InDelta(t, c.want, hear(c.level, c.said, nil, c.interval).Denied, 1e-9) })
	}
}

func TestAPageCountsWhileHarmLastsAndForAMinuteMore(t *testing.T) {
	for name, c := range map[string]struct {
		pages []Page
		want  float64
	}{
		"none":                     {nil, -1},
		"50 s after":               {[]Page{{150, 300}}, 50},
		"the first of two":         {[]Page{{120, 130}, {150, 300}}, 20},
		"59 s after the end":       {[]Page{{259, 300}}, 159},
		"61 s after the end":       {[]Page{{261, 300}}, -1},
		"has paged since before":   {[]Page{{60, 150}}, 0},
		"was over before":          {[]Page{{60, 100}}, -1},
		"was over before, and new": {[]Page{{60, 90}, {130, 150}}, 30},
	} {
		t.Run(name, func(t *testing.T) { assert.InDelta(t, c.want, hear(Outage, nil, c.pages, 5).Paged, 1e-9) })
	}
}

func TestEachHarmIsComparedByItself(t *testing.T) {
	felt := []Felt{{Level: Clear, From: 50, To: 90}, {Level: Great, From: 300, To: 350}}
	heard := Hear(felt, []Said{healthyFrom(0), degradedFrom(60), healthyFrom(120), failingFrom(310)}, []Page{{320, 350}}, 5, 400)
	assert.Len(t, heard, len(felt))
	for i, want := range felt {
		assert.Equal(t, want, heard[i].Felt)
	}
	assert.Equal(t, []float64{10, 30, -1}, []float64{heard[0].After, heard[0].Cleared, heard[0].Paged})
	assert.Equal(t, []float64{10, -1, 20}, []float64{heard[1].After, heard[1].Cleared, heard[1].Paged})
	assert.Equal(t, []int{2, 3}, []int{heard[0].Greatest, heard[1].Greatest})
	assert.Empty(t, Hear(nil, nil, nil, 5, 400))
}

func TestAWarningIsUnfeltWhereItBeginsFarFromHarm(t *testing.T) {
	felt := []Felt{{From: 100, To: 200}}
	said := []Said{
		healthyFrom(0), degradedFrom(50), failingFrom(60), healthyFrom(90), // Before; it became worse, which is no other one.
		degradedFrom(100), healthyFrom(210), degradedFrom(320), healthyFrom(321), // During, and two minutes after.
		degradedFrom(322), failingFrom(330), // Later.
	}
	assert.Equal(t, []Said{degradedFrom(50), degradedFrom(322)}, Unfelt(felt, said))
	assert.Empty(t, Unfelt(felt, []Said{healthyFrom(0), {At: 20, Condition: "busy", Severity: 1}}))
	assert.Equal(t, []Said{failingFrom(7)}, Unfelt(nil, []Said{failingFrom(7)}))
}

func TestWhatIsSaidHasThePrimaryCauseOrTheNoticeOfAServerThatIsWell(t *testing.T) {
	said := func(severity int64, role string) Said {
		metrics := pmetric.NewMetrics()
		scope := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		add := func(name string, value int64, attributes map[string]any) {
			m := scope.Metrics().AppendEmpty()
			m.SetName("vllm.diagnosis." + name)
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetIntValue(value)
			assert.NoError(t, p.Attributes().FromRaw(attributes))
		}
		add("severity", severity, map[string]any{"engine": "0"})
		add("condition", 0, map[string]any{"engine": "0", "condition": "healthy"})
		add("condition", 1, map[string]any{"engine": "0", "condition": "degraded"})
		if role != "" {
			add("cause", 1, map[string]any{"engine": "0", "cause": "slow_steps", "role": role, "detail": "clocks"})
		}
		return SaidOf(12, metrics)
	}
	whole := Said{At: 12, Condition: "degraded", Severity: 2, Cause: "slow_steps", Detail: "clocks"}
	assert.Equal(t, whole, said(2, "primary"))
	assert.Equal(t, Said{At: 12, Condition: "degraded", Severity: 2}, said(2, "contributing"))
	assert.Equal(t, Said{At: 12, Condition: "degraded", Severity: 3}, said(3, ""))
	whole.Severity = 1
	assert.Equal(t, whole, said(1, "notice"))
	assert.Equal(t, Said{At: 12, Severity: -1}, SaidOf(12, pmetric.NewMetrics()))
}
