package discover

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestTheLogOfTheLibraryIsBoundedAndHasNoForgedLines(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	logger := newLogger(zap.New(core))
	for i := range 1000 {
		logger.Error("cannot read", "err", fmt.Sprintf("a\nforged line %d at https://u:hunter2@host/?t=hunter2", i))
	}
	require.Equal(t, maxRemembered, logs.Len())
	for _, entry := range logs.All() {
		assert.False(t, strings.ContainsFunc(entry.Message, unicode.IsControl), "%q", entry.Message)
		assert.NotContains(t, entry.Message, "hunter2")
	}
	assert.Contains(t, logs.All()[maxRemembered-1].Message, "this is the 200th message of its kind")
	logger.With(slog.String("config", "x"), slog.String("a", "b\nc")).Warn("with attributes")
	assert.Equal(t, maxRemembered, logs.Len())
}
