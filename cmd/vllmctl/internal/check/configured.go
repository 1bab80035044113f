package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Settings are the choices for a check of a configuration.
type Settings struct {
	// Delay is the time between the two scrapes of a target.
	Delay time.Duration
	// Strict is whether warnings change the status.
	Strict bool
	// KubeConfig is a file with the access to Kubernetes; empty for that of the discovery.
	KubeConfig string
	// Running is true where the collector with this configuration runs on this machine, and has its ports.
	Running bool
	// Lookup is how long a discovery may look for targets; 0 means two seconds.
	Lookup time.Duration
}

// Configured checks the configuration of a collector, and the targets in it. An error means
// that it could not be read.
func Configured(ctx context.Context, paths []string, settings Settings) (*Report, error) {
	began := time.Now()
	file, err := configfile.Read(ctx, paths...)
	if err != nil {
		return nil, err
	}
	f := &findings{}
	judgeConfiguration(f, file)
	judgeVariables(f, file, settings.Running)
	host, err := file.Host(ctx, zap.NewNop())
	if err != nil {
		for failure := range strings.SplitSeq(err.Error(), "\nextensions::") {
			failure = strings.Join(mistakes("extensions::"+strings.TrimPrefix(failure, "extensions::")), "; ")
			f.add(CodeConfigInvalid, "An extension cannot be started: "+probe.Printable(failure)+".")
		}
	}
	defer host.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost

	// Exporters and permissions do not depend on the targets.
	var (
		wg        sync.WaitGroup
		exporters []Exporter
		listeners []Exporter
		answers   []Answer
	)
	wg.Go(func() { exporters = askExporters(ctx, file, host, settings.Running) })
	wg.Go(func() { listeners = askListeners(ctx, file, settings.Running) })
	wg.Go(func() { answers = askKubernetes(ctx, file, settings.KubeConfig) })
	jobs := jobsOf(ctx, f, file, host, cmp.Or(settings.Lookup, mostDiscovery))
	out := &Report{Targets: make([]Target, len(jobs))}
	seen := Look(ctx, jobs, settings.Delay, func(i int, s *Seen) {
		// There can be many targets, so only what is said about them is kept.
		out.Targets[i] = Judge(s)
		s.drop()
	})
	wg.Wait()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted before the check was complete")
	}
	judgeTargets(f, out.Targets, file)
	judgeUseless(f, out.Targets, file)
	for _, e := range slices.Concat(exporters, listeners) {
		e.judge(f)
	}
	judgeQueues(f, queuesOf(f, file, seen), look)
	out.Sent, out.configured = sentOf(file, seen), len(file.Receivers) > 0
	judgeAnswers(f, answers)
	out.Findings, out.Passes = f.sorted(), f.passed
	out.finish(settings.Strict)
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// judgeConfiguration judges the configuration by itself.
func judgeConfiguration(f *findings, file *configfile.File) {
	for _, problem := range file.Problems {
		for _, mistake := range mistakes(problem.Error()) {
			f.add(CodeConfigInvalid, probe.Printable(mistake)+".")
		}
	}
	for _, warning := range file.Warnings {
		if !unset.MatchString(warning) {
			f.add(CodeConfigWarning, probe.Printable(warning)+".")
		}
	}
	receives, others := 0, 0
	for _, p := range file.Pipelines {
		switch {
		case slices.ContainsFunc(p.Receivers, isOurs):
			receives++
		case slices.ContainsFunc(p.Processors, isOurs):
			others++
			f.pass(Configuration, "the pipeline %s gets metrics of vLLM from %s, whose servers are not checked here", p.Name, strings.Join(p.Receivers, ", "))
		default:
			continue
		}
		judgePipeline(f, file, &p)
	}
	if receives+others == 0 {
		f.add(CodeNoReceiver, "No pipeline has a vllm receiver.")
	}
	if len(f.found) == 0 && receives > 0 {
		f.pass(Configuration, "%s with the receiver vllm", plural(receives, "pipeline"))
	}
}

// unset is the warning of Confmap about a variable.
var unset = regexp.MustCompile(`^Configuration references unset environment variable \(name: (.*)\)$`)

