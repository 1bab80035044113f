package normalize

import (
	"strconv"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Options are the user's choices that change a plan.
type Options struct {
	// Wire keeps the names of the wire instead of the canonical ones.
	Wire bool
	// Enabled overrides the catalogue's default per metric name.
	Enabled map[string]bool
	// Prefixes are further prefixes that the deployment may add to family names, next
	// to the known ones.
	Prefixes []string
	// Version is the server's version, "0.10.2" for example; empty if unknown.
	Version string
	// CapacityFromBlocks allows num_gpu_blocks x block_size as KV-cache capacity for
	// servers before v0.24. The product is too large for hybrid models.
	CapacityFromBlocks bool
	// GenAI adds the three histograms of the OpenTelemetry conventions.
	GenAI bool
	// OperationName is the gen_ai.operation.name of the mirror.
	OperationName string
	// Source is the kind of the target if the user sets it; otherwise the body decides.
	Source Source
	// KeepFairness keeps the label fairness_id of gateways. Otherwise series are added
	// up over it.
	KeepFairness bool
	// MaxAdapters limits the LoRA adapters of one body.
	MaxAdapters int
}

// enabled reports whether a metric of this canonical name is emitted.
func (o *Options) enabled(name string, byDefault bool) bool {
	if on, ok := o.Enabled[name]; ok {
		return on
	}
	return byDefault
}

// versionIn reports whether the server's version is known and in [since, until). An
// empty bound is open.
func (o *Options) versionIn(since, until string) bool {
	v, ok := parseVersion(o.Version)
	if !ok {
		return false
	}
	if low, ok := parseVersion(since); ok && compareVersions(v, low) < 0 {
		return false
	}
	if high, ok := parseVersion(until); ok && compareVersions(v, high) >= 0 {
		return false
	}
	return true
}

// VersionClass returns the same text for all versions that have the same plans. Plans
// are remembered by this class, because a server may answer any number of versions.
func VersionClass(version string) string {
	options := Options{Version: version}
	class := make([]byte, 0, 8)
	for _, source := range versionSources() {
		if options.versionIn(source.Since, source.Until) {
			class = append(class, '1')
		} else {
			class = append(class, '0')
		}
	}
	return string(class)
}

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

// parseVersion reads the numbers of a Python version such as "0.10.1.1",
// "0.20.0rc1" or "0.9.0.dev1+g1234". These are not semantic versions, so no library
// for those can read them.
func parseVersion(s string) (v [3]int, ok bool) {
	for i, part := range strings.SplitN(strings.TrimPrefix(s, "v"), ".", 4) {
		if i == len(v) {
			break
		}
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		if end == 0 {
			break
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			return v, false
		}
		v[i] = n
		ok = true
		if end < len(part) {
			break
		}
	}
	return v, ok
}

func compareVersions(a, b [3]int) int {
	for i := range a {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}

// wireKey replaces the prefix of the deployment, so that
// "ray_vllm_num_requests_running" becomes "vllm:num_requests_running". The second
// result reports whether the name has a vLLM prefix.
func (o *Options) wireKey(family string) (string, bool) {
	name := o.withoutUserPrefix(family)
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
	for _, prefix := range catalog.DisabledPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
