package scrape

import (
	"sync"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// maxNamedFamilies is how many families the log names at most. All further ones are only
// counted.
const maxNamedFamilies = 1000

// maxNamesPerLine is how many families one line of the log names at most.
const maxNamesPerLine = 20

// planLog logs each unknown and each contradicting family once.
type planLog struct {
	logger *zap.Logger

	mu    sync.Mutex
	named map[string]bool
}

// log is called for each new plan.
func (l *planLog) log(plan *normalize.Plan) {
	if families := l.unnamed(plan.Unknown); len(families) > 0 {
		l.logger.Info("These families are unknown. They are emitted under names derived from theirs",
			listed(families)...)
	}
	if families := l.unnamed(plan.Conflicts); len(families) > 0 {
		l.logger.Warn("These families have another TYPE than in vLLM, so they are emitted under other names. "+
			"Gauges of Ray that repeat a counter are dropped", listed(families)...)
	}
}

// listed returns the fields for the log: some of the names, and how many more there are.
// The names are remote input.
func listed(families []string) []zap.Field {
	named := make([]string, 0, min(len(families), maxNamesPerLine))
	for _, family := range families[:cap(named)] {
		named = append(named, remote.Text(family))
	}
	fields := []zap.Field{zap.Strings("families", named)}
	if more := len(families) - len(named); more > 0 {
		fields = append(fields, zap.Int("more", more))
	}
	return fields
}

// unnamed returns the names that were not logged before.
func (l *planLog) unnamed(names []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, name := range names {
		if !l.named[name] && len(l.named) < maxNamedFamilies {
			l.named[name] = true
			out = append(out, name)
		}
	}
	return out
}