// ofPod are variables that only the manifest of a pod sets.
var ofPod = []string{"K8S_NODE_NAME", "POD_IP", "POD_NAME", "POD_NAMESPACE", "POD_UID"}

// judgeVariables judges the variables that are not set, in one finding.
func judgeVariables(f *findings, file *configfile.File, running bool) {
	var names []string
	pod := false
	for _, warning := range file.Warnings {
		if found := unset.FindStringSubmatch(warning); found != nil {
			names = append(names, probe.Printable(found[1]))
			pod = pod || slices.Contains(ofPod, found[1])
		}
	}
	if len(names) == 0 {
		return
	}
	what := "These environment variables are not set: " + strings.Join(names, ", ") + "."
	if pod && !running {
		what += " This is the configuration of a pod: check it there, with kubectl exec POD -- /vllmctl check --running."
	}
	f.add(CodeConfigWarning, what)
}

// mistakes takes an error of several lines apart. Each mistake begins with the component that
// it is in.
func mistakes(text string) []string {
	component, rest, found := strings.Cut(text, ": ")
	if !found || !strings.Contains(component, "::") || strings.ContainsAny(component, " \n") {
		component, rest = "", text
	} else {
		component += ": "
	}
	var out []string
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(strings.TrimSpace(line), ".?")
		// The library writes such a line in front of the mistakes.
		if line != "" && !strings.HasSuffix(line, "following error(s):") {
			out = append(out, component+line)
		}
	}
	return out
}

// tiers are kinds of exporters that send to other collectors, which have the processor.
var tiers = []string{"loadbalancing", "load_balancing", "kafka"}

// judgePipeline judges the order of the processors.
func judgePipeline(f *findings, file *configfile.File, p *configfile.Pipeline) {
	at := slices.IndexFunc(p.Processors, isOurs)
	connects := slices.ContainsFunc(p.Exporters, func(name string) bool {
		_, is := file.Others["connectors::"+name]
		return is
	})
	if at < 0 {
		forwards := slices.ContainsFunc(p.Exporters, func(name string) bool {
			kind, _, _ := strings.Cut(name, "/")
			return slices.Contains(tiers, kind)
		})
		if !connects && !forwards {
			f.add(CodeNoProcessor, fmt.Sprintf("The pipeline %s has no vllm processor.", p.Name))
		}
		return
	}
	for _, name := range p.Processors[:at] {
		switch kind, _, _ := strings.Cut(name, "/"); kind {
		case "batch":
			f.add(CodeBatchFirst, fmt.Sprintf("%s is before %s in the pipeline %s.", name, p.Processors[at], p.Name))
		case "cumulativetodelta", "cumulative_to_delta":
			f.add(CodeDeltaFirst, fmt.Sprintf("%s is before %s in the pipeline %s.", name, p.Processors[at], p.Name))
		}
	}
	for i := range file.Processors {
		if processor := &file.Processors[i]; processor.Name == p.Processors[at] {
			judgeProcessor(f, file, p, processor.Config, processor.Name)
		}
	}
}

// isOurs reports whether a component has the type vllm.
func isOurs(name string) bool {
	kind, _, _ := strings.Cut(name, "/")
	return kind == vllmreceiver.NewFactory().Type().String()
}

// mostDiscovery is how long a discovery looks for targets by default.
const mostDiscovery = 2 * time.Second

// jobsOf returns the targets of all receivers, also those that discovery finds.
func jobsOf(ctx context.Context, f *findings, file *configfile.File, host *configfile.Host, lookup time.Duration) []Job {
	var (
		wg    sync.WaitGroup
		found = make([]*probe.Discovered, len(file.Receivers))
		errs  = make([]error, len(file.Receivers))
	)
	for i := range file.Receivers {
		if cfg := file.Receivers[i].Config; cfg.Discovery.IsSet() {
			wg.Go(func() {
				found[i], errs[i] = probe.Discover(ctx, cfg, configfile.Telemetry(zap.NewNop()), lookup)
			})
		}
	}
	wg.Wait()
	var jobs []Job
	for i := range file.Receivers {
		r := &file.Receivers[i]
		processor := file.Processor(r.Name)
		also := alsoBehind(file, r.Name, processor)
		add := func(probes []*probe.Probe) {
			for _, p := range probes {
				job := Job{Probe: p, Receiver: r.Name, Config: r.Config, Processor: processor, Also: also, Host: host}
				if id := p.Authenticator; id != nil && host.Lacks(*id) {
					job.Lacks = id.String()
				}
				jobs = append(jobs, job)
			}
		}
		probes, err := probe.New(r.Config, configfile.Telemetry(zap.NewNop()))
		if err != nil {
			f.add(CodeConfigInvalid, fmt.Sprintf("receivers::%s: %s", r.Name, probe.Printable(err.Error())))
			continue
		}
		add(probes)
		if !r.Config.Discovery.IsSet() {
			continue
		}
		judgeDiscovery(f, r, found[i], errs[i], lookup)
		if found[i] != nil {
			add(found[i].Probes)
		}
	}
	return jobs
}

