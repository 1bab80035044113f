package check

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/load"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// Sent is what an exporter will send or serve, for the servers that answered.
type Sent struct {
	// Exporter is its name in the configuration.
	Exporter string `json:"exporter"`
	// Targets is the number of servers that were measured.
	Targets int `json:"targets"`
	// Series is the number of series; a histogram counts as one, as in OTLP.
	Series int `json:"series"`
	// PrometheusSeries is the number where each bucket is a series, as in Prometheus.
	PrometheusSeries int `json:"prometheus_series"`
	// PointsPerMinute are points of OTLP in a minute, or samples for remote write; absent for the exporter prometheus, which others scrape.
	PointsPerMinute int `json:"points_per_minute,omitempty"`
	// BytesPerDay is the estimated size of the requests in bytes a day, compressed as configured; absent where it is not known.
	BytesPerDay int64 `json:"bytes_per_day,omitempty"`
	// Presets are those of the processors that derive what it sends; absent without such a processor.
	Presets []string `json:"presets,omitempty"`
	// Before are processors that may make it less; absent for most.
	Before []string `json:"before,omitempty"`
}

// reducers are kinds of processors that drop or merge points.
var reducers = []string{"filter", "interval", "metricstransform"}

// sentOf adds up what each exporter gets of what was seen, in the order of their names.
func sentOf(file *configfile.File, seen []Seen) []Sent {
	var out []Sent
	for _, exporter := range usedExporters(file) {
		kind, _, _ := strings.Cut(exporter, "/")
		if slices.Contains(local, kind) || ownReceiver(file, exporter) != "" {
			continue
		}
		sent := Sent{Exporter: exporter}
		var ways []way
		ways, sent.Before = waysTo(file, exporter)
		sent.measure(file, seen, ways)
		if sent.Targets > 0 {
			out = append(out, sent)
		}
	}
	return out
}

// way is a receiver with the processor behind it, which is nil without one.
type way struct {
	receiver  string
	processor *vllmprocessor.Config
}

// waysTo returns the ways to an exporter, and the processors on them that may make it less.
func waysTo(file *configfile.File, exporter string) (ways []way, before []string) {
	var visited []string
	var trace func(exporter string, behind *vllmprocessor.Config)
	trace = func(exporter string, behind *vllmprocessor.Config) {
		for i := range file.Pipelines {
			p := &file.Pipelines[i]
			if !slices.Contains(p.Exporters, exporter) || slices.Contains(visited, p.Name) {
				continue
			}
			visited = append(visited, p.Name)
			for _, name := range p.Processors {
				if kind, _, _ := strings.Cut(name, "/"); slices.Contains(reducers, kind) {
					before = append(before, name)
				}
			}
			processor := cmp.Or(file.ProcessorIn(p), behind)
			if behind != nil && behind.Preset == catalog.Essential {
				processor = behind // It removes what the one before adds.
			}
			for _, name := range p.Receivers {
				ways = append(ways, way{name, processor})
				if _, connects := file.Others["connectors::"+name]; connects && !strings.HasPrefix(name, "vllm_diagnosis") {
					trace(name, processor)
				}
			}
			for _, outbox := range usedExporters(file) {
				if own := ownReceiver(file, outbox); own != "" && slices.Contains(p.Receivers, own) {
					trace(outbox, processor)
				}
			}
		}
	}
	trace(exporter, nil)
	return ways, before
}

// alsoBehind returns the processors behind a receiver, without the first one; nil is an exporter behind none.
func alsoBehind(file *configfile.File, receiver string, first *vllmprocessor.Config) (also []*vllmprocessor.Config) {
	for _, exporter := range usedExporters(file) {
		ways, _ := waysTo(file, exporter)
		for _, w := range ways {
			if w.receiver == receiver && w.processor != first && !slices.Contains(also, w.processor) {
				also = append(also, w.processor)
			}
		}
	}
	return also
}

