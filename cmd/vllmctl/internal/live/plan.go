package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// Plan is what a session runs.
type Plan struct {
	Pipelines []Pipeline
	// Interval is the time between two scrapes of a server, and Window what rates and means
	// are taken over; the longest of several.
	Interval, Window time.Duration
	// Judging is for how long an engine has to be watched before a great problem is reported,
	// the longest of several. A small one takes longer.
	Judging time.Duration
	// Targets is the number of servers that are named; more may be discovered.
	Targets int
	// Discovers reports whether a receiver finds servers by itself.
	Discovers bool
	// Notes are sentences about what differs from the configuration.
	Notes []string
}

// Pipeline is one processor with the receivers in front of it.
type Pipeline struct {
	Name      string
	Processor *vllmprocessor.Config
	Receivers []Receiver
}

// Receiver is one receiver.
type Receiver struct {
	// Name is what follows the type in the name of the component; empty for nothing.
	Name   string
	Config *vllmreceiver.Config
}

func (r *Receiver) id() component.ID {
	return component.NewIDWithName(vllmreceiver.NewFactory().Type(), r.Name)
}

// Times are the choices of the user. 0 means the default, or what a configuration has.
type Times struct{ Interval, Window time.Duration }

// The defaults and limits of the times. A server is scraped more often than a collector does,
// so that a person who watches sees something soon.
const (
	DefaultInterval = 5 * time.Second
	minInterval     = time.Second
	// scrapesPerWindow are as few as a rate that is not ragged needs, because five windows of
	// traffic have to pass before it is known what is usual.
	scrapesPerWindow = 3
	// minScrapes are needed for any rate at all.
	minScrapes = 2
)

// MaxTargets is how many addresses can be named. More are found by discovery, with a
// configuration.
const MaxTargets = 1000

// OfAddresses returns the plan for servers that are named on the command line.
func OfAddresses(addresses []string, client *confighttp.ClientConfig, times Times) (*Plan, error) {
	times.Interval = cmp.Or(times.Interval, DefaultInterval)
	times.Window = cmp.Or(times.Window, scrapesPerWindow*times.Interval)
	if err := times.check(); err != nil {
		return nil, err
	}
	if len(addresses) > MaxTargets {
		return nil, fmt.Errorf("%d servers exceed the limit of %d; name fewer, or use --config with discovery", len(addresses), MaxTargets)
	}
	config := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	var targets []any
	for _, address := range addresses {
		targets = append(targets, map[string]any{"endpoint": address})
	}
	section := map[string]any{"targets": targets, "collection_interval": times.Interval.String(), "initial_delay": "0s"}
	if err := confmap.NewFromStringMap(section).Unmarshal(config); err != nil {
		return nil, err
	}
	for i := range config.Targets {
		endpoint := config.Targets[i].Client.Endpoint
		config.Targets[i].Client = *client
		config.Targets[i].Client.Endpoint = endpoint
	}
	config.Client.Timeout = client.Timeout
	// These servers are expected to be up. Whoever starts one sees in the reason that it
	// does not listen yet.
	judging := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
	judging.Diagnosis.StartTimeout = 0
	plan := &Plan{Pipelines: []Pipeline{{Processor: judging, Receivers: []Receiver{{Config: config}}}}}
	if err := plan.finish(times); err != nil {
		// The receiver names the key of a configuration that does not exist.
		text := strings.ReplaceAll(err.Error(), ", or give it its own resource_attributes::service.instance.id", "")
		return nil, errors.New(ofTarget.ReplaceAllStringFunc(text, func(key string) string {
			number, _ := strconv.Atoi(ofTarget.FindStringSubmatch(key)[1])
			return fmt.Sprintf("address %d", number+1)
		}))
	}
	return plan, nil
}

// ofTarget is how the receiver names the address of a target.
var ofTarget = regexp.MustCompile(`(?:vllm: )?targets::(\d+)(?:::endpoint)?`)

// OfFile returns the plan for the receivers and processors of a configuration. Exporters and
// all components of others are left out.
func OfFile(file *configfile.File, times Times) (*Plan, error) {
	if len(file.Receivers) == 0 {
		return nil, errors.New("no pipeline of the configuration has a vllm receiver; add one, or name the addresses of servers")
	}
	if times.Interval != 0 || times.Window != 0 {
		if err := (Times{cmp.Or(times.Interval, DefaultInterval), cmp.Or(times.Window, time.Hour)}).check(); err != nil {
			return nil, err
		}
	}
	plan := &Plan{}
	for _, r := range file.Receivers {
		judging := file.Processor(r.Name)
		i := slices.IndexFunc(plan.Pipelines, func(p Pipeline) bool { return judging != nil && p.Processor == judging })
		if i < 0 {
			i = len(plan.Pipelines)
			p := Pipeline{Name: fmt.Sprintf("top%d", i), Processor: judging}
			if judging == nil {
				p.Processor = vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
				plan.Notes = append(plan.Notes, r.Name+" has no vllm processor in its pipeline; default settings apply")
			}
			plan.Pipelines = append(plan.Pipelines, p)
		}
		var id component.ID
		if err := id.UnmarshalText([]byte(r.Name)); err != nil {
			return nil, err
		}
		plan.Pipelines[i].Receivers = append(plan.Pipelines[i].Receivers, Receiver{Name: id.Name(), Config: r.Config})
	}
	err := plan.finish(times)
	return plan, err
}