// judgeDiscovery judges what the discovery of a receiver has found.
func judgeDiscovery(f *findings, r *configfile.Receiver, found *probe.Discovered, err error, within time.Duration) {
	if err != nil || found == nil {
		f.add(CodeDiscoveryError, fmt.Sprintf("The discovery of receivers::%s cannot work here: %s.", r.Name, probe.Printable(fmt.Sprint(err))))
		return
	}
	for _, warning := range found.Warnings {
		if found.Over > 0 && strings.Contains(warning, "limits::targets") {
			continue // It has a code of its own.
		}
		code := CodeDiscoveryWarn
		if strings.HasPrefix(warning, "There is no InferencePool ") || strings.HasPrefix(warning, "The cluster does not know InferencePools") {
			code = CodeDiscoveryError
		}
		f.add(code, probe.Printable(warning)+".")
	}
	if found.Over > 0 {
		f.add(CodeDiscoveryOver, fmt.Sprintf("The discovery of receivers::%s found %d targets more than limits::targets.", r.Name, found.Over))
	}
	switch {
	case len(found.Probes) > 0:
		f.pass(Configuration, "the discovery of receivers::%s finds %s", r.Name, plural(len(found.Probes), "target"))
	case len(found.Warnings) == 0:
		f.add(CodeDiscoveryNone, fmt.Sprintf("The discovery of receivers::%s found no targets within %s%s.", r.Name, within, lookedFor(r.Config)))
	}
}

// lookedFor says where a discovery looks in Kubernetes, and how to see what is there.
func lookedFor(c *vllmreceiver.Config) string {
	switch pool, pods := c.Discovery.InferencePool, c.Discovery.Kubernetes; {
	case pool != nil:
		return fmt.Sprintf(": the InferencePool %q in the namespace %q has no pods that are scraped; see kubectl -n %[2]s describe inferencepool %[1]s, and its selector", pool.Name, pool.Namespace)
	case pods != nil && len(pods.Namespaces) > 0:
		return fmt.Sprintf(": no pod with the labels %q in the namespaces %s; see kubectl -n %s get pods --show-labels", pods.Selector, strings.Join(pods.Namespaces, ", "), pods.Namespaces[0])
	case pods != nil:
		return fmt.Sprintf(": no pod with the labels %q in any namespace; see kubectl get pods -A --show-labels", pods.Selector)
	}
	return ""
}

// judgeTargets judges all targets together.
func judgeTargets(f *findings, targets []Target, file *configfile.File) {
	of := map[string]string{}
	series := map[*vllmprocessor.Config]int{}
	for i := range targets {
		t := &targets[i]
		if other, twice := of[t.Name]; twice && other != t.Receiver {
			f.add(CodeTargetTwice, fmt.Sprintf("%s is a target of receivers::%s and of receivers::%s.", t.Name, other, t.Receiver))
		}
		of[t.Name] = t.Receiver
		if processor := file.Processor(t.Receiver); processor != nil {
			series[processor] += t.Series
		}
	}
	for i := range file.Processors {
		p := &file.Processors[i]
		if n := series[p.Config]; n > p.Config.MaxSeries {
			f.add(CodeProcessorFull, fmt.Sprintf("The targets of processors::%s have %d series, and max_series is %d.", p.Name, n, p.Config.MaxSeries))
		}
	}
}
