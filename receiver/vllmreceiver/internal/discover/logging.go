package discover

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// logHandler passes what Prometheus's library logs on to the collector's log:
// a warning or an error the first time, its repetitions for those who debug.
type logHandler struct {
	logger *zap.Logger
	prefix string
	said   *saidOnce
}

type saidOnce struct {
	mu    sync.Mutex
	texts map[string]bool
}

// maxRemembered bounds the texts that count as said. Above it, all is said.
const maxRemembered = 1000

// first tells whether a text is said for the first time.
func (s *saidOnce) first(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[text] {
		return false
	}
	if len(s.texts) < maxRemembered {
		s.texts[text] = true
	}
	return true
}

func newLogger(logger *zap.Logger) *slog.Logger {
	return slog.New(&logHandler{logger: logger, said: &saidOnce{texts: map[string]bool{}}})
}

// Enabled keeps the library's debugging and chatter out: the runner logs what
// an operator needs.
func (*logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle logs one record.
func (h *logHandler) Handle(_ context.Context, record slog.Record) error {
	var text strings.Builder
	text.WriteString("Discovery: " + record.Message + h.prefix)
	record.Attrs(func(a slog.Attr) bool {
		text.WriteString(" " + a.Key + "=" + a.Value.String())
		return true
	})
	message := remote.Text(text.String())
	if h.said.first(message) {
		h.logger.Warn(message)
	} else {
		h.logger.Debug(message)
	}
	return nil
}

// WithAttrs returns a handler that adds attributes to every record.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	for _, a := range attrs {
		// The mechanism and its set name are the library's own bookkeeping.
		if a.Key != "config" {
			out.prefix += " " + a.Key + "=" + a.Value.String()
		}
	}
	return &out
}

// WithGroup has no groups to show.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
