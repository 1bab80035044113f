package discover

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Target is one server to scrape.
type Target struct {
	// URL is the full address of its metrics; it identifies the target.
	URL *url.URL
	// Attributes are its resource attributes, under the names of OpenTelemetry if there
	// is one.
	Attributes map[string]string
	// Interval is how often it is scraped, and Timeout the deadline of one fetch.
	Interval, Timeout time.Duration
	// Pod is what Kubernetes reports about the target's pod; nil for others. It
	// may change while the target stays the same.
	Pod *Pod
}

// Equal reports whether two targets are scraped in the same way and have the same
// series.
func (t *Target) Equal(other *Target) bool {
	return t.URL.String() == other.URL.String() && t.Interval == other.Interval &&
		t.Timeout == other.Timeout && maps.Equal(t.Attributes, other.Attributes)
}

// Defaults are the settings of targets whose labels do not set them.
type Defaults struct {
	Interval, Timeout time.Duration
}

// minInterval is the shortest interval and timeout that labels can set: a list of targets
// must not make the collector scrape without a pause. The receiver's own settings may be
// shorter.
const minInterval = time.Second

// defaultPath is the default of both Prometheus and vLLM.
const defaultPath = "/metrics"

// candidate is a target made of one discovered address.
type candidate struct {
	target Target
	// onPort is true if the discovered port is the one that is scraped. Then the
	// discovered container is that of the server.
	onPort bool
	// asked is the interval of its labels if that is too short, else 0.
	asked time.Duration
	// uid is the UID of its pod; empty for others.
	uid string
	// address identifies it before and after the rules. It has no target if they do not
	// keep it.
	address string
	progress
}

// serves reports whether the candidate is not known to be unready or terminating.
func (c *candidate) serves() bool {
	return c.target.Pod == nil || c.target.Pod.Ready && !c.target.Pod.Terminating
}

