package normalize

import (
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Options are the user's choices that change a plan.
type Options struct {
	// Wire keeps the names of the wire instead of the canonical ones.
	Wire bool
	// Preset is what is emitted without a switch.
	Preset catalog.Preset
	// Enabled overrides the preset per metric name.
	Enabled map[string]bool
	// Prefixes are further prefixes that the deployment may add to family names, next
	// to the known ones.
	Prefixes []string
	// Version is the server's version, "0.10.2" for example; empty if unknown.
	Version string
	// CapacityFromBlocks allows num_gpu_blocks x block_size as KV-cache capacity for
	// servers before v0.24. The product is too large for models with several kinds of
	// attention.
	CapacityFromBlocks bool
	// GenAI adds the three histograms of the OpenTelemetry conventions.
	GenAI bool
	// Source is the kind of the target if the user sets it; empty is SourceAuto.
	Source Source
	// KeepFairness keeps the label fairness_id of gateways. Otherwise series are added
	// up over it.
	KeepFairness bool
	// MaxAdapters limits the LoRA adapters of one body.
	MaxAdapters int
	// MaxDevices limits the GPUs of one body, and the workloads that use them. 0 is no
	// limit.
	MaxDevices int
}

// enabled reports whether a metric of the catalogue is emitted.
func (o *Options) enabled(m *catalog.Metric) bool {
	on, set := o.Enabled[m.Name]
	return on || !set && m.Feeds(o.Preset)
}

// whole reports whether a metric is emitted also where it says nothing new.
func (o *Options) whole(name string) bool { return o.Enabled[name] || o.Preset == catalog.Full }

// unknown reports whether a metric that the catalogue does not have is emitted under a canonical name.
func (o *Options) unknown(name string, byDefault bool) bool {
	on, set := o.Enabled[name]
	return on || !set && byDefault && o.Preset != catalog.Essential
}

// versionIn reports whether the server's version is known and in [since, until). An
// empty bound is open.
func (o *Options) versionIn(since, until string) bool {
	release, known := catalog.ParseRelease(o.Version)
	return known && release.Within(since, until)
}

// VersionClass returns the same text for all versions that have the same plans. Plans
// are remembered by this class, because a server may answer any number of versions.
func VersionClass(version string) string {
	options := Options{Version: version}
	class := make([]byte, 0, 8)
	for _, source := range versionSources() {
		class = append(class, digit[options.versionIn(source.Since, source.Until)])
	}
	for _, defect := range capacityDefects {
		class = append(class, digit[defect.Affects(version)])
	}
	return string(class)
}

var digit = map[bool]byte{false: '0', true: '1'}

// versionSources are the sources that are valid only in a range of versions. They are
// few, and every scrape needs them, so the catalogue is read once.
var versionSources = sync.OnceValue(func() []catalog.Source {
	var out []catalog.Source
	for _, m := range catalog.All() {
		for _, source := range m.Sources {
			if source.Version {
				out = append(out, source)
			}
		}
	}
	return out
})

// wireKey replaces the prefix of the deployment, so that
// "ray_vllm_num_requests_running" becomes "vllm:num_requests_running". The second
// result reports whether the name has a vLLM prefix.
func (o *Options) wireKey(family string) (string, bool) {
	name := o.withoutUserPrefix(family)
	if namespaceOf(name) != nil {
		return name, false
	}
	for _, prefix := range catalog.Prefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return "vllm:" + rest, true
		}
	}
	if len(name) < len(family) {
		return "vllm:" + name, true
	}
	return name, false
}

// SourceName returns a family's name as catalog.Source.Family writes it.
func (o *Options) SourceName(family string) string {
	key, _ := o.wireKey(family)
	return key
}

// withoutUserPrefix removes the longest of the configured prefixes that matches.
func (o *Options) withoutUserPrefix(family string) string {
	longest := ""
	for _, prefix := range o.Prefixes {
		if len(prefix) > len(longest) && len(prefix) < len(family) && strings.HasPrefix(family, prefix) {
			longest = prefix
		}
	}
	return family[len(longest):]
}

// offByPrefix reports whether families of this name are off by default.
func offByPrefix(name string) bool {
	return slices.ContainsFunc(catalog.DisabledPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
