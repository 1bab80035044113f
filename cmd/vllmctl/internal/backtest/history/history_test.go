package history

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
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
		found := Targets(c.in, nil, 10)
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
	assert.Equal(t, Ours, Targets([]labels.Labels{series("__name__", "vllm.up", "instance", "a")}, nil, 1).Targets[0].Form)
	many := Targets([]labels.Labels{series("__name__", raw, "instance", "a"), series("__name__", raw, "instance", "b"), series("__name__", raw, "instance", "c")}, nil, 2)
	assert.Len(t, many.Targets, 2)
	assert.Equal(t, 1, many.Overflow)
}

// A label that was added in the middle of a history makes two targets, of which the one
// without it has not the series of the other. With --match, others that share job and
// instance are not found, and their series are not read.
func TestASelectorChoosesTheSeriesOfOneTarget(t *testing.T) {
	up := func(cluster string) labels.Labels {
		return series("__name__", "vllm:num_requests_running", "job", "v", "instance", "vllm-0:8000", "cluster", cluster)
	}
	chooses := func(target *Target, cluster string) bool {
		matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(target.Selector(nil))
		require.NoError(t, err)
		for _, m := range matchers {
			if !m.Matches(up(cluster).Get(m.Name)) {
				return false
			}
		}
		return true
	}
	without := series("__name__", "vllm:num_requests_running", "job", "v", "instance", "vllm-0:8000")
	found := Targets([]labels.Labels{without, up("a")}, nil, 9)
	require.Len(t, found.Targets, 2)
	for _, target := range found.Targets {
		assert.Equal(t, target.Labels.Get("cluster") == "a", chooses(target, "a"), target.Name)
		assert.Equal(t, target.Labels.Get("cluster") == "", chooses(target, ""), target.Name)
	}
	names, err := MatchLabels(`cluster=~"a|c",model_name="m"`)
	require.NoError(t, err)
	found = Targets([]labels.Labels{up("a")}, nil, 9, names...)
	require.Len(t, found.Targets, 1)
	assert.True(t, chooses(found.Targets[0], "a"))
	assert.False(t, chooses(found.Targets[0], "b"))
	assert.NotContains(t, found.Targets[0].Selector(nil), "model_name", "up does not have it")
	_, err = MatchLabels("cluster")
	require.ErrorContains(t, err, "is not a list of matchers")
}

func TestSelectorsQuoteWhatTheyContain(t *testing.T) {
	found := Targets([]labels.Labels{
		series("__name__", "vllm:num_requests_running", "job", `a"b\c`, "instance", "x\ny", "k8s.pod.name", "p", "cluster", "1"),
		series("__name__", "vllm:num_requests_running", "job", `a"b\c`, "instance", "x\ny", "k8s.pod.name", "q", "cluster", "1"),
	}, nil, 9)
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
	plain := &Loader{Most: 1 << 20, Source: &picky{longest: time.Hour}}
	want, err := plain.Load(t.Context(), "x", window)
	require.NoError(t, err)
	source := &picky{longest: 7 * time.Minute}
	loader := &Loader{Most: 1 << 20, Source: source}
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
	_, err = (&Loader{Most: 1, Source: &picky{longest: 0}}).Load(t.Context(), "x", window)
	require.ErrorContains(t, err, "too many samples")
	_, err = (&Loader{Most: 1, Source: &picky{fail: errors.New("no")}}).Load(t.Context(), "x", window)
	require.ErrorContains(t, err, "no")
}

// All parts together have a bound, in pieces or not. What is released makes room.
func TestWhatIsInMemoryAtATimeIsBounded(t *testing.T) {
	window := Span{time.Unix(1_700_006_400, 0), time.Unix(1_700_010_000, 0)}
	// An hour of a scrape every 15 s has 240 samples, and half an hour 120: 16 bytes each, and two sets of labels.
	for _, longest := range []time.Duration{time.Hour, 7 * time.Minute} {
		loader := &Loader{Most: 20_000, Source: &picky{longest: longest}}
		for range 2 {
			part, err := loader.Load(t.Context(), "x", window)
			require.NoError(t, err, longest)
			require.InDelta(t, 360*16, Size(part), 300)
		}
		_, err := loader.Load(t.Context(), "x", window)
		require.NoError(t, err, longest)
		_, err = loader.Load(t.Context(), "x", window)
		require.ErrorContains(t, err, "more memory than 20 KiB; select fewer servers with --match", longest)
		loader = &Loader{Most: 8000, Source: &picky{longest: longest}}
		for range 10 {
			part, err := loader.Load(t.Context(), "x", window)
			require.NoError(t, err, longest)
			loader.Release(Size(part))
		}
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
