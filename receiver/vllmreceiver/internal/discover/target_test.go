package discover

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLabelsMakeATargetAsInPrometheus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels, group model.LabelSet
		rules         string
		url           string
		interval      time.Duration
		timeout       time.Duration
		err           string
	}{
		"the defaults":                     {labels: model.LabelSet{"__address__": "a:1"}, url: "http://a:1/metrics"},
		"an address without a port":        {labels: model.LabelSet{"__address__": "a"}, url: "http://a/metrics"},
		"a target's label beats its group": {labels: model.LabelSet{"__address__": "a:1", "__scheme__": "https"}, group: model.LabelSet{"__scheme__": "http"}, url: "https://a:1/metrics"},
		"a path and parameters": {
			labels: model.LabelSet{"__address__": "a:1", "__metrics_path__": "m", "__param_b": "2 3", "__param_a": "1"},
			url:    "http://a:1/m?a=1&b=2+3",
		},
		"intervals of its own": {
			labels: model.LabelSet{"__address__": "a:1", "__scrape_interval__": "1m", "__scrape_timeout__": "30s"},
			url:    "http://a:1/metrics", interval: time.Minute, timeout: 30 * time.Second,
		},
		"a short interval cuts the default timeout": {
			labels: model.LabelSet{"__address__": "a:1", "__scrape_interval__": "2s"},
			url:    "http://a:1/metrics", interval: 2 * time.Second, timeout: 2 * time.Second,
		},
		"a timeout above the interval": {
			labels: model.LabelSet{"__address__": "a:1", "__scrape_interval__": "2s", "__scrape_timeout__": "3s"},
			err:    "__scrape_timeout__ 3s is longer than __scrape_interval__ 2s",
		},
		"an interval of 0":        {labels: model.LabelSet{"__address__": "a:1", "__scrape_interval__": "0s"}, err: "__scrape_interval__"},
		"a timeout of words":      {labels: model.LabelSet{"__address__": "a:1", "__scrape_timeout__": "soon"}, err: "__scrape_timeout__"},
		"no address":              {labels: model.LabelSet{"x": "y"}, err: "__address__ is empty"},
		"a path in the address":   {labels: model.LabelSet{"__address__": "a:1/metrics"}, err: "a path belongs into __metrics_path__"},
		"a secret in the address": {labels: model.LabelSet{"__address__": "user:hunter2@a:1"}, err: "it has credentials or a query"},
		"a secret in its query":   {labels: model.LabelSet{"__address__": "a:1/m?key=hunter2"}, err: "it has credentials or a query"},
		"a long host":             {labels: model.LabelSet{"__address__": model.LabelValue(strings.Repeat("a", 70_000))}, err: "have more than 1024 bytes"},
		"a malformed address":     {labels: model.LabelSet{"__address__": "a:b:c"}, err: "is not a host with a port"},
		"a line to the left":      {labels: model.LabelSet{"__address__": "a\u202eb:1"}, err: `"a\u202eb:1" is not a host with a port: it has characters that cannot be printed`},
		"a command of a terminal": {labels: model.LabelSet{"__address__": "a\u009b31m:1"}, err: "cannot be printed"},
		"another scheme":          {labels: model.LabelSet{"__address__": "a:1", "__scheme__": "ftp"}, err: "only http and https"},
		"a rule drops it": {
			labels: model.LabelSet{"__address__": "a:1", "x": "y"},
			rules:  "[{source_labels: [x], regex: y, action: drop}]",
		},
		"rules see and set the special labels": {
			labels: model.LabelSet{"__address__": "a:1", "__meta_kubernetes_pod_annotation_port": "9"},
			rules: `
- {source_labels: [__address__, __meta_kubernetes_pod_annotation_port], regex: '([^:]+):\d+;(\d+)', replacement: '$1:$2', target_label: __address__}
- {source_labels: [__scrape_interval__], regex: 15s, replacement: 30s, target_label: __scrape_interval__}`,
			url: "http://a:9/metrics", interval: 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var rules []*relabel.Config
			if c.rules != "" {
				rules = parse(t, "static_configs: [{targets: [a]}]\nrelabel_configs: "+c.rules).RelabelConfigs
			}
			got, err := defaults.candidate(c.labels, c.group, nil, rules, nil)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				assert.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			if c.url == "" {
				require.False(t, got.kept)
				return
			}
			assert.Equal(t, c.url, got.target.URL.String())
			if c.interval == 0 {
				c.interval = defaults.Interval
			}
			if c.timeout == 0 {
				c.timeout = defaults.Timeout
			}
			assert.Equal(t, c.interval, got.target.Interval)
			assert.Equal(t, c.timeout, got.target.Timeout)
		})
	}
}

