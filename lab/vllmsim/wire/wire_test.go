package wire

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The expected texts are what CPython's repr and prometheus_client's
// floatToGoString give.
func TestNumbersLookLikeThePythonClients(t *testing.T) {
	for _, c := range []struct {
		value          float64
		padded, modern string
	}{
		{0, "0.0", "0.0"},
		{3, "3.0", "3.0"},
		{-1, "-1.0", "-1.0"},
		{0.1, "0.1", "0.1"},
		{0.0001, "0.0001", "0.0001"},
		{5.882698982295764e-05, "5.882698982295764e-05", "5.882698982295764e-05"},
		{1e-5, "1e-05", "1e-05"},
		{999999, "999999.0", "999999.0"},
		{123456.75, "123456.75", "123456.75"},
		{1000000, "1e+06", "1e+06"},
		{1048576, "1.048576e+06", "1.048576e+06"},
		{1234567.5, "1.2345675e+06", "1.2345675e+06"},
		{1778261548.0413878, "1.7782615480413878e+09", "1.7782615480413878e+09"},
		{39024848896, "3.9024848896e+010", "3.9024848896e+10"},
		{4243443528183784.5, "4.2434435281837845e+015", "4.2434435281837845e+15"},
		{1e16, "1e+16", "1e+16"},
		{2.5e17, "2.5e+17", "2.5e+17"},
		{-1234567, "-1234567.0", "-1234567.0"},
		{math.NaN(), "NaN", "NaN"},
		{math.Inf(1), "+Inf", "+Inf"},
		{math.Inf(-1), "-Inf", "-Inf"},
	} {
		assert.Equal(t, c.padded, pythonClient(c.value, true))
		assert.Equal(t, c.modern, pythonClient(c.value, false))
	}
}

func TestNumbersLookLikeTheRustClients(t *testing.T) {
	for value, want := range map[float64]string{0: "0.0", 671: "671.0", 1234567: "1234567.0", 0.25: "0.25", 1e-5: "1e-5"} {
		assert.Equal(t, want, rustFloat(value))
	}
}

// two engines, one family of each kind.
func families() []Family {
	engine := func(n string) []Label { return []Label{{"model_name", `a"b\c`}, {"engine", n}} }
	return []Family{
		{Name: "vllm:running", Help: "Line\nend.", Type: Gauge, Whole: true, Points: []Point{{Labels: engine("0"), Value: 2}}},
		{Name: "vllm:tokens", Help: "Tokens.", Type: Counter, Points: []Point{
			{Labels: engine("0"), Value: 5, Created: 1.5e9}, {Labels: engine("1"), Value: 0, Created: 1.5e9},
		}},
		{Name: "vllm:n", Help: "Numbers.", Type: Histogram, Points: []Point{
			{Labels: engine("0"), Value: 4, Count: 3, Bounds: []float64{1, 2}, Cumulative: []uint64{2, 3}, Created: 1.5e9},
			{Labels: engine("1"), Value: 0, Count: 0, Bounds: []float64{1, 2}, Cumulative: []uint64{0, 0}, Created: 1.5e9},
		}},
	}
}

func encode(t *testing.T, e Encoder, f []Family) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, e.Encode(&out, f))
	return out.String()
}

func TestOnePythonProcessSortsLabelsAndAddsCreationTimes(t *testing.T) {
	assert.Equal(t, `# HELP vllm:running Line\nend.
# TYPE vllm:running gauge
vllm:running{engine="0",model_name="a\"b\\c"} 2.0
# HELP vllm:tokens_total Tokens.
# TYPE vllm:tokens_total counter
vllm:tokens_total{engine="0",model_name="a\"b\\c"} 5.0
vllm:tokens_total{engine="1",model_name="a\"b\\c"} 0.0
# HELP vllm:tokens_created Tokens.
# TYPE vllm:tokens_created gauge
vllm:tokens_created{engine="0",model_name="a\"b\\c"} 1.5e+09
vllm:tokens_created{engine="1",model_name="a\"b\\c"} 1.5e+09
`, encode(t, Python{Created: true}, families()[:2]))
}

func TestOnePythonProcessWritesSumAfterCountOfEachChild(t *testing.T) {
	assert.Equal(t, `# HELP vllm:n Numbers.
# TYPE vllm:n histogram
vllm:n_bucket{engine="0",le="1.0",model_name="a\"b\\c"} 2.0
vllm:n_bucket{engine="0",le="2.0",model_name="a\"b\\c"} 3.0
vllm:n_bucket{engine="0",le="+Inf",model_name="a\"b\\c"} 3.0
vllm:n_count{engine="0",model_name="a\"b\\c"} 3.0
vllm:n_sum{engine="0",model_name="a\"b\\c"} 4.0
vllm:n_bucket{engine="1",le="1.0",model_name="a\"b\\c"} 0.0
vllm:n_bucket{engine="1",le="2.0",model_name="a\"b\\c"} 0.0
vllm:n_bucket{engine="1",le="+Inf",model_name="a\"b\\c"} 0.0
vllm:n_count{engine="1",model_name="a\"b\\c"} 0.0
vllm:n_sum{engine="1",model_name="a\"b\\c"} 0.0
`, encode(t, Python{}, families()[2:]))
}

