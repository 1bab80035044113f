package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const smallDefects = `setups:
  - {name: fast, meaning: "A fast one (` + "`--fast`" + `).", visible: "It runs."}
  - {name: slow, meaning: "A slow one."}
defects:
  - id: too-big
    title: "Blocks are too big."
    meaning: "They are measured in feet."
    metrics: [vllm.kv_cache.block_size]
    since: 0.7.3
    until: 0.9.0
    setups: [fast]
    engines: [python]
    advice: "Measure them."
    done: "Corrected. Withheld where they exceed the cache."
    sources: ["#12", "vllm/blocks.py v0.8.0"]
    seen: [0.7.3, 0.8.0]
  - id: too-many
    title: "Each success | failure counts twice."
    meaning: "One is enough."
    advice: "Divide it."
    done: "Corrected."
    metrics: [vllm.request.success]
    since: 0.8.0
    sources: ["#13"]
  - id: too-new
    title: "All begins again."
    meaning: "It is new."
    advice: "Wait."
    metrics: ["*"]
    since: 0.9.0
    change: true
    setups: [fast, slow]
    sources: ["#14"]
`

func TestMistakesInTheDefectsAreReported(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"unknown key":                {"meaning: \"It is new.\"", "sense: \"It is new.\"", "field sense not found"},
		"unknown key of a setup":     {"visible: \"It runs.\"", "seen: \"It runs.\"", "field seen not found"},
		"an upper-case id":           {"id: too-big", "id: Too-big", "defect Too-big: the id must be lower-case words"},
		"an id with an underscore":   {"id: too-big", "id: too_big", "the id must be lower-case words"},
		"an id twice":                {"id: too-many", "id: too-big", "defect too-big: the id is taken"},
		"half a title":               {"Blocks are too big.", "Blocks are too big", "title must be a whole sentence"},
		"no meaning":                 {"meaning: \"It is new.\"", "meaning: \"\"", "defect too-new: meaning is missing"},
		"half a meaning":             {"It is new.", "It is new", "meaning is missing or does not end with a dot"},
		"no advice":                  {"    advice: \"Wait.\"\n", "", "advice is missing or does not end with a dot"},
		"half of what is done":       {"they exceed the cache.", "they exceed the cache", "done does not end with a dot"},
		"no source":                  {"sources: [\"#14\"]", "sources: []", "defect too-new: sources is missing"},
		"no metric":                  {"metrics: [vllm.request.success]", "metrics: []", "defect too-many: metrics is missing"},
		"an unknown metric":          {"metrics: [vllm.request.success]", "metrics: [vllm.success]", `"vllm.success" is not a metric of vLLM`},
		"a derived metric":           {"metrics: [vllm.request.success]", "metrics: [vllm.slo.good]", `"vllm.slo.good" is not a metric of vLLM`},
		"a metric twice":             {"[vllm.request.success]", "[vllm.request.success, vllm.request.success]", "is there twice"},
		"all metrics and one":        {`["*"]`, `["*", vllm.request.success]`, "must be alone"},
		"half a version":             {"since: 0.7.3", "since: v0.7", `"v0.7" is not a version`},
		"an end before the start":    {"until: 0.9.0", "until: 0.7.3", "since 0.7.3 must be before until 0.7.3"},
		"a change without a version": {"    since: 0.9.0\n", "", "a change needs the version"},
		"an unknown setup":           {"setups: [fast]", "setups: [quick]", `there is no setup "quick"`},
		"a setup twice":              {"name: slow", "name: fast", "setup fast: the name is taken"},
		"a setup of no defect":       {"setups: [fast, slow]", "setups: [fast]", "setup slow: no defect needs it"},
		"a setup without a meaning":  {"meaning: \"A slow one.\"", "meaning: \"\"", "setup slow: meaning is missing"},
		"a setup with a hyphen":      {"name: slow", "name: slow-one", "the name must be lower-case words joined by underscores"},
		"an unknown engine":          {"engines: [python]", "engines: [perl]", `the engine "perl" must be`},
		"a source without a version": {"vllm/blocks.py v0.8.0", "vllm/blocks.py", `the source "vllm/blocks.py" must be`},
		"seen before it began":       {"seen: [0.7.3, 0.8.0]", "seen: [0.7.2, 0.8.0]", `defect too-big: it was seen on 0.7.2, which does not have it by since "0.7.3" and until "0.9.0"`},
		"seen when it was fixed":     {"seen: [0.7.3, 0.8.0]", "seen: [0.9.0]", "it was seen on 0.9.0, which does not have it"},
		"seen on half a version":     {"seen: [0.7.3, 0.8.0]", "seen: [\"0.8\"]", `"0.8" is not a version`},
		"seen on a version twice":    {"seen: [0.7.3, 0.8.0]", "seen: [0.8.0, 0.8.0]", `"0.8.0" is there twice in seen`},
		"seen on the newest first":   {"seen: [0.7.3, 0.8.0]", "seen: [0.8.0, 0.7.3]", "seen must have the oldest version first"},
		"a setup needed twice":       {"setups: [fast, slow]", "setups: [fast, slow, slow]", `defect too-new: "slow" is there twice in setups`},
		"an engine twice":            {"engines: [python]", "engines: [python, python]", `"python" is there twice in engines`},
		"a source twice":             {"[\"#14\"]", "[\"#14\", \"#14\"]", `"#14" is there twice in sources`},
		"two lines of title":         {"Blocks are too big.", "Blocks are\\ntoo big.", "title must be a whole sentence"},
		"a second document":          {"    sources: [\"#14\"]\n", "    sources: [\"#14\"]\n---\ndefects: []\n", "the file must be one YAML document"},
		"a source without a number":  {`"#13"`, `"13"`, `the source "13" must be`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, smallDefects, tc.old)
			_, err := parseDefects([]byte(strings.Replace(smallDefects, tc.old, tc.new, 1)), diagnosedCatalogue(t))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// The ids become names of constants in Go.
func TestTwoDefectsHaveTwoConstants(t *testing.T) {
	content := strings.NewReplacer("id: too-big", "id: top-2", "id: too-many", "id: top2").Replace(smallDefects)
	_, err := parseDefects([]byte(content), diagnosedCatalogue(t))
	assert.ErrorContains(t, err, "defect top2: the id is taken by top-2: both are DefectTop2 in Go")
}

func TestVersionsCompareAsNumbers(t *testing.T) {
	assert.True(t, earlier("0.9.2", "0.10.0"))
	assert.True(t, earlier("0.10.1", "0.10.2"))
	assert.True(t, earlier("0.99.0", "1.0.0"))
	assert.False(t, earlier("0.10.0", "0.9.2"))
	assert.False(t, earlier("0.10.0", "0.10.0"))
}
