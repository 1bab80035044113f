package vllmreceiver

import (
	"sync"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// maxNamedFamilies bounds the families that the log names; those beyond it are
// only counted.
const maxNamedFamilies = 1000

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
			zap.Strings("families", families))
	}
	if families := l.news(plan.Conflicts); len(families) > 0 {
		l.logger.Warn("Families whose TYPE contradicts vLLM's are not taken for vLLM's metrics: gauge twins of counters, "+
			"as Ray writes them, are dropped, others pass under a name of their own", zap.Strings("families", families))
	}
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
