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
	assert.Contains(t, logs.All()[maxRemembered-1].Message, "message 200 of this kind")
	logger.With(slog.String("config", "x"), slog.String("a", "b\nc")).Warn("with attributes")
	assert.Equal(t, maxRemembered, logs.Len())
}

// The log has the limit to set, again if more targets are found than that, and reports the
// end.
func TestTheLimitOfTargetsIsLoggedWhenItChanges(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	r := &Runner{options: Options{Logger: zap.New(core), Limit: 1000}, reported: true}
	for _, tt := range []struct {
		found, over int
		want        string
	}{
		{1000, 0, ""},
		{1003, 3, "Discovery has found 1003 targets, more than limits::targets (1000): the last 3 are not scraped. Set limits::targets to 1300"},
		{1300, 300, ""},
		{1301, 301, "Discovery has found 1301 targets, more than limits::targets (1000): the last 301 are not scraped. Set limits::targets to 1700"},
		{1000, 0, ""},
		{1001, 1, ""},
		{901, 0, ""},
		{1001, 1, ""},
		{900, 0, "Discovery is within limits::targets again"},
		{1000, 0, ""},
		{1100, 100, "Discovery has found 1100 targets, more than limits::targets (1000): the last 100 are not scraped. Set limits::targets to 1400"},
	} {
		r.logLimit(tt.found, tt.over)
		var got []string
		for _, entry := range logs.TakeAll() {
			got = append(got, entry.Message)
		}
		assert.Equal(t, tt.want, strings.Join(got, ", "), "%d over the limit", tt.over)
	}
}

func TestADiscoveryWithoutTargetsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.InfoLevel)
	r := &Runner{options: Options{Logger: zap.New(core), Limit: 2}}
	for range 3 {
		r.logChanges(nil, nil, 0)
	}
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "Discovery has started and has found no targets yet", logs.All()[0].Message)
}
