package content

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These may be empty in an alert that is complete.
var optional = map[string]bool{
	"Name": true, "Set": true, "For": true, "KeepFiringFor": true, "Monitor": true, "NoMonitor": true, "FiresIn": true, "ShownBy": true,
}

// Each part that an alert must have is missed where it is empty, also a part that is added later.
func TestEachEmptyPartOfAnAlertIsAGap(t *testing.T) {
	t.Parallel()
	require.NoError(t, Gaps(Groups()))
	complete := Groups()[0].Alerts[0]
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Alert]()) {
		if optional[field.Name] {
			continue
		}
		a := complete
		reflect.ValueOf(&a).Elem().FieldByIndex(field.Index).SetZero()
		assert.ErrorContains(t, Gaps([]Group{{Alerts: []Alert{a}}}), "alert VLLMPoolNotServing has no "+field.Name+": write ")
	}
}

// Of two parts either is enough.
func TestAnAlertNeedsAMonitorOrAReasonAndAStoryOrATest(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(a *Alert){
		"Monitor":                         func(a *Alert) { a.Monitor = nil },
		"Query of its Monitor":            func(a *Alert) { a.Monitor = &Monitor{Text: "It happens."} },
		"Text of its Monitor":             func(a *Alert) { a.Monitor = &Monitor{Query: "max(last_5m):vllm.up{*} > 0"} },
		"FiresIn":                         func(a *Alert) { a.FiresIn = nil },
		"Text of a step of its Diagnosis": func(a *Alert) { a.Diagnosis = []Step{{Query: "vllm_up"}} },
	} {
		a := Groups()[0].Alerts[0]
		change(&a)
		assert.ErrorContains(t, Gaps([]Group{{Alerts: []Alert{a}}}), "has no "+name+": write ")
	}
	a := Groups()[0].Alerts[0]
	a.Monitor, a.NoMonitor, a.FiresIn, a.ShownBy = nil, "It cannot be asked.", nil, "TestOther"
	assert.NoError(t, Gaps([]Group{{Alerts: []Alert{a}}}))
	a.Set, a.NoMonitor = Wire, ""
	assert.NoError(t, Gaps([]Group{{Alerts: []Alert{a}}}), "vLLM's own names are not sent to Datadog")
}
