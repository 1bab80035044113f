package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/promapi"
)

func series(pairs ...string) labels.Labels { return labels.FromStrings(pairs...) }

func TestTargetsAreFoundByTheLabelsThatPrometheusAdds(t *testing.T) {
	raw := "vllm:num_requests_running"
	for name, c := range map[string]struct {
		in     []labels.Labels
		want   []string
		copies int
	}{
		"engines and models of one server": {[]labels.Labels{
			series("__name__", raw, "job", "v", "instance", "a:8000", "engine", "0", "model_name", "m"),
			series("__name__", raw, "job", "v", "instance", "a:8000", "engine", "1", "model_name", "n"),
		}, []string{"a:8000"}, 0},
		"an instance in two jobs": {[]labels.Labels{
			series("__name__", raw, "job", "v", "instance", "a:8000"), series("__name__", raw, "job", "w", "instance", "a:8000"),
		}, []string{"a:8000 job=v", "a:8000 job=w"}, 0},
		"an instance in two clusters": {[]labels.Labels{
			series("__name__", raw, "job", "v", "instance", "a:8000", "cluster", "x"), series("__name__", raw, "job", "v", "instance", "a:8000", "cluster", "y"),
		}, []string{"a:8000 job=v cluster=x", "a:8000 job=v cluster=y"}, 0},
		"redundant Prometheus servers": {[]labels.Labels{
			series("__name__", raw, "job", "v", "instance", "a:8000", "prometheus_replica", "0"), series("__name__", raw, "job", "v", "instance", "a:8000", "prometheus_replica", "1"),
		}, []string{"a:8000"}, 1},
		"behind Ray": {[]labels.Labels{
			series("__name__", "ray_vllm:num_requests_running", "job", "ray", "instance", "n:8080", "WorkerId", "1", "ReplicaId", "x"),
			series("__name__", "ray_vllm:num_requests_running", "job", "ray", "instance", "n:8080", "WorkerId", "2", "ReplicaId", "y"),
		}, []string{"n:8080"}, 0},
		"our names, upgraded meanwhile": {[]labels.Labels{
			series("__name__", "vllm_up", "job", "vllm", "instance", "a:8000", "service_version", "0.10.0"), series("__name__", "vllm_up", "job", "vllm", "instance", "a:8000", "service_version", "0.11.0"),
		}, []string{"a:8000"}, 0},
		"our names through the page of a collector": {[]labels.Labels{
			series("__name__", "vllm_up", "job", "otel", "instance", "collector:9464", "exported_instance", "a:8000", "exported_job", "vllm"),
			series("__name__", "vllm_up", "job", "otel", "instance", "collector:9464", "exported_instance", "b:8000", "exported_job", "vllm"),
		}, []string{"a:8000", "b:8000"}, 0},
		"none": {nil, nil, 0},
	} {
		found := Targets(c.in, 10)
		var names []string
		for _, one := range found.Targets {
			names = append(names, one.Name)
			_, err := parser.NewParser(parser.Options{}).ParseMetricSelector(one.Selector([]string{"my_"}))
			require.NoError(t, err, name)
		}
		assert.Equal(t, c.want, names, name)
		assert.Len(t, found.Copies, c.copies, name)
		selectors := map[string]bool{}
		for _, one := range found.Targets {
			selectors[one.Selector(nil)] = true
		}
		assert.Len(t, selectors, len(found.Targets), "%s: each has its own selector", name)
	}
	assert.Equal(t, Ours, Targets([]labels.Labels{series("__name__", "vllm.up", "instance", "a")}, 1).Targets[0].Form)
	many := Targets([]labels.Labels{series("__name__", raw, "instance", "a"), series("__name__", raw, "instance", "b"), series("__name__", raw, "instance", "c")}, 2)
	assert.Len(t, many.Targets, 2)
	assert.Equal(t, 1, many.Overflow)
}

