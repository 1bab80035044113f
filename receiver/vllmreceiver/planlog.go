package vllmreceiver

import (
	"sync"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// maxNamedFamilies bounds the families that the log names; those beyond it are
// only counted.
const maxNamedFamilies = 1000

// maxNamesPerLine bounds the families that one line of the log names.
const maxNamesPerLine = 20

// planLog names each unknown and each contradicting family once.
type planLog struct {
	logger *zap.Logger

	mu    sync.Mutex
	named map[string]bool
}

func newPlanLog(logger *zap.Logger) *planLog {
	return &planLog{logger: logger, named: map[string]bool{}}
}

// made is called for each new plan.
func (l *planLog) made(plan *normalize.Plan) {
	if families := l.news(plan.Unknown); len(families) > 0 {
		l.logger.Info("Families that the catalogue does not know pass through under their mechanical names",
			listed(families)...)
	}
	if families := l.news(plan.Conflicts); len(families) > 0 {
		l.logger.Warn("Families whose TYPE contradicts vLLM's are not taken for vLLM's metrics: gauge twins of counters, "+
			"as Ray writes them, are dropped, others pass under a name of their own", listed(families)...)
	}
}

// listed are the names for the log and how many more there are. The names are
// remote input.
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

// news returns the names that were not logged before.
func (l *planLog) news(names []string) []string {
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
