package extensioncheck

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// windows reports the processors that derive nothing, because no window has two scrapes of a
// receiver in the same pipeline.
func windows(all map[string]any) (problems []error) {
	pipelines := section(section(all, "service"), "pipelines")
	for name := range pipelines {
		used := usedComponents(map[string]any{name: pipelines[name]})
		for _, p := range ours(section(all, "processors"), used) {
			for _, r := range ours(section(all, "receivers"), used) {
				window := duration(section(section(all, "processors"), p)["window"], time.Minute)
				interval := duration(section(section(all, "receivers"), r)["collection_interval"], 15*time.Second)
				if 0 < window && 2*window < interval {
					problems = append(problems, fmt.Errorf(
						"processors::%s::window: %s is less than half the collection_interval of receivers::%s (%s), so nothing would be derived; write at least %s",
						p, window, r, interval, 2*interval))
				}
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

// duration reads a setting; 0 where it cannot be read, which its component reports.
func duration(value any, standard time.Duration) time.Duration {
	if value == nil {
		return standard
	}
	d, _ := time.ParseDuration(fmt.Sprint(value))
	return d
}
