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
	k, l := decidedDefects(t)
	parts := k.wrongParts(l)
	assert.Equal(t, `| Since | Fixed in | Defect | Only with | Seen on |
|---|---|---|---|---|
| 0.9.0 | – | All begins again. [too-new](#too-new) | fast, slow | read, not seen |
| 0.8.0 | – | Each success \| failure counts twice. [too-many](#too-many) |  | read, not seen |
| 0.7.3 | 0.9.0 | Blocks are too big. [too-big](#too-big) | fast | 0.7.3, 0.8.0 |
`, parts["list"])
	assert.Contains(t, parts["setups"], "| fast | A fast one (`--fast`). | It runs. |\n| slow | A slow one. | not at all: the defect counts as possible |\n")
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
	k, l := decidedDefects(t)
	page := k.wrongParts(l)["defects"]
	for _, want := range []string{
		"## Not fixed: details\n\n### too-new\n\n**All begins again.** It is new.\n",
		"| Versions | changed in 0.9.0 |\n| Seen on | read, not seen |\n| Servers | all; only with [fast](#setups) and [slow](#setups) |\n| Metrics | all of the server |\n",
		"| Seen in the data | No. |\n| Advice | Wait. |\n| Source | [#14](https://github.com/vllm-project/vllm/issues/14). Not verified. |\n\nWhat is done about it is not decided yet.\n",
		"**Each success | failure counts twice.** One is enough.",
		"In what is derived:\n\n- **corrected**: `vllm.success_rate`, `vllm.slo.good`, `vllm.slo.valid`. It is divided | halved.\n- **unaffected**: all else.\n",
		"## Fixed in 0.9.0\n\n### too-big\n",
		"| Versions | since 0.7.3, fixed in 0.9.0 |\n| Seen on | 0.7.3, 0.8.0 |\n| Servers | V1 engine with the Python front end; only with [fast](#setups) |\n",
		"| Seen in the data | They exceed the cache. |\n| Advice | Measure them. |\n",
		"[vllm/blocks.py](https://github.com/vllm-project/vllm/blob/v0.8.0/vllm/blocks.py) of v0.8.0. Seen in vLLM's source or in a merged change. |",
		"- **withheld**: signal `heat`, the rule for idle engines. It has no value.\n",
	} {
		assert.Contains(t, page, want)
	}
	assert.Less(t, strings.Index(page, "It is divided"), strings.Index(page, "It has no value"))

	none := &defect{ID: "none", Metrics: []string{"vllm.unused"}}
	assert.Equal(t, "Nothing that is derived is wrong because of it.\n\n", k.decisionsAbout(none, l))
}

func TestLongListsOfSubjectsAreCut(t *testing.T) {
	subjects := strings.Split("a b c d e f g h i j k l m n", " ")
	assert.Equal(t, "`a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`, `i`, `j`, `k`, `l` and 2 more", subjectList(subjects))
	assert.Equal(t, "`a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`, `i`, `j`, `k`, `l`, `m`", subjectList(subjects[:13]), "one more is as short as its number")
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
	assert.NotContains(t, k.wrongParts(l)["defects"], "It is divided", "what is unaffected is most of what is derived")
	processor, err = processorReference(k, l)
	require.NoError(t, err)
	assert.NotContains(t, string(processor), "too-big")
}
