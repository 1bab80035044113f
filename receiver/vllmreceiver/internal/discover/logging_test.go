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

// The log reports when the limit is exceeded and when it no longer is, once each.
func TestTheLimitOfTargetsIsLoggedWhenItChanges(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	r := &Runner{options: Options{Logger: zap.New(core), Limit: 2}}
	for _, tt := range []struct {
		over int
		want string
	}{
		{0, "Discovery has started and has found no targets yet"},
		{1, "Discovery has found more targets than limits::targets; those that were there first are scraped"},
		{5, ""},
		{0, "Discovery is within limits::targets again"},
		{0, ""},
	} {
		r.logChanges(nil, nil, tt.over)
		var got []string
		for _, entry := range logs.TakeAll() {
			got = append(got, entry.Message)
		}
		assert.Equal(t, tt.want, strings.Join(got, ", "), "%d over the limit", tt.over)
	}
}
