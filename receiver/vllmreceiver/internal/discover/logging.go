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

// logHandler writes the log of Prometheus's library to that of the collector. A text is
// a warning the first time; its repetitions have the level debug.
type logHandler struct {
	logger *zap.Logger
	prefix string
	once   *warnings
}

// warnings logs each text once. Texts may contain input from other machines, so their
// number is limited.
type warnings struct {
	mu    sync.Mutex
	texts map[string]bool
}

// maxRemembered is the maximum number of texts that are logged.
const maxRemembered = 200

func newWarnings() *warnings { return &warnings{texts: map[string]bool{}} }

// first returns the message for a text and reports whether to log it: a text is logged
// once.
func (s *warnings) first(text string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[text] || len(s.texts) >= maxRemembered {
		return text, false
	}
	s.texts[text] = true
	if len(s.texts) == maxRemembered {
		return fmt.Sprintf("%s (message %d of this kind; further ones are not logged until the collector restarts)",
			text, maxRemembered), true
	}
	return text, true
}

// warn logs a text as a warning, once.
func (s *warnings) warn(logger *zap.Logger, text string, fields ...zap.Field) {
	if message, ok := s.first(text); ok {
		logger.Warn(message, fields...)
	}
}

func newLogger(logger *zap.Logger) *slog.Logger {
	return slog.New(&logHandler{logger: logger, once: newWarnings()})
}

// Enabled reports whether a level is at least a warning: the runner itself logs the rest
// that an operator needs.
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
	if first, ok := h.once.first(message); ok {
		h.logger.Warn(first)
	} else {
		h.logger.Debug(message)
	}
	return nil
}

// WithAttrs returns a handler that adds attributes to every record.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	for _, a := range attrs {
		// This attribute is an internal name of the library.
		if a.Key != "config" {
			out.prefix += " " + a.Key + "=" + a.Value.String()
		}
	}
	return &out
}

// WithGroup ignores the group.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