// measure adds up what the targets on these ways cost, each pool once.
func (s *Sent) measure(file *configfile.File, seen []Seen, ways []way) {
	kind, _, _ := strings.Cut(s.Exporter, "/")
	section := file.Exporters[s.Exporter]
	points, size := 0.0, 0.0
	add := func(l *load.Load, interval time.Duration) {
		s.Series, s.PrometheusSeries = s.Series+l.Points, s.PrometheusSeries+l.Series
		each, bytes := l.Points, 0
		switch {
		case kind == "prometheus":
			return
		case slices.Contains(remoteWrite, kind):
			each = l.Series
		case slices.Contains(queued, kind) && section["compression"] == "none":
			bytes = l.Raw
		case slices.Contains(queued, kind):
			bytes = l.Packed
		}
		points += float64(each) * float64(time.Minute) / float64(interval)
		size += float64(bytes) * float64(24*time.Hour) / float64(interval)
	}
	type pool struct {
		processor *vllmprocessor.Config
		key       string
	}
	pools := map[pool]load.Load{}
	for i := range seen {
		measured := 0
		for _, t := range slices.Concat(seen[i:i+1], seen[i].Also) {
			if t.Batch.Points == 0 || !slices.Contains(ways, way{t.Receiver, t.Processor}) {
				continue
			}
			measured = 1
			if p := t.Processor; p != nil && !slices.Contains(s.Presets, p.Preset.String()) {
				s.Presets = append(s.Presets, p.Preset.String())
			}
			add(&t.Batch, t.ReceiverConfig.Controller.CollectionInterval)
			for key, l := range t.Pools {
				if of := (pool{t.Processor, key}); l.Points > pools[of].Points {
					pools[of] = l
				}
			}
		}
		s.Targets += measured
	}
	for of, l := range pools {
		add(&l, of.processor.Pool.Get().Interval)
	}
	s.PointsPerMinute, s.BytesPerDay = int(math.Round(points)), int64(size)
}

// words say it for people. targets is the number of all servers.
func (s *Sent) words(targets int) string {
	kind, _, _ := strings.Cut(s.Exporter, "/")
	out := fmt.Sprintf("%s series, %s points a minute", humanize.Comma(int64(s.Series)), humanize.Comma(int64(s.PointsPerMinute)))
	switch prometheus := humanize.Comma(int64(s.PrometheusSeries)) + " series (each bucket of a histogram is one)"; {
	case kind == "prometheus":
		out = prometheus + " at each scrape"
	case slices.Contains(remoteWrite, kind):
		out = prometheus + ", " + humanize.Comma(int64(s.PointsPerMinute)) + " samples a minute"
	case s.BytesPerDay > 0:
		out += ", about " + humanize.IBytes(uint64(s.BytesPerDay)) + " a day as sent; in Prometheus " + humanize.Comma(int64(s.PrometheusSeries)) + " series"
	}
	if s.Targets < targets {
		out = fmt.Sprintf("%d of them: ", s.Targets) + out
	}
	if len(s.Presets) > 0 {
		out += "; preset " + strings.Join(s.Presets, ", ")
	}
	if len(s.Before) > 0 {
		out += "; less behind " + strings.Join(s.Before, ", ")
	}
	return out
}

// ownReceiver is the receiver of this configuration that an exporter sends to by OTLP on loopback, as with a queue on
// disk in front of remote write. It is empty for most.
func ownReceiver(file *configfile.File, exporter string) string {
	section := file.Exporters[exporter]
	to, _ := section["endpoint"].(string)
	if _, rest, found := strings.Cut(to, "://"); found {
		to = rest
	}
	host, port, err := net.SplitHostPort(strings.TrimSuffix(to, "/"))
	if ip := net.ParseIP(host); err != nil || host != "localhost" && !ip.IsLoopback() {
		return ""
	}
	for _, p := range file.Pipelines {
		for _, name := range p.Receivers {
			protocols, _ := file.Others["receivers::"+name]["protocols"].(map[string]any)
			for protocol, usual := range map[string]string{"grpc": "localhost:4317", "http": "localhost:4318"} {
				settings, has := protocols[protocol]
				if of, _ := settings.(map[string]any); of["endpoint"] != nil {
					usual = fmt.Sprint(of["endpoint"])
				}
				if _, listens, _ := net.SplitHostPort(usual); has && listens == port {
					return name
				}
			}
		}
	}
	return ""
}