func TestSeveralPythonProcessesWriteAllSumsFirst(t *testing.T) {
	assert.Equal(t, `# HELP vllm:n Numbers.
# TYPE vllm:n histogram
vllm:n_sum{engine="0",model_name="a\"b\\c"} 4.0
vllm:n_sum{engine="1",model_name="a\"b\\c"} 0.0
vllm:n_bucket{engine="0",le="1.0",model_name="a\"b\\c"} 2.0
vllm:n_bucket{engine="0",le="2.0",model_name="a\"b\\c"} 3.0
vllm:n_bucket{engine="0",le="+Inf",model_name="a\"b\\c"} 3.0
vllm:n_count{engine="0",model_name="a\"b\\c"} 3.0
vllm:n_bucket{engine="1",le="1.0",model_name="a\"b\\c"} 0.0
vllm:n_bucket{engine="1",le="2.0",model_name="a\"b\\c"} 0.0
vllm:n_bucket{engine="1",le="+Inf",model_name="a\"b\\c"} 0.0
vllm:n_count{engine="1",model_name="a\"b\\c"} 0.0
`, encode(t, Python{MultiProcess: true}, families()[2:]))
}

func TestRustKeepsDeclaredLabelOrderAndIntegers(t *testing.T) {
	f := families()
	f[2].Points = f[2].Points[:1]
	assert.Equal(t, `# HELP vllm:running Line\nend..
# TYPE vllm:running gauge
vllm:running{model_name="a\"b\\c",engine="0"} 2
# HELP vllm:tokens Tokens..
# TYPE vllm:tokens counter
vllm:tokens_total{model_name="a\"b\\c",engine="0"} 5
vllm:tokens_total{model_name="a\"b\\c",engine="1"} 0
# HELP vllm:n Numbers..
# TYPE vllm:n histogram
vllm:n_sum{model_name="a\"b\\c",engine="0"} 4.0
vllm:n_count{model_name="a\"b\\c",engine="0"} 3
vllm:n_bucket{le="1.0",model_name="a\"b\\c",engine="0"} 2
vllm:n_bucket{le="2.0",model_name="a\"b\\c",engine="0"} 3
vllm:n_bucket{le="+Inf",model_name="a\"b\\c",engine="0"} 3
# EOF
`, encode(t, Rust{}, f))
}

func TestRayRenamesAddsItsLabelsAndDropsWhatWasNeverRecorded(t *testing.T) {
	own := []Label{{"Component", "core_worker"}}
	f := append(families()[:2], Family{Name: "ray_node_cpu_count", Help: "CPUs", Type: Gauge, Points: []Point{{Value: 8}}},
		Family{Name: "vllm:never", Help: "Never.", Type: Counter, Points: []Point{{Value: 0}}})
	assert.Equal(t, `# HELP ray_vllm:running Line\nend.
# TYPE ray_vllm:running gauge
ray_vllm:running{Component="core_worker",engine="0",model_name="a\"b\\c"} 2.0
# HELP ray_vllm:tokens_total Tokens.
# TYPE ray_vllm:tokens_total counter
ray_vllm:tokens_total{Component="core_worker",engine="0",model_name="a\"b\\c"} 5.0
# HELP ray_node_cpu_count CPUs
# TYPE ray_node_cpu_count gauge
ray_node_cpu_count 8.0
`, encode(t, Ray{Labels: own}, f))

	assert.Equal(t, `# HELP ray_vllm_tokens_total Tokens.
# TYPE ray_vllm_tokens_total counter
ray_vllm_tokens_total{Component="core_worker",engine="0",model_name="a\"b\\c"} 5.0
# HELP ray_vllm_tokens Tokens.
# TYPE ray_vllm_tokens gauge
ray_vllm_tokens{Component="core_worker",engine="0",model_name="a\"b\\c"} 5.0
`, encode(t, Ray{Labels: own, Underscore: true, Twins: true}, f[1:2]))
}

func TestEncodersReportAWriterThatFails(t *testing.T) {
	for _, e := range []Encoder{Python{}, Rust{}, Ray{}} {
		require.ErrorIs(t, e.Encode(failing{}, families()), errFull)
	}
}

var errFull = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }
