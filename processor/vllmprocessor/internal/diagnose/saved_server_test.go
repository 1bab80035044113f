package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// seen is a server that was read, with engines of some attributes.
func seen(attributes ...[]input.Attribute) *State {
	s := &State{server: server{begun: true, read: true}}
	for n, a := range attributes {
		e := &engine{number: n, attributes: a, saved: saved{First: 5}, baseline: signal.NewBaseline()}
		e.last.At = int64(time.Hour)
		s.engines = append(s.engines, e)
	}
	return s
}

func TestAServerSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	s := seen([]input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}}, []input.Attribute{{Name: "engine", Value: "1"}})
	s.engines[1].Reported.Condition = Unreachable
	s.server.contact.recent = []outcome{{1, false}, {int64(time.Minute), true}, {2 * int64(time.Minute), true}}
	at, sound := Age(s.encodeServer())
	assert.True(t, sound)
	assert.Equal(t, int64(time.Hour), at)
	saved, sound := decodeServer(s.encodeServer())
	require.True(t, sound)
	assert.Equal(t, []savedEngine{
		{Attributes: s.engines[0].attributes, First: 5, Since: int64(time.Minute)},
		{Attributes: s.engines[1].attributes, First: 5, Unreachable: true, Since: int64(time.Minute)},
	}, saved.Engines)
	assert.Nil(t, (&State{}).encodeServer(), "a server that was never read is not known")
	_, sound = signal.DecodeBaseline(s.encodeServer())
	assert.False(t, sound, "it is not a baseline")
	_, sound = decodeServer(learned(10).Encode())
	assert.False(t, sound, "and a baseline is not a server")
}

// However many engines a server has and whatever they are called, what is kept is
// bounded, and that it was read is kept.
func TestASavedServerIsBounded(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]string{"many": "m", "long": strings.Repeat("m", 10_000), "escaped": strings.Repeat("\x01", 3000), "huge": strings.Repeat("m", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var engines [][]input.Attribute
			for n := range 2000 {
				engines = append(engines, []input.Attribute{{Name: "engine", Value: fmt.Sprint(n)}, {Name: "model_name", Value: model}})
			}
			data := seen(engines...).encodeServer()
			assert.LessOrEqual(t, len(data), maxSavedServer)
			_, sound := decodeServer(data)
			assert.True(t, sound)
		})
	}
}

func FuzzDecodeServer(f *testing.F) {
	f.Add(seen([]input.Attribute{{Name: "engine", Value: "0"}}).encodeServer())
	f.Add([]byte(`{"server":1,"at":1,"engines":[{"attributes":null,"since":-1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored, sound := decodeServer(data)
		if !sound {
			return
		}
		s := &State{server: server{begun: true, read: true, restored: stored.Engines}}
		for i := range s.server.restored {
			one := &s.server.restored[i]
			e := &engine{number: i, attributes: one.Attributes, saved: saved{First: s.server.first(one.Attributes, stored.At)}, baseline: signal.NewBaseline(), at: stored.At}
			s.engines = append(s.engines, e)
		}
		s.server.contact.resume(stored.Engines)
		s.server.restored = nil
		s.server.count(settings(2), 0, stored.At)
		s.reportUnreachable(settings(2), stored.At)
		if len(s.engines) > 0 {
			require.LessOrEqual(t, s.engines[0].First, stored.At)
		}
	})
}
