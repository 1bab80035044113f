package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func decidedDefects(t *testing.T) (*knowledge, *decisionList) {
	t.Helper()
	k := knownDefects(t)
	l, err := parseDecisions([]byte(smallDecisions), k)
	require.NoError(t, err)
	return k, l
}

func TestThePageListsTheDefectsByVersion(t *testing.T) {
	parts := knownDefects(t).defects.wrongParts()
	assert.Equal(t, `| Since | Fixed in | Defect | Only with | Seen on |
|---|---|---|---|---|
| 0.9.0 | – | All begins again. [too-new](#too-new) | fast, slow |  |
| 0.8.0 | – | Each success \| failure counts twice. [too-many](#too-many) |  |  |
| 0.7.3 | 0.9.0 | Blocks are too big. [too-big](#too-big) | fast | 0.7.3, 0.8.0 |
`, parts["list"])
	assert.Contains(t, parts["setups"], "| fast | A fast one (`--fast`). | It runs. |\n| slow | A slow one. | not at all |\n")
}

func TestTheNewestDefectsComeFirst(t *testing.T) {
	l := &defectList{Defects: []defect{
		{ID: "a", Since: "0.8.0", Until: "0.9.2"},
		{ID: "b", Since: "0.8.0"},
		{ID: "c", Since: "0.9.0", Until: "0.10.0"},
		{ID: "d", Since: "0.10.0"},
		{ID: "e", Until: "0.10.0"},
		{ID: "f"},
	}}
	var ids []string
	for _, one := range l.sorted() {
		ids = append(ids, one.ID)
	}
	assert.Equal(t, []string{"d", "b", "f", "c", "e", "a"}, ids)
}

func TestADefectIsExplained(t *testing.T) {
	l := knownDefects(t).defects
	page := l.wrongParts()["defects"]
	for _, want := range []string{
		"### too-new\n\nIt is new.\n**Advice:** Wait.\n**Here:** No derived value is wrong because of it.\n\n" +
			"Changed in 0.9.0. Only with fast, slow. Metrics: all of the server. [#14](https://github.com/vllm-project/vllm/issues/14)\n\n",
		"**Here:** Corrected.\n\nSince 0.8.0, not fixed. Metrics: `vllm.request.success`. [#13]",
		"Since 0.7.3, fixed in 0.9.0. Only with fast. Metrics: `vllm.kv_cache.block_size`. [#12]",
		", [vllm/blocks.py](https://github.com/vllm-project/vllm/blob/v0.8.0/vllm/blocks.py)\n",
	} {
		assert.Contains(t, page, want)
	}
	assert.Equal(t, "`a`, `b`, `c`, `d` and 2 more", (&defect{Metrics: strings.Split("a b c d e f", " ")}).metricList())
	assert.Equal(t, "`a`, `b`, `c`, `d`, `e`", (&defect{Metrics: strings.Split("a b c d e", " ")}).metricList(), "one more is as short as its number")
}

func TestThePageDoesNotContradictTheDecisions(t *testing.T) {
	k := knownDefects(t)
	k.defects.Defects[0].Done = "Corrected."
	_, err := parseDecisions([]byte(smallDecisions), k)
	assert.ErrorContains(t, err, "defect too-big: signal:heat is withheld, and done does not have this word")
}

func TestTheReferencesMentionDefects(t *testing.T) {
	k, l := decidedDefects(t)
	receiver, err := receiverReference(k.catalogue, k.defects)
	require.NoError(t, err)
	const page = "](../../docs/what-vllm-gets-wrong.md#"
	for _, want := range []string{
		"(`vllm:cache_config_info` label `block_size`) **Defects:** [too-big" + page + "too-big).\n",
		"`vllm:request_success_total` 0.9.0) **Defects:** [too-many" + page + "too-many).\n",
		"all metrics of a server: [too-new" + page + "too-new).",
	} {
		assert.Contains(t, string(receiver), want)
	}
	processor, err := processorReference(k, l)
	require.NoError(t, err)
	assert.Contains(t, string(processor), "Limits:** Much. <br>**Defects:** corrected [too-many"+page+"too-many), [too-big"+page+"too-big).\n")

	l.Decisions[0].Decision = "unaffected"
	processor, err = processorReference(k, l)
	require.NoError(t, err)
	assert.NotContains(t, string(processor), "too-big")
}