func TestLabelsBecomeAttributesByTheirOpenTelemetryNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels model.LabelSet
		want   map[string]string
	}{
		"what is left has its own name": {
			model.LabelSet{"team": "search", "empty": "", "__tmp": "x", "__meta_consul_dc": "y"}, map[string]string{"team": "search"},
		},
		"instance and job": {
			model.LabelSet{"instance": "gpu-7", "job": "llama"},
			map[string]string{"service.instance.id": "gpu-7", "service.name": "llama"},
		},
		"a bare ReplicaSet has no Deployment": {
			model.LabelSet{"__meta_kubernetes_pod_controller_kind": "ReplicaSet", "__meta_kubernetes_pod_controller_name": "a-b"},
			map[string]string{"k8s.replicaset.name": "a-b"},
		},
		"a ReplicaSet that is not named after its hash": {
			model.LabelSet{
				"__meta_kubernetes_pod_controller_kind": "ReplicaSet", "__meta_kubernetes_pod_controller_name": "a-b",
				"__meta_kubernetes_pod_label_pod_template_hash": "c",
			},
			map[string]string{"k8s.replicaset.name": "a-b"},
		},
		"a DaemonSet": {
			model.LabelSet{"__meta_kubernetes_pod_controller_kind": "DaemonSet", "__meta_kubernetes_pod_controller_name": "a"},
			map[string]string{"k8s.daemonset.name": "a"},
		},
		"a Job of a CronJob": {
			model.LabelSet{
				"__meta_kubernetes_pod_controller_kind": "Job", "__meta_kubernetes_pod_controller_name": "a-1",
				"__meta_kubernetes_pod_cronjob_name": "a",
			},
			map[string]string{"k8s.job.name": "a-1", "k8s.cronjob.name": "a"},
		},
		"an owner of another kind": {
			model.LabelSet{"__meta_kubernetes_pod_controller_kind": "LeaderWorkerSet", "__meta_kubernetes_pod_controller_name": "a"},
			map[string]string{},
		},
		"a node": {model.LabelSet{"__meta_kubernetes_node_name": "n"}, map[string]string{"k8s.node.name": "n"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.labels["__address__"] = "a:1"
			got, err := defaults.candidate(c.labels, nil, nil, nil, nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, got.target.Attributes)
		})
	}
}

// Targets that are not equal are ended and started again, so each difference that changes
// the scrapes or the series counts, and no other.
func TestWhichTargetsAreEqual(t *testing.T) {
	t.Parallel()
	target := func(change func(*Target)) *Target {
		u, err := url.Parse("http://a:1/metrics")
		require.NoError(t, err)
		out := &Target{URL: u, Interval: time.Minute, Timeout: time.Second, Attributes: map[string]string{"team": "search"}}
		change(out)
		return out
	}
	one := target(func(*Target) {})
	for name, tt := range map[string]struct {
		change func(*Target)
		want   bool
	}{
		"nothing":            {func(*Target) {}, true},
		"the address":        {func(o *Target) { o.URL.Host = "b:1" }, false},
		"the query":          {func(o *Target) { o.URL.RawQuery = "x=1" }, false},
		"the interval":       {func(o *Target) { o.Interval++ }, false},
		"the timeout":        {func(o *Target) { o.Timeout++ }, false},
		"an attribute":       {func(o *Target) { o.Attributes["team"] = "ads" }, false},
		"one attribute more": {func(o *Target) { o.Attributes["zone"] = "z" }, false},
		"no attributes":      {func(o *Target) { o.Attributes = nil }, false},
		"the pod's state":    {func(o *Target) { o.Pod = &Pod{Ready: true} }, true},
	} {
		other := target(tt.change)
		assert.Equal(t, tt.want, one.Equal(other), name)
		assert.Equal(t, tt.want, other.Equal(one), name)
	}
}

