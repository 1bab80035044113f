package message

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

func of(engine string) Message {
	m := Message{
		Attributes: pcommon.NewMap(), Since: 7, Board: "https://grafana/d/vllm-engine",
		Words:   wording.Words{Sentence: "It is slow.", Next: []string{"Look.", "Act."}, Runbook: "https://wiki/slow_steps.md"},
		Signals: []wording.Signal{{Name: "running", Value: 12, Usual: 6}},
	}
	m.Attributes.PutStr("engine", engine)
	return m
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	to := pcommon.NewMap()
	Write(to, 9, []Message{of("0"), of("1")})
	read := Read(to)
	require.Len(t, read, 2)
	for i, engine := range []string{"0", "1"} {
		want := of(engine)
		want.At = 9
		assert.Equal(t, want.Attributes.AsRaw(), read[i].Attributes.AsRaw())
		read[i].Attributes, want.Attributes = pcommon.Map{}, pcommon.Map{}
		assert.Equal(t, want, read[i])
	}
	Write(to, 9, nil)
	assert.Len(t, Read(to), 2, "nothing new is said")
	assert.Empty(t, Read(pcommon.NewMap()))
	m := of("0")
	m.Signals[0].Usual = math.NaN()
	Write(to, 9, []Message{m})
	assert.True(t, math.IsNaN(Read(to)[0].Signals[0].Usual), "what is usual may not be known")
}

// A thousand engines that change at once do not make a batch large.
func TestTheMessagesOfABatchAreBounded(t *testing.T) {
	for name, m := range map[string]Message{"small": of("0"), "large": {Attributes: pcommon.NewMap(), Words: wording.Words{Sentence: strings.Repeat("x", 15_000)}}} {
		all := make([]Message, 1000)
		for i := range all {
			all[i] = m
		}
		to := pcommon.NewMap()
		Write(to, 9, all)
		assert.Less(t, len(fmt.Sprint(to.AsRaw())), 129<<10, name)
		list, _ := to.Get(Key)
		assert.Equal(t, map[string]int{"small": 64, "large": 8}[name], list.Slice().Len(), name)
	}
}

// What nobody would read, because its attributes are too long, takes no room from others, nor does what is too long for
// what room is left.
func TestALongMessageHidesNoOther(t *testing.T) {
	long := of("0")
	long.Attributes.PutStr("model_name", strings.Repeat("x", 8000))
	large := of("1")
	large.Sentence = strings.Repeat("x", 2*maxSize)
	to := pcommon.NewMap()
	Write(to, 9, append(slices.Repeat([]Message{long, large}, 50), of("2")))
	read := Read(to)
	require.Len(t, read, 1)
	engine, _ := read[0].Attributes.Get("engine")
	assert.Equal(t, "2", engine.Str())
}

// Anybody may send metadata. What is read is short, printable, and of the right form.
func TestForeignMetadataDoesNoHarm(t *testing.T) {
	for name, raw := range map[string]any{
		"text": "x", "number": int64(1), "map": map[string]any{"sentence": "x"}, "texts": []any{"x"},
		"no attributes": []any{map[string]any{"sentence": "x"}}, "no sentence": []any{map[string]any{"attributes": map[string]any{}}},
		"long attributes": []any{map[string]any{"sentence": "x", "attributes": map[string]any{"a": strings.Repeat("x", 3000)}}},
	} {
		from := pcommon.NewMap()
		require.NoError(t, from.FromRaw(map[string]any{Key: raw}))
		assert.Empty(t, Read(from), name)
	}
	long, name := strings.Repeat("é\x1b", 2000), strings.Repeat("é\x1b", 50)
	many, steps, large := make([]any, 100), make([]any, 100), make([]any, 100)
	for i := range many {
		many[i], steps[i], large[i] = map[string]any{"name": name, "value": 1.0, "usual": math.Inf(1)}, name, long
	}
	one := map[string]any{"attributes": map[string]any{}, "at": "x", "sentence": long, "board": long, "runbook": int64(1), "next": steps, "signals": many}
	from := pcommon.NewMap()
	require.NoError(t, from.FromRaw(map[string]any{Key: []any{one, map[string]any{"attributes": map[string]any{}, "sentence": "x", "next": large}, map[string]any{"attributes": map[string]any{}, "sentence": "x", "next": "x", "signals": []any{
		"x", map[string]any{"value": 1.0}, map[string]any{"name": "a"}, map[string]any{"name": "b", "value": math.Inf(1)},
	}}}}))
	read := Read(from)
	require.Len(t, read, 2)
	assert.Less(t, len(fmt.Sprint(read[0])), 16<<10)
	assert.NotContains(t, fmt.Sprint(read[0]), "\x1b")
	assert.Len(t, read[0].Next, 16)
	assert.Len(t, read[0].Signals, 16)
	assert.True(t, math.IsNaN(read[0].Signals[0].Usual))
	assert.Zero(t, read[0].At)
	assert.Empty(t, read[0].Runbook)
	assert.Empty(t, read[1].Next)
	assert.Empty(t, read[1].Signals)
}
