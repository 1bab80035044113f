package discover

import (
	"context"
	"fmt"
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

// saidOnce remembers which texts were logged. They may come from another machine,
// and each may be new.
type saidOnce struct {
	mu    sync.Mutex
	texts map[string]bool
}

// maxRemembered is the most texts that are logged.
const maxRemembered = 200

func newSaidOnce() *saidOnce { return &saidOnce{texts: map[string]bool{}} }

// first returns the text to log where it is logged for the first time.
func (s *saidOnce) first(text string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[text] || len(s.texts) >= maxRemembered {
		return text, false
	}
	s.texts[text] = true
	if len(s.texts) == maxRemembered {
		return fmt.Sprintf("%s (this is the %dth message of its kind; new ones are not shown until the collector restarts)",
			text, maxRemembered), true
	}
	return text, true
}

// warn logs a text as a warning the first time.
func (s *saidOnce) warn(logger *zap.Logger, text string, fields ...zap.Field) {
	if message, ok := s.first(text); ok {
		logger.Warn(message, fields...)
	}
}

func newLogger(logger *zap.Logger) *slog.Logger {
	return slog.New(&logHandler{logger: logger, said: newSaidOnce()})
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
	if once, ok := h.said.first(message); ok {
		h.logger.Warn(once)
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