func (t Times) check() error {
	switch {
	case t.Interval < minInterval:
		return fmt.Errorf("--interval %s is too short; write at least 1s", t.Interval)
	case t.Window < minScrapes*t.Interval:
		return fmt.Errorf("--window %s has fewer than two scrapes; write at least %s", t.Window, minScrapes*t.Interval)
	}
	return nil
}

// finish sets what the view needs in all components, and validates them.
func (p *Plan) finish(times Times) error {
	for i := range p.Pipelines {
		pipeline := &p.Pipelines[i]
		interval := time.Duration(0)
		for _, r := range pipeline.Receivers {
			if err := p.scraping(r.Config, times); err != nil {
				return fmt.Errorf("%s: %w", r.id(), err)
			}
			interval = max(interval, r.Config.Controller.CollectionInterval)
		}
		window := times.Window
		if window == 0 && times.Interval != 0 && pipeline.Processor.Window < minScrapes*interval {
			window = scrapesPerWindow * interval
		}
		if err := p.judging(pipeline.Processor, window); err != nil {
			return fmt.Errorf("the processor %s: %w", pipeline.Name, err)
		}
		p.Interval, p.Window = max(p.Interval, interval), max(p.Window, pipeline.Processor.Window)
		// The last of these windows can end up to an interval later.
		judging := time.Duration(pipeline.Processor.Diagnosis.Hold)*pipeline.Processor.Window + interval
		p.Judging = max(p.Judging, judging)
	}
	return nil
}

// scraping sets what the view needs of a receiver.
func (p *Plan) scraping(config *vllmreceiver.Config, times Times) error {
	if times.Interval > 0 {
		config.Controller.CollectionInterval = times.Interval
	}
	// The first picture should not have to wait.
	config.Controller.InitialDelay = 0
	interval := config.Controller.CollectionInterval
	config.Client.Timeout = atMost(config.Client.Timeout, interval)
	for i := range config.Targets {
		config.Targets[i].Client.Timeout = atMost(config.Targets[i].Client.Timeout, interval)
	}
	config.Naming, config.Preset = vllmreceiver.NamingCanonical, catalog.Standard
	for name := range maps.Clone(config.Metrics) {
		if _, needed := needs[name]; needed {
			delete(config.Metrics, name) // What the view needs is on by default.
		}
	}
	p.Targets += max(len(config.Targets), 1)
	if len(config.Targets) == 0 && config.Client.Endpoint == "" {
		p.Targets--
	}
	p.Discovers = p.Discovers || config.Discovery.IsSet()
	return confmap.Validate(config)
}

// atMost shortens a timeout: the receiver refuses one that is longer than the interval. 0
// would be no limit.
func atMost(timeout, interval time.Duration) time.Duration {
	if timeout <= 0 {
		return interval
	}
	return min(timeout, interval)
}

// judging sets what the view needs of a processor.
func (p *Plan) judging(config *vllmprocessor.Config, window time.Duration) error {
	if window > 0 {
		config.Window = window
		config.MaxStaleness = max(config.MaxStaleness, 2*window)
		config.Diagnosis.RelearnAfter = max(config.Diagnosis.RelearnAfter, config.Diagnosis.LeastRelearnAfter(window))
	}
	if config.Storage != nil {
		// Two writers of one storage would damage it.
		config.Storage = nil
		p.Notes = append(p.Notes, "the collector keeps its storage; usual values are learned in this session")
	}
	config.Diagnosis.Enabled = true
	config.Derived.Percentiles.PerEngine = true
	if config.Metrics == nil {
		config.Metrics = map[string]vllmprocessor.MetricConfig{}
	}
	on := true
	for name := range needs {
		metric, _ := catalog.ByName(name)
		if metric.EmittedBy == "processor" && (config.Pool.HasValue() || !strings.HasPrefix(name, poolPrefix)) {
			config.Metrics[name] = vllmprocessor.MetricConfig{Enabled: &on}
		}
	}
	return confmap.Validate(config)
}
