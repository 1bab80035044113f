package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withDeprecations puts entries into the small catalogue.
func withDeprecations(entries string) []byte {
	return []byte(strings.Replace(small, "topics:\n", "deprecations:\n"+entries+"topics:\n", 1))
}

func TestDeprecationsAreChecked(t *testing.T) {
	const alert = "  - {kind: alert, name: Old, since: 0.2.0, gone: 0.2.0, replaced_by: [New], note: It is shipped now.}\n"
	_, err := parse(withDeprecations(alert))
	require.NoError(t, err)
	for name, c := range map[string]struct{ entries, want string }{
		"a kind that does not exist":  {strings.Replace(alert, "kind: alert", "kind: noise", 1), `the kind "noise" is unknown`},
		"no release":                  {strings.Replace(alert, "since: 0.2.0", "since: soon", 1), `since must be a release`},
		"two numbers":                 {strings.Replace(alert, "since: 0.2.0", `since: "0.2"`, 1), `since must be a release`},
		"twice":                       {alert + alert, "is there twice"},
		"an older one behind":         {alert + strings.NewReplacer("Old", "Older", "since: 0.2.0", "since: 0.1.0").Replace(alert), "is older than the entry before it"},
		"gone before":                 {strings.Replace(alert, "gone: 0.2.0", "gone: 0.1.0", 1), "gone must be a release from 0.2.0 on"},
		"no note":                     {strings.Replace(alert, "It is shipped now.", `""`, 1), "needs a note"},
		"nothing in its place":        {strings.Replace(alert, "replaced_by: [New], ", "", 1), "why nothing does"},
		"values of an alert":          {strings.Replace(alert, "name: Old", "name: Old, values: [a]", 1), "values are for the kind value"},
		"a value without values":      {strings.Replace(alert, "kind: alert", "kind: value", 1), "values are for the kind value"},
		"a gate for what is gone":     {strings.Replace(alert, "name: Old", "name: Old, gate: receiver.vllm.old", 1), "a gate cannot restore what is gone"},
		"promised and gone at once":   {strings.Replace(alert, "name: Old", "name: Old, promised: true", 1), "it must work in 2 minor releases"},
		"promised, one release":       {strings.NewReplacer("name: Old", "name: Old, promised: true", "gone: 0.2.0", "gone: 0.3.0").Replace(alert), "it must work in 2 minor releases"},
		"promised, within 1.x":        {strings.NewReplacer("name: Old", "name: Old, promised: true", "since: 0.2.0", "since: 1.2.0", "gone: 0.2.0", "gone: 1.9.0").Replace(alert), "until the next major one"},
		"a gone metric that is there": {"  - {kind: metric, name: vllm.request.success, spelled: [a], since: 0.2.0, gone: 0.4.0, note: There is nothing.}\n", "a metric that works is in metrics"},
		"a metric that is not there":  {"  - {kind: metric, name: vllm.nothing, since: 0.2.0, note: There is nothing.}\n", "a metric that works is in metrics"},
		"gone without a spelling":     {"  - {kind: metric, name: vllm.nothing, since: 0.2.0, gone: 0.4.0, note: There is nothing.}\n", "needs spelled"},
		"replaced by nothing known":   {"  - {kind: metric, name: vllm.request.success, since: 0.2.0, replaced_by: [vllm.x], note: Use it.}\n", `"vllm.x", which is no metric`},
		"a key that does not exist":   {strings.Replace(alert, "name: Old", "name: Old, until: 1", 1), "field until not found"},
	} {
		_, err := parse(withDeprecations(c.entries))
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.want, name)
	}
	for name, entries := range map[string]string{
		"promised, two releases": strings.NewReplacer("name: Old", "name: Old, promised: true", "gone: 0.2.0", "gone: 0.4.0").Replace(alert),
		"promised, until 1.0":    strings.NewReplacer("name: Old", "name: Old, promised: true", "gone: 0.2.0", "gone: 1.0.0").Replace(alert),
		"promised, until 2.0":    strings.NewReplacer("name: Old", "name: Old, promised: true", "since: 0.2.0", "since: 1.2.0", "gone: 0.2.0", "gone: 2.0.0").Replace(alert),
		"a metric that works":    "  - {kind: metric, name: vllm.request.success, since: 0.2.0, replaced_by: [vllm.slo.good], note: Use it.}\n",
	} {
		_, err := parse(withDeprecations(entries))
		require.NoError(t, err, name)
	}
}

func TestThePageOfDeprecationsSaysUntilWhenAndWhatInstead(t *testing.T) {
	doc, err := parse(withDeprecations(`
  - {kind: alert, name: Old, since: 0.2.0, gone: 0.2.0, replaced_by: [New, Newer], note: It is shipped | now.}
  - {kind: value, name: a_total, label: reason, values: [x, y], since: 0.2.0, gone: 0.3.0, replaced_by: [b_total], note: Moved.}
  - {kind: metric, name: vllm.request.success, since: 0.3.0, promised: true, replaced_by: [vllm.slo.good], note: Use it.}
  - {kind: form, name: plain resources, since: 0.4.0, gate: receiver.vllm.plain, replaced_by: [others], note: All the same.}
`))
	require.NoError(t, err)
	table := doc.deprecationTable()
	works, gone, found := strings.Cut(table, "### Gone")
	require.True(t, found)
	assert.Contains(t, works, "| Metric | `vllm.request.success` | 0.3.0 | at least 0.5.0 | `vllm.slo.good` | yes | Use it. |")
	assert.Contains(t, works, "| Form | plain resources | 0.4.0 | with `--feature-gates=-receiver.vllm.plain` | others | no | All the same. |")
	assert.Contains(t, gone, "| Alert | `Old` | 0.2.0 | before 0.2.0 | `New`, `Newer` | no | It is shipped \\| now. |")
	assert.Contains(t, gone, "| Value | `a_total`, `reason` `x`, `y` | 0.2.0 | before 0.3.0 | `b_total` | no | Moved. |")
	assert.Less(t, strings.Index(gone, "a_total"), strings.Index(gone, "Old"), "the newest is first")
	assert.Equal(t, []string{"Deprecated since 0.3.0. Use `vllm.slo.good`. Use it."}, doc.deprecatedNotes("vllm.request.success"))
	assert.Empty(t, doc.deprecatedNotes("vllm.slo.good"))
}