func TestSelectorsQuoteWhatTheyContain(t *testing.T) {
	found := Targets([]labels.Labels{
		series("__name__", "vllm:num_requests_running", "job", `a"b\c`, "instance", "x\ny", "k8s.pod.name", "p", "cluster", "1"),
		series("__name__", "vllm:num_requests_running", "job", `a"b\c`, "instance", "x\ny", "k8s.pod.name", "q", "cluster", "1"),
	}, 9)
	require.Len(t, found.Targets, 2)
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(found.Targets[0].Selector(nil))
	require.NoError(t, err)
	values := map[string]string{}
	for _, m := range matchers {
		values[m.Name] = m.Value
	}
	assert.Equal(t, `a"b\c`, values["job"])
	assert.Equal(t, "x\ny", values["instance"])
	assert.Equal(t, "p", values["k8s.pod.name"])
	_, err = parser.NewParser(parser.Options{}).ParseMetricSelector(Discovery(`job="v"`, []string{"my_"}))
	require.NoError(t, err)
	names := regexp.MustCompile(`__name__=~"([^"]*)"`).FindStringSubmatch(Discovery("", []string{"my_"}))[1]
	for _, name := range []string{"vllm:num_requests_running", "ray_vllm_num_requests_running", "kserve_vllm:num_requests_running", "my_vllm:num_requests_running", "vllm_up"} {
		assert.Regexp(t, "^(?:"+strings.ReplaceAll(names, `\\`, `\`)+")$", name)
	}
}

func TestWindowsLieOnAGrid(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	whole := Span{at("2026-03-29T00:30:00Z"), at("2026-03-29T03:10:00Z")}
	windows := Windows(whole, time.Hour)
	require.Len(t, windows, 4)
	assert.Equal(t, Span{whole.From, at("2026-03-29T01:00:00Z")}, windows[0])
	assert.Equal(t, Span{at("2026-03-29T03:00:00Z"), whole.To}, windows[3])
	for i := 1; i < len(windows); i++ {
		assert.Equal(t, windows[i-1].To, windows[i].From)
	}
	assert.Empty(t, Windows(Span{whole.From, whole.From}, time.Hour))
}

func random(r *rand.Rand) []promapi.Series {
	out := make([]promapi.Series, r.IntN(8))
	for i := range out {
		n := r.IntN(50)
		if i > 0 && r.IntN(2) == 0 {
			out[i].Times = out[i-1].Times
			n = len(out[i].Times)
		} else {
			out[i].Times = make([]int64, n)
			for j := range out[i].Times {
				out[i].Times[j] = 1_700_000_000_000 + int64(j)*15_000 + r.Int64N(9)
			}
		}
		out[i].Values = make([]float64, n)
		for j := range out[i].Values {
			switch r.IntN(6) {
			case 0:
				out[i].Values[j] = math.Inf(1)
			case 1:
				out[i].Values[j] = r.NormFloat64()
			default:
				out[i].Values[j] = float64(r.IntN(1000))
			}
		}
		out[i].Labels = series("__name__", fmt.Sprint("m", i), "l", strings.Repeat("é\"", r.IntN(5)))
	}
	return out
}

func TestAKeptPartIsTheOneThatWasRead(t *testing.T) {
	cache, err := OpenCache(t.TempDir(), 1<<30)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		want := random(r)
		cache.Put("key", int64(i), int64(i+1), want)
		got, kept := cache.Get("key", int64(i), int64(i+1))
		require.True(t, kept)
		require.Len(t, got, len(want))
		for j := range want {
			require.Equal(t, want[j].Labels.String(), got[j].Labels.String())
			require.Equal(t, want[j].Values, got[j].Values)
			require.Equal(t, append([]int64{}, want[j].Times...), append([]int64{}, got[j].Times...))
		}
	}
	_, kept := cache.Get("another key", 0, 1)
	assert.False(t, kept)
	_, kept = cache.Get("key", 0, 2)
	assert.False(t, kept)
	stored, problem := cache.Problem()
	assert.Equal(t, 200, stored)
	require.NoError(t, problem)
}

func TestTheFolderHasABound(t *testing.T) {
	folder := t.TempDir()
	cache, err := OpenCache(folder, 300)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 50 {
		cache.Put("key", int64(i), int64(i+1), random(r))
	}
	stored, problem := cache.Problem()
	require.ErrorContains(t, problem, "has its full size")
	assert.Less(t, stored, 50)
	// A second program counts what is there.
	again, err := OpenCache(folder, 300)
	require.NoError(t, err)
	again.Put("other", 0, 1, random(r))
	_, problem = again.Problem()
	require.Error(t, problem)
	var none *Cache
	none.Put("key", 0, 1, nil)
	_, kept := none.Get("key", 0, 1)
	assert.False(t, kept)
}

func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	folder := t.TempDir()
	_, err := OpenCache(folder, 1<<20)
	require.NoError(t, err)
	left := filepath.Join(folder, "vllmctl-backtest-"+cacheVersion, "123"+temporary)
	require.NoError(t, os.WriteFile(left, []byte("x"), 0o600))
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(left, old, old))
	_, err = OpenCache(folder, 1<<20)
	require.NoError(t, err)
	assert.NoFileExists(t, left)
}

// Any bytes are either the encoding of series or an error; nothing large is allocated for
// them.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5 {
		f.Add(encode(random(r)))
	}
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := decode(data)
		if err != nil {
			return
		}
		total := 0
		for _, s := range out {
			require.Len(t, s.Values, len(s.Times))
			total += len(s.Values)
		}
		require.LessOrEqual(t, total, len(data))
	})
}

// picky refuses long periods, and knows what it was asked.
type picky struct {
	longest time.Duration
	asked   []time.Duration
	fail    error
}

func (p *picky) Samples(_ context.Context, _ string, from, to time.Time) ([]promapi.Series, error) {
	p.asked = append(p.asked, to.Sub(from))
	if p.fail != nil {
		return nil, p.fail
	}
	if to.Sub(from) > p.longest {
		return nil, &promapi.Error{Kind: promapi.TooMuch, Message: "too many samples"}
	}
	var a, b promapi.Series
	a.Labels, b.Labels = series("__name__", "b"), series("__name__", "a")
	for at := from; at.Before(to); at = at.Add(15 * time.Second) {
		a.Times, a.Values = append(a.Times, at.UnixMilli()), append(a.Values, float64(at.Unix()))
		if at.Minute() >= 30 {
			b.Times, b.Values = append(b.Times, at.UnixMilli()), append(b.Values, 1)
		}
	}
	out := []promapi.Series{a}
	if len(b.Times) > 0 {
		out = append(out, b)
	}
	return out, nil
}

func TestAPartThatIsRefusedIsReadInPieces(t *testing.T) {
	window := Span{time.Unix(1_700_006_400, 0), time.Unix(1_700_010_000, 0)}
	plain := &Loader{Source: &picky{longest: time.Hour}}
	want, err := plain.Load(t.Context(), "x", window)
	require.NoError(t, err)
	source := &picky{longest: 7 * time.Minute}
	loader := &Loader{Source: source}
	got, err := loader.Load(t.Context(), "x", window)
	require.NoError(t, err)
	require.Len(t, got, 2)
	for i := range want {
		assert.Equal(t, want[i].Labels, got[i].Labels)
		assert.Equal(t, want[i].Times, got[i].Times)
		assert.Equal(t, want[i].Values, got[i].Values)
	}
	// What the server answers is remembered.
	source.asked = nil
	_, err = loader.Load(t.Context(), "x", window)
	require.NoError(t, err)
	for _, d := range source.asked {
		assert.LessOrEqual(t, d, 8*time.Minute)
	}
	// A server that refuses everything ends it.
	_, err = (&Loader{Source: &picky{longest: 0}}).Load(t.Context(), "x", window)
	require.ErrorContains(t, err, "too many samples")
	_, err = (&Loader{Source: &picky{fail: errors.New("no")}}).Load(t.Context(), "x", window)
	require.ErrorContains(t, err, "no")
}

func TestOnlyWhatDoesNotChangeAnyMoreIsKept(t *testing.T) {
	cache, err := OpenCache(t.TempDir(), 1<<30)
	require.NoError(t, err)
	window := Span{time.Unix(1_700_006_400, 0), time.Unix(1_700_010_000, 0)}
	for _, c := range []struct {
		settled time.Time
		asked   int
	}{{window.To.Add(-time.Second), 2}, {window.To, 1}} {
		source := &picky{longest: time.Hour}
		for range 2 {
			loader := &Loader{Source: source, Cache: cache, Server: c.settled.String(), Settled: c.settled}
			_, err := loader.Load(t.Context(), "x", window)
			require.NoError(t, err)
		}
		assert.Len(t, source.asked, c.asked)
	}
}

// A store that removes duplicates can give the series of one scrape different times.
func TestSamplesOfOneScrapeWithDifferentTimesArePutTogether(t *testing.T) {
	var all []promapi.Series
	for i := range 10 {
		s := promapi.Series{Labels: series("__name__", fmt.Sprint("vllm:", i))}
		for j := range 20 {
			s.Times, s.Values = append(s.Times, int64(j)*15000+int64(i%3)*1700), append(s.Values, float64(j))
		}
		all = append(all, s)
	}
	p := NewPart(&Target{}, all)
	require.Len(t, p.Times, 20)
	assert.True(t, p.Snapped)
	for _, s := range p.Series {
		assert.Equal(t, p.Times, s.Times)
		assert.Equal(t, float64(7), s.Values[7])
	}
	// Two runs of a server with other labels are no such store.
	one := promapi.Series{Labels: series("__name__", "vllm:a", "model_name", "x")}
	two := promapi.Series{Labels: series("__name__", "vllm:a", "model_name", "y")}
	for j := range 20 {
		one.Times, one.Values = append(one.Times, int64(j)*15000), append(one.Values, 0)
		two.Times, two.Values = append(two.Times, int64(j+20)*15000), append(two.Values, 0)
	}
	p = NewPart(&Target{}, []promapi.Series{one, two})
	assert.Len(t, p.Times, 40)
	assert.False(t, p.Snapped)
}