// candidate makes a target from the labels of a discovered address, as the scrape package
// of Prometheus does: defaults, relabelling, special labels. own are the labels of its
// source. It returns an error for a target that is kept and cannot be scraped.
func (d *Defaults) candidate(target, group model.LabelSet, own map[string]string, rules []*relabel.Config, s *sharding) (*candidate, error) {
	lb := labels.NewBuilder(labels.EmptyLabels())
	for name, value := range own {
		lb.Set(name, value)
	}
	for name, value := range group {
		lb.Set(string(name), string(value))
	}
	for name, value := range target {
		lb.Set(string(name), string(value))
	}
	for _, l := range []labels.Label{
		{Name: model.ScrapeIntervalLabel, Value: model.Duration(d.Interval).String()},
		{Name: model.ScrapeTimeoutLabel, Value: model.Duration(d.Timeout).String()},
		{Name: model.MetricsPathLabel, Value: defaultPath},
		{Name: model.SchemeLabel, Value: "http"},
	} {
		if lb.Get(l.Name) == "" {
			lb.Set(l.Name, l.Value)
		}
	}
	done := s.apply(lb, rules)
	address, err := addressOf(lb)
	if !done.kept {
		out := &candidate{progress: done, address: lb.Get(model.AddressLabel)}
		if err == nil {
			out.address = address.String()
		}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	interval, timeout, err := d.intervals(lb)
	if err != nil {
		return nil, err
	}
	var asked time.Duration
	if floor := min(minInterval, d.Interval); interval < floor {
		asked, interval = interval, floor
	}
	// No server can answer within a timeout of a millisecond.
	timeout = min(max(timeout, min(minInterval, d.Timeout)), interval)
	all := lb.Labels()
	return &candidate{
		target: Target{URL: address, Attributes: attributesOf(all), Interval: interval, Timeout: timeout},
		asked:  asked, address: address.String(), progress: done,
		onPort: address.Port() != "" && address.Port() == all.Get(metaPrefix+"pod_container_port_number"),
	}, nil
}

// addressOf reads the address from its special labels.
func addressOf(lb *labels.Builder) (*url.URL, error) {
	host := lb.Get(model.AddressLabel)
	if host == "" {
		return nil, errors.New("__address__ is empty after relabelling")
	}
	if strings.ContainsAny(host, "@?") {
		// The address may contain a secret, so it is not repeated.
		return nil, errors.New("__address__ is not a host with a port: it has credentials or a query")
	}
	if strings.ContainsAny(host, "/#") {
		return nil, fmt.Errorf("__address__ %q is not a host with a port; a path belongs into __metrics_path__", host)
	}
	if !remote.Printable(host) {
		// It names the target in each line of the log and in the attributes.
		return nil, fmt.Errorf("__address__ %q is not a host with a port: it has characters that cannot be printed", host)
	}
	if len(host)+len(lb.Get(model.MetricsPathLabel)) > remote.MaxInstance {
		return nil, fmt.Errorf("__address__ %.40q and __metrics_path__ have more than %d bytes", host, remote.MaxInstance)
	}
	address := &url.URL{Scheme: lb.Get(model.SchemeLabel), Host: host, Path: lb.Get(model.MetricsPathLabel)}
	if address.Scheme != "http" && address.Scheme != "https" {
		return nil, fmt.Errorf("__scheme__ is %q; only http and https can be scraped", address.Scheme)
	}
	if !strings.HasPrefix(address.Path, "/") {
		address.Path = "/" + address.Path
	}
	params := url.Values{}
	lb.Range(func(l labels.Label) {
		if name, ok := strings.CutPrefix(l.Name, model.ParamLabelPrefix); ok {
			params.Set(name, l.Value)
		}
	})
	address.RawQuery = params.Encode()
	// Parse the result again, because the host may be any text.
	parsed, err := url.Parse(address.String())
	if err != nil || parsed.Hostname() == "" {
		return nil, fmt.Errorf("__address__ %q is not a host with a port", host)
	}
	return parsed, nil
}

// intervals reads the intervals from their special labels. An interval shorter than the
// default timeout is not a mistake: it reduces that timeout.
func (d *Defaults) intervals(lb *labels.Builder) (interval, timeout time.Duration, err error) {
	written, err := model.ParseDuration(lb.Get(model.ScrapeIntervalLabel))
	if err != nil || written <= 0 {
		return 0, 0, fmt.Errorf("__scrape_interval__ %q is not a duration above 0", lb.Get(model.ScrapeIntervalLabel))
	}
	interval = time.Duration(written)
	text := lb.Get(model.ScrapeTimeoutLabel)
	if text == model.Duration(d.Timeout).String() {
		return interval, min(d.Timeout, interval), nil
	}
	written, err = model.ParseDuration(text)
	if err != nil || written <= 0 {
		return 0, 0, fmt.Errorf("__scrape_timeout__ %q is not a duration above 0", text)
	}
	if timeout = time.Duration(written); timeout > interval {
		return 0, 0, fmt.Errorf("__scrape_timeout__ %s is longer than __scrape_interval__ %s", timeout, interval)
	}
	return interval, timeout, nil
}

const metaPrefix = model.MetaLabelPrefix + "kubernetes_"

// PoolAttribute names the InferencePool that a server belongs to.
const PoolAttribute = "inference_gateway.pool.name"

const containerAttribute = "k8s.container.name"

// kubernetesAttributes maps the labels of Prometheus's Kubernetes discovery to the
// resource attributes of OpenTelemetry. The first label that is set is used.
var kubernetesAttributes = []struct{ label, attribute string }{
	{"namespace", "k8s.namespace.name"},
	{"pod_name", "k8s.pod.name"},
	{"pod_uid", "k8s.pod.uid"},
	{"pod_container_name", containerAttribute},
	{"pod_node_name", "k8s.node.name"},
	{"endpointslice_endpoint_topology_kubernetes_io_hostname", "k8s.node.name"},
	{"node_name", "k8s.node.name"},
	{"pod_deployment_name", "k8s.deployment.name"},
	{"pod_job_name", "k8s.job.name"},
	{"pod_cronjob_name", "k8s.cronjob.name"},
}

// controllers are the attributes for the owner of a pod, by kind.
var controllers = map[string]string{
	"ReplicaSet":  "k8s.replicaset.name",
	"StatefulSet": "k8s.statefulset.name",
	"DaemonSet":   "k8s.daemonset.name",
	"Job":         "k8s.job.name",
}

// attributesOf returns the resource attributes of a target: its Kubernetes labels under
// OpenTelemetry's names, and the labels that relabelling has left under their own.
func attributesOf(all labels.Labels) map[string]string {
	out := map[string]string{}
	for _, a := range kubernetesAttributes {
		if value := all.Get(metaPrefix + a.label); value != "" && out[a.attribute] == "" {
			out[a.attribute] = value
		}
	}
	kind, name := all.Get(metaPrefix+"pod_controller_kind"), all.Get(metaPrefix+"pod_controller_name")
	if attribute, ok := controllers[kind]; ok && name != "" {
		out[attribute] = name
	}
	if deployment := deploymentOf(kind, name, all); deployment != "" && out["k8s.deployment.name"] == "" {
		out["k8s.deployment.name"] = deployment
	}
	all.Range(func(l labels.Label) {
		switch {
		case strings.HasPrefix(l.Name, model.ReservedLabelPrefix) || l.Value == "":
		case l.Name == model.InstanceLabel:
			out["service.instance.id"] = l.Value
		case l.Name == model.JobLabel:
			out["service.name"] = l.Value
		default:
			out[l.Name] = l.Value
		}
	})
	return out
}

// deploymentOf returns the Deployment that owns a ReplicaSet. The name of the ReplicaSet
// is that of the Deployment and a hash, which is also a label of the pods. A ReplicaSet
// without this hash has no Deployment.
func deploymentOf(kind, name string, all labels.Labels) string {
	hash := all.Get(metaPrefix + "pod_label_pod_template_hash")
	if deployment, ok := strings.CutSuffix(name, "-"+hash); ok && kind == "ReplicaSet" && hash != "" {
		return deployment
	}
	return ""
}
