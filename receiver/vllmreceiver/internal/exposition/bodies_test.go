package exposition

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// namedBody is a body that tests read, and its dialect.
type namedBody struct {
	name    string
	text    []byte
	dialect Dialect
}

// realBodies returns the bodies of model servers: the project's own, and, where they
// are present, recorded ones with those of gateways and a part of the series over time.
func realBodies(tb testing.TB) []namedBody {
	tb.Helper()
	found := captures.Bodies(tb)
	for _, pattern := range []string{"gateway/*.txt", "series/*/*/0[1-4].txt"} {
		found = append(found, captures.Recorded(tb, pattern)...)
	}
	bodies := make([]namedBody, 0, len(found))
	for i := range found {
		f := &found[i]
		if race.Enabled && len(f.Text) > 60_000 {
			// Under the race detector the large ones take too long for what they add.
			continue
		}
		b := namedBody{name: f.Name, text: f.Text}
		if f.OpenMetrics() {
			b.dialect = DialectOpenMetrics
		}
		bodies = append(bodies, b)
	}
	return bodies
}

// pythonFloat writes a number as prometheus_client before 0.26 does: at least one
// decimal, and from 1e6 on an exponent with a leading zero, whatever its length.
func pythonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "+Inf"
	case math.IsInf(f, -1):
		return "-Inf"
	case math.IsNaN(f):
		return "NaN"
	case f != 0 && math.Abs(f) < 1e-4:
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	whole, fraction, found := strings.Cut(s, ".")
	if !found {
		fraction = "0"
	}
	if f > 0 && len(whole) > 6 {
		return strings.TrimRight(whole[:1]+"."+whole[1:]+fraction, "0.") + "e+0" + strconv.Itoa(len(whole)-1)
	}
	return whole + "." + fraction
}

// bodyWriter writes bodies in the manner of prometheus_client.
type bodyWriter struct {
	strings.Builder
	random  *rand.Rand
	created bool
}

func (w *bodyWriter) family(name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (w *bodyWriter) sample(name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(w, "%s%s %s\n", name, labels, pythonFloat(value))
}

// created writes the gauge family that prometheus_client adds for creation times.
func (w *bodyWriter) creation(base, help, labels string) {
	if w.created {
		w.family(base+"_created", "gauge", help)
		w.sample(base+"_created", labels, 1.79e9+w.random.Float64())
	}
}

func (w *bodyWriter) histogram(name, help, labels string, bounds []float64) {
	w.family(name, "histogram", help)
	total := 0.0
	for _, bound := range append(bounds, math.Inf(1)) {
		total += math.Floor(w.random.Float64() * 400)
		w.sample(name+"_bucket", labels+`,le="`+pythonFloat(bound)+`"`, total)
	}
	w.sample(name+"_count", labels, total)
	w.sample(name+"_sum", labels, total*w.random.Float64()*3)
	w.creation(name, help, labels)
}

const helpText = "What this family counts, in about as many words as a real server uses"

// vllmBody writes a body with the make-up of a vLLM v0.20 server in one process:
// 86 families, 35 of them creation times, and about 415 samples.
func vllmBody(model string, seed uint64) []byte {
	w := &bodyWriter{random: rand.New(rand.NewPCG(seed, 1)), created: true}
	labels := `engine="0",model_name="` + model + `"`
	for i := range 3 {
		name := fmt.Sprintf("python_gc_objects%d_total", i)
		w.family(name, "counter", helpText)
		for generation := range 3 {
			w.sample(name, fmt.Sprintf(`generation="%d"`, generation), math.Floor(w.random.Float64()*1e4))
		}
	}
	for i := range 6 {
		name := fmt.Sprintf("process_gauge%d_bytes", i)
		w.family(name, "gauge", helpText)
		w.sample(name, "", math.Floor(w.random.Float64()*math.Pow10(i*2)))
	}
	w.family("process_cpu_seconds_total", "counter", helpText)
	w.sample("process_cpu_seconds_total", "", w.random.Float64()*100)
	for i := range 5 {
		name := fmt.Sprintf("vllm:num_requests_in_state%d", i)
		w.family(name, "gauge", helpText)
		w.sample(name, labels, math.Floor(w.random.Float64()*200))
	}
	w.family("vllm:cache_config_info", "gauge", helpText)
	config := make([]string, 26)
	for i := range config {
		config[i] = fmt.Sprintf(`some_cache_option_%c="value-%d"`, 'a'+i, i)
	}
	w.sample("vllm:cache_config_info", strings.Join(config, ","), 1)
	for i := range 16 {
		name := fmt.Sprintf("vllm:some_counted_thing%d", i)
		w.family(name+"_total", "counter", helpText)
		w.sample(name+"_total", labels, math.Floor(w.random.Float64()*3e6))
		w.creation(name, helpText, labels)
	}
	bounds := []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 10, 100, 2048, 1048576}
	for i := range 17 {
		w.histogram(fmt.Sprintf("vllm:some_measured_thing%d_seconds", i), helpText, labels, bounds)
	}
	for i := range 2 {
		name := fmt.Sprintf("http_sized_thing%d_bytes", i)
		w.family(name, "summary", helpText)
		w.sample(name+"_count", `handler="/v1/completions"`, math.Floor(w.random.Float64()*1e4))
		w.sample(name+"_sum", `handler="/v1/completions"`, math.Floor(w.random.Float64()*1e9))
		w.creation(name, helpText, `handler="/v1/completions"`)
	}
	return []byte(w.String())
}

// The make-up of vllmBody is what benchmarks and the other tests rely on.
func TestOwnBodyHasTheSizeOfARealOne(t *testing.T) {
	body := string(vllmBody("some/model", 1))
	require.Equal(t, 86, strings.Count(body, "# TYPE "))
	require.Equal(t, 35, strings.Count(body, "_created gauge\n"))
	samples := strings.Count(body, "\n") - 2*86
	require.InDelta(t, 415, samples, 5)
	require.InDelta(t, 50_000, len(body), 8_000)
}
