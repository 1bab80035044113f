package scenario

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const whole20 = "about: x\nlength: 20m\nworkload: {rate: 6}\n"

func TestEverythingThatAFileCanSay(t *testing.T) {
	s, err := parse("dir/all.yaml", []byte(`
about: all of it
length: 1h
seed: 7
hardware: 70b-tp4-h100
servers: 2
server_shares: [0.25, 0.5]
engines: 2
engine_shares: [0.75, 0.25]
kv_cache_tokens: 320000
max_num_seqs: 64
max_model_len: 8192
lora_slots: 3
speculation: true
count_corrupted: true
kv_cache_metrics_sample: 0.05
transfer: {share: 0.5, latency: 20ms, bytes_per_second: 1e10}
workload:
  like: code
  rate: 2
  arrival_variation: 1
  timeout: 90s
  output_median: 20
  output_sigma: 0
  adapter_share: 0.5
  adapters: 4
changes:
  - {at: 5m, engines: [1], set: {clock: 0.5, blocks: 0.5}}
  - {at: 6m30s, set: {error_rate: 0.25}}
faults:
  - {kind: unreachable, at: 1m, until: 90s}
  - {kind: frozen_gauges, at: 6m, until: 7m}
`))
	require.NoError(t, err)
	assert.Equal(t, "all", s.Name)
	assert.Equal(t, time.Hour, s.Length)
	c := s.Config
	w := *c.Workload
	c.Workload = nil
	assert.Equal(t, vllmsim.Config{
		Seed: 7, Hardware: "70b-tp4-h100", Targets: 2, Shares: []float64{0.25, 0.5}, Engines: 2, Weights: []float64{0.75, 0.25},
		KVCacheTokens: 320000, MaxSeqs: 64, MaxModelLen: 8192, LoRA: true, MaxLoRAs: 3, SpecDecode: true, NaNCounter: true, FollowBlocks: 0.05,
		Transfer: engine.Transfer{Share: 0.5, Latency: 0.02, BytesPerSecond: 1e10},
		Changes: []engine.Change{
			{At: 300, Parameter: engine.ParamClock, Value: 0.5, Engines: []int{1}},
			{At: 300, Parameter: engine.ParamBlocks, Value: 0.5, Engines: []int{1}},
			{At: 390, Parameter: engine.ParamErrorRate, Value: 0.25},
		},
		Faults: []vllmsim.Fault{{At: 60, Until: 90, Kind: vllmsim.FaultUnreachable}, {At: 360, Until: 420, Kind: vllmsim.FaultFrozenGauges}},
	}, c)
	want := engine.Code(2)
	want.CV, want.Timeout, want.Output, want.AdapterShare, want.Adapters = 1, 90, engine.Lengths{Median: 20}, 0.5, 4
	assert.Equal(t, want, w)
	assert.Equal(t, []string{
		"1m0s unreachable until 1m30s", "5m0s clock = 0.5 on engines [1]", "5m0s blocks = 0.5 on engines [1]",
		"6m0s frozen_gauges until 7m0s", "6m30s error_rate = 0.25",
	}, s.Plan())
}

func TestMistakesAreReportedWithFileLineAndKey(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                  {"", "f.yaml: nothing in it"},
		"not YAML":               {"a: [", "f.yaml: not YAML"},
		"no mapping":             {"- 1", "f.yaml:1: want keys and values"},
		"unknown key":            {whole20 + "wokload: 1", "f.yaml:4: wokload: unknown key: want one of about, length,"},
		"unknown inner key":      {"about: x\nworkload:\n  rat: 1", "f.yaml:3: workload.rat: unknown key: want one of trace, traffic,"},
		"a metric":               {whole20 + "changes: [{at: 1m, set: {num_requests_running: 5}}]", "changes[0].set.num_requests_running: unknown key: want one of clock,"},
		"twice":                  {whole20 + "about: y", "f.yaml:4: about: this key stands here twice"},
		"twice below":            {whole20 + "processor:\n  window: 1m\n  window: 2m", "f.yaml:6: processor.window: this key stands here twice"},
		"twice in a list":        {whole20 + "processor: {objectives: [{name: a},\n {name: b, name: c}]}", "f.yaml:5: processor.objectives[1].name: this key stands here twice"},
		"an alias":               {whole20 + "changes: &c []\nfaults: *c", "f.yaml:5: faults: aliases such as *c are not supported; write the value itself"},
		"an alias in settings":   {whole20 + "processor: {a: &a {x: 1}, b: *a}", "f.yaml:4: processor.b: aliases such as *a are not supported"},
		"an alias as a key":      {whole20 + "processor: {&a x: 1, *a : 2}", "f.yaml:4: processor: want a name as the key"},
		"a merge":                {"a: &a {about: x}\n<<: *a", "f.yaml:2: <<: aliases such as *a are not supported"},
		"a list as a key":        {whole20 + "processor: {[a]: 2}", "f.yaml:4: processor: want a name as the key"},
		"a second document":      {whole20 + "---\nabout: y", "f.yaml:4: a second document begins here: want one story in a file, without ---"},
		"an empty second one":    {whole20 + "---\n", "f.yaml:4: a second document begins here"},
		"a wrong second one":     {whole20 + "---\na: [", "f.yaml: not YAML"},
		"about missing":          {"length: 1m\nworkload: {rate: 1}", "f.yaml:1: about: missing"},
		"about no text":          {"about: 1", "f.yaml:1: about: want text"},
		"length missing":         {"about: x\nworkload: {rate: 1}", "length: missing"},
		"length no duration":     {"length: 20", `f.yaml:1: length: want a duration such as 90s or 5m, not "20"`},
		"length too short":       {"length: 1s", "length: 1s is not between 1m0s and 168h0m0s"},
		"workload missing":       {"about: x\nlength: 1m", "workload: missing"},
		"workload without rate":  {"about: x\nlength: 1m\nworkload: {like: code}", "f.yaml:3: workload: rate: missing"},
		"unknown workload":       {"workload: {like: poems}", `workload.like: unknown workload "poems": want chat or code`},
		"unknown hardware":       {"hardware: abacus", `f.yaml:1: hardware: unknown hardware "abacus": want one of 32b-b300, 32b-h200,`},
		"number as text":         {"workload: {rate: many}", `workload.rate: want a number, not "many"`},
		"number that is none":    {"workload: {rate: .nan}", "workload.rate: NaN is not between"},
		"number out of range":    {"workload: {prefix_share: 1.5}", "workload.prefix_share: 1.5 is not between 0 and 1"},
		"half an engine":         {"engines: 1.5", "engines: want a whole number, not 1.5"},
		"no boolean":             {"speculation: 3", `speculation: want true or false, not "3"`},
		"no list":                {whole20 + "changes: {}", "f.yaml:4: changes: want a list"},
		"change at no time":      {whole20 + "changes: [{set: {clock: 1}}]", "changes[0]: at: missing"},
		"change of nothing":      {whole20 + "changes: [{at: 1m}]", "changes[0]: set: missing"},
		"change out of range":    {whole20 + "changes: [{at: 1m, set: {bandwidth: 99}}]", "changes[0].set.bandwidth: 99 is not between 0.01 and 10"},
		"change after the end":   {whole20 + "changes: [{at: 21m, set: {clock: 1}}]", "changes[0].at: 21m0s is not between 0s and 20m0s"},
		"no such engine":         {whole20 + "changes: [{at: 1m, engines: [1], set: {clock: 1}}]", "changes[0].engines[0]: 1 is not between 0 and 0"},
		"engines of the server":  {whole20 + "changes: [{at: 1m, engines: [0], set: {front_end: 2}}]", "changes[0]: set.front_end: it belongs to the whole server"},
		"unknown fault":          {whole20 + "faults: [{kind: fire}]", `faults[0].kind: unknown fault "fire": want one of [frozen_gauges restart unreachable]`},
		"fault of no kind":       {whole20 + "faults: [{at: 1m, until: 2m}]", "faults[0]: kind: missing"},
		"fault backwards":        {whole20 + "faults: [{kind: restart, at: 2m, until: 1m}]", "faults[0]: until: want at and until, the later one second"},
		"faults at once":         {whole20 + "faults: [{kind: restart, at: 1m, until: 3m}, {kind: restart, at: 2m, until: 4m}]", "faults[1]: at: before the end of the fault before"},
		"slots without adapters": {whole20 + "lora_slots: 2", "f.yaml:1: lora_slots: it goes with workload.adapter_share"},
		"servers without shares": {whole20 + "servers: 2", "f.yaml:1: server_shares: they go with servers"},
		"shares without servers": {whole20 + "server_shares: [1]", "f.yaml:1: server_shares: they go with servers"},
		"share above 1":          {"server_shares: [0.5, 1.5]", "f.yaml:1: server_shares[1]: 1.5 is not between 0 and 1"},
		"shares of other servers": {
			whole20 + "servers: 3\nserver_shares: [0.5, 0.5]", "f.yaml:5: server_shares: want a share for each of the servers, which are 3, not 2",
		},
		"shares of nothing": {
			whole20 + "servers: 2\nserver_shares: [0, 0]", "f.yaml:5: server_shares: at least one must be above 0",
		},
		"shares of clusters": {
			"about: x\nlength: 20m\nservers: 2\nserver_shares: [0.5, 0.5]\nworkload: {rate: 6, arrival_variation: 2}",
			"f.yaml: shares of servers need a workload of independent arrivals",
		},
		"shares of other engines": {
			whole20 + "engine_shares: [0.5, 0.5]", "f.yaml:4: engine_shares: want a share for each of the engines, which are 1, not 2",
		},
		"shares of no engine": {whole20 + "engines: 2\nengine_shares: [0, 0]", "f.yaml:5: engine_shares: at least one must be above 0"},
		"a cache for no request": {
			whole20 + "kv_cache_tokens: 16", "f.yaml:4: kv_cache_tokens: a KV cache of 1 blocks of 16 tokens cannot hold one request of 16384 tokens; raise kv_cache_tokens, or lower max_model_len",
		},
		"requests for no cache": {
			whole20 + "max_model_len: 1000000", "f.yaml:4: max_model_len: a KV cache of ",
		},
		"transfer without rate": {whole20 + "transfer: {share: 0.5}", "f.yaml: transfers need a rate"},
		"restart within a wave": {
			"about: x\nlength: 20m\nworkload: {rate: 6, swing: 0.5, period: 1m}\nfaults: [{kind: restart, at: 1m, until: 2m}]",
			"f.yaml: a restart needs a workload without waves and bursts",
		},
	} {
		_, err := parse("f.yaml", []byte(c.text))
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.want, name)
			assert.True(t, strings.HasPrefix(err.Error(), "f.yaml:"), "%s: %v", name, err)
		}
	}
	_, err := Load("/does/not/exist.yaml")
	require.ErrorContains(t, err, "no such file")
}

// Whatever a file holds, it is read or refused in a sentence.
func FuzzReading(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(whole20 + "changes: [{at: 1m, engines: [.inf], set: {clock: *x}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := open("f.yaml", text)
		if err != nil {
			return
		}
		var s Scenario
		if err := s.read(root); err != nil {
			require.Regexp(t, `^f\.yaml:\d+: `, err.Error())
			return
		}
		require.NotEmpty(t, s.About)
		// One line for each entry, however many steps a ramp has and whatever is sought.
		require.Len(t, s.Plan(), len(s.Injections)+len(s.Config.Faults))
		require.True(t, slices.IsSortedFunc(s.Config.Changes, func(a, b engine.Change) int { return cmp.Compare(a.At, b.At) }))
	})
}
