package vllmdiagnosisconnector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// randomDiagnosis is any that can be: harm has causes, and anything may have
// notices.
func randomDiagnosis(random *rand.Rand, known []catalog.Cause) diagnosis {
	condition := catalog.Conditions()[random.IntN(len(catalog.Conditions()))]
	d := diagnosis{severity: condition.Severity, condition: condition.Name}
	var engine, notices []cause
	for _, c := range known {
		detail := ""
		if len(c.Details) > 0 {
			// One each: another detail of a cause that contributes is not a change.
			detail = c.Details[0].Name
		}
		if c.Level == catalog.LevelNotice {
			notices = append(notices, cause{c.Name, "notice", ""})
		} else {
			engine = append(engine, cause{c.Name, "contributing", detail})
		}
	}
	if d.severity >= 2 {
		random.Shuffle(len(engine), func(i, j int) { engine[i], engine[j] = engine[j], engine[i] })
		engine = engine[:random.IntN(3)]
		for i := range engine {
			if i == 0 {
				engine[i].role = "primary"
			}
			d.causes = append(d.causes, engine[i])
		}
	}
	if random.IntN(4) == 0 {
		d.causes = append(d.causes, notices[random.IntN(len(notices))])
		d.severity = max(d.severity, 1)
	}
	return d
}

// text is a diagnosis as text, whatever the order of its causes.
func (d *diagnosis) text() string {
	byRole := map[string][]string{}
	primary := ""
	for _, c := range d.causes {
		if c.role == "primary" {
			primary = c.name + "/" + c.detail
		} else {
			byRole[c.role] = append(byRole[c.role], c.name)
		}
	}
	slices.Sort(byRole["contributing"])
	return fmt.Sprint(d.condition, d.severity, " because of ", primary, " ", strings.Join(byRole["contributing"], ","), " ", strings.Join(byRole["notice"], ","))
}

// textOf is a record as the same text.
func textOf(record plog.LogRecord) string {
	list := func(name string) string {
		value, there := record.Attributes().Get(name)
		if !there {
			return ""
		}
		var all []string
		for _, v := range value.Slice().All() {
			all = append(all, v.Str())
		}
		return strings.Join(all, ",")
	}
	severity, _ := record.Attributes().Get("vllm.diagnosis.severity")
	primary := ""
	if name := text(record, "vllm.diagnosis.cause"); name != "" {
		primary = name + "/" + text(record, "vllm.diagnosis.detail")
	}
	return fmt.Sprint(text(record, "vllm.diagnosis.condition"), severity.Int(), " because of ", primary, " ",
		list("vllm.diagnosis.contributing_causes"), " ", list("vllm.diagnosis.notices"))
}

// states is a sequence of diagnoses that often stay for a while.
func states(random *rand.Rand, known []catalog.Cause) []diagnosis {
	var all []diagnosis
	for len(all) < 60 {
		d := randomDiagnosis(random, known)
		for range 1 + random.IntN(3) {
			all = append(all, d)
		}
	}
	return all
}

// distinct is the sequence without repetitions.
func distinct(all []diagnosis) []string {
	var emitted []string
	for i := range all {
		emitted = append(emitted, all[i].text())
	}
	return slices.Compact(emitted)
}

func TestTheRecordsAreTheSequenceOfStates(t *testing.T) {
	known := catalog.Causes()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		b, s := newBench(t, func(c *Config) { c.Initial = true }), newServer("a")
		all := states(random, known)
		previous := ""
		for i, d := range all {
			b.consume(t, float64(i), s.reports(float64(i), d)...)
		}
		var records []string
		for _, record := range b.sink.records() {
			records = append(records, textOf(record))
			assert.Equal(t, previous, text(record, "vllm.diagnosis.previous_condition"))
			previous = text(record, "vllm.diagnosis.condition")
			severity, _ := record.Attributes().Get("vllm.diagnosis.severity")
			assert.Equal(t, map[int64]plog.SeverityNumber{0: 9, 1: 10, 2: 13, 3: 17}[severity.Int()], record.SeverityNumber())
		}
		require.Equal(t, distinct(all), records, "seed %d", seed)
	}
}

// However a batch is split, in whatever order its parts come, and whatever is
// refused on the way, the last record of each time is the state of that time.
func TestTheRecordsAreTheSequenceOfStatesInPartsToo(t *testing.T) {
	known := catalog.Causes()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 6))
		b, s := newBench(t, func(c *Config) { c.Initial = true }), newServer("a")
		all := states(random, known)
		for i, d := range all {
			parts := s.reports(float64(i), d)
			random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			b.second = float64(i)
			for len(parts) > 0 {
				n := 1 + random.IntN(len(parts))
				batch := joined(parts[:n]...)
				parts = parts[n:]
				for b.sink.refuses = random.IntN(5) == 0; b.ConsumeMetrics(t.Context(), batch) != nil; {
					b.sink.refuses = false
				}
			}
		}
		require.NoError(t, b.Shutdown(t.Context()))
		last := map[pcommon.Timestamp]string{}
		var times []pcommon.Timestamp
		for _, record := range b.sink.records() {
			if _, again := last[record.Timestamp()]; !again {
				times = append(times, record.Timestamp())
			}
			last[record.Timestamp()] = textOf(record)
		}
		var records []string
		for _, at := range times {
			records = append(records, last[at])
		}
		require.True(t, slices.IsSorted(times))
		require.Equal(t, distinct(all), slices.Compact(records), "seed %d", seed)
	}
}
