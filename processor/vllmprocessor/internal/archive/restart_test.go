package archive

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// restarted is a bench whose archive begins with what another has stored.
func restarted(t *testing.T, limit int, kept *store) *bench {
	t.Helper()
	b := newBench(limit)
	b.user.settings.Extension = &stored
	b.user.archive.Extension = &stored
	require.NoError(t, b.user.Start(t.Context(), host{store: kept}))
	return b
}

// The limit is for the states of silent servers. A collector with more servers than that loses none
// of their states by a restart, whether it ends in order or not.
func TestARestartKeepsTheStatesOfAllServersThatWereNotSilent(t *testing.T) {
	t.Parallel()
	const servers, limit = 100, 10
	for name, ends := range map[string]func(b *bench){
		"shut down": func(b *bench) { require.NoError(t, b.user.Shutdown(t.Context())) },
		"killed":    func(b *bench) { b.user.Save(t.Context()); b.archive.stop() },
	} {
		kept := &store{data: map[string][]byte{}}
		b := restarted(t, limit, kept)
		for n := range servers {
			key := fmt.Sprint(n)
			b.user.Begin(key, key)
			b.live[key] = state(noon.Add(time.Duration(n)*time.Second), 1)
		}
		ends(b)
		assert.Zero(t, b.dropped, name)

		b = restarted(t, limit, kept)
		for n := range servers / 2 {
			key := fmt.Sprint(n)
			_, known := b.user.Begin(key, key)
			assert.True(t, known, "%s: %s", name, key)
			b.live[key] = state(noon.Add(time.Hour), 1)
		}
		b.user.Save(t.Context())
		all, err := Decode(kept.data["states.1"])
		require.NoError(t, err)
		assert.Len(t, all, servers, "%s: the others may still answer", name)
		assert.Zero(t, b.dropped, name)

		// Those that do not answer are silent.
		b.now = noon.Add(time.Hour)
		b.user.Save(t.Context())
		all, err = Decode(kept.data["states.1"])
		require.NoError(t, err)
		assert.Len(t, all, servers/2+limit, name)
		assert.Equal(t, servers/2-limit, b.dropped, name)
		b.archive.stop()
	}
}