func TestOneAddressFoundTwiceIsOneTargetWithTheAttributesOfBoth(t *testing.T) {
	t.Parallel()
	found := defaults.resolve([]source{
		{
			groups: []*targetgroup.Group{{Targets: []model.LabelSet{{"__address__": "a:1", "team": "search", "zone": "z1"}}}},
			chains: [][]*relabel.Config{nil},
		},
		{
			groups:     []*targetgroup.Group{{Targets: []model.LabelSet{{"__address__": "a:1", "zone": "z2"}}}},
			chains:     [][]*relabel.Config{nil},
			attributes: map[string]string{PoolAttribute: "llama"},
		},
	}, nil)
	assert.Empty(t, found.unusable)
	require.Len(t, found.targets, 1)
	assert.Equal(t, map[string]string{"team": "search", PoolAttribute: "llama"}, found.targets[0].Attributes)
}

func TestTheLimitKeepsTheTargetsThatAreScraped(t *testing.T) {
	t.Parallel()
	found := defaults.resolve([]source{{
		groups: []*targetgroup.Group{{Targets: []model.LabelSet{{"__address__": "a"}, {"__address__": "b"}, {"__address__": "c"}}}},
		chains: [][]*relabel.Config{nil},
	}}, nil)
	kept, over := limit(found.targets, map[string]bool{"http://c/metrics": true}, 2)
	assert.Equal(t, "http://c/metrics http://a/metrics", addresses(kept))
	assert.Equal(t, 1, over)
}

func TestLabelsCannotMakeTheCollectorScrapeWithoutAPause(t *testing.T) {
	t.Parallel()
	short := Defaults{Interval: 200 * time.Millisecond, Timeout: 100 * time.Millisecond}
	for name, tt := range map[string]struct {
		defaults          Defaults
		labels            model.LabelSet
		interval, timeout time.Duration
	}{
		"a millisecond":            {defaults, model.LabelSet{"__scrape_interval__": "1ms"}, time.Second, time.Second},
		"and its timeout":          {defaults, model.LabelSet{"__scrape_interval__": "1ms", "__scrape_timeout__": "1ms"}, time.Second, time.Second},
		"a short timeout":          {defaults, model.LabelSet{"__scrape_timeout__": "1ms"}, 15 * time.Second, time.Second},
		"the shortest":             {defaults, model.LabelSet{"__scrape_interval__": "1s"}, time.Second, time.Second},
		"the receiver's is short":  {short, nil, 200 * time.Millisecond, 100 * time.Millisecond},
		"and that is the shortest": {short, model.LabelSet{"__scrape_interval__": "1ms", "__scrape_timeout__": "1ms"}, 200 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			labels := model.LabelSet{"__address__": "a:1"}.Merge(tt.labels)
			found := tt.defaults.resolve([]source{{
				groups: []*targetgroup.Group{{Targets: []model.LabelSet{labels}}}, chains: [][]*relabel.Config{nil},
			}}, nil)
			require.Len(t, found.targets, 1, "%v", found.unusable)
			assert.Equal(t, tt.interval, found.targets[0].Interval)
			assert.Equal(t, tt.timeout, found.targets[0].Timeout)
		})
	}
}

func TestATooShortIntervalIsLoggedOnceForAGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "next"), []byte(text), 0o600))
		require.NoError(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, name)))
	}
	write("a.json", `[{"targets": ["a:1", "a:2"], "labels": {"__scrape_interval__": "1ms"}}]`)
	r := run(t, 1000, "file_sd_configs: [{files: ["+dir+"/*.json]}]")
	const line = "of discovered targets is too short; they are scraped every 1s"
	r.waitForLog(line)
	write("a.json", `[{"targets": ["a:1", "a:3"], "labels": {"__scrape_interval__": "1ms"}}]`)
	r.waitFor("the same group again", "http://a:1/metrics", "http://a:3/metrics")
	assert.Equal(t, 1, r.logged(line))
	many := `[{"targets": ["z:1"], "labels": {"__scrape_interval__": "2ms"}}`
	for range 500 {
		many += `,{"targets": ["z:1"], "labels": {"__scrape_interval__": "2ms"}}`
	}
	write("b.json", many+"]")
	r.waitFor("many groups", "http://a:1/metrics", "http://a:3/metrics", "http://z:1/metrics")
	assert.Equal(t, 2, r.logged(line), "one line for all that are new")
}
