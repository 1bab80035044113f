package exposition

import (
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What replay accepts as a timestamp before the constant text that follows it. The ends
// are counted by hand. Where there is none, the parsers read the block.
func TestAfterTimestamp(t *testing.T) {
	for _, tt := range []struct {
		body, constant string
		dialect        Dialect
		want           int
	}{
		{" 1\n", "\n", DialectText, 3},
		{" 1\nnext", "\n", DialectText, 3},
		{" 1\nnext", "\nnext", DialectText, 7},
		{" 123456789012345678\n", "\n", DialectText, 20},
		{" 1234567890123456789\n", "\n", DialectText, -1}, // may not fit an int64
		{" 09", "", DialectText, 3},
		{" 1", "\n", DialectText, -1}, // the body ends within the line
		{"", "\n", DialectText, -1},
		{"\n", "\n", DialectText, -1},
		{" \n", "\n", DialectText, -1},
		{" -1\n", "\n", DialectText, -1},
		{" /\n", "\n", DialectText, -1},
		{" :\n", "\n", DialectText, -1},
		{" 1 \n", "\n", DialectText, -1},
		{" 1x", "\n", DialectText, -1},
		{" 1.5\n", "\n", DialectText, -1},
		{" 1.5\n", "\n", DialectOpenMetrics, 5},
		{" 1.09\n", "\n", DialectOpenMetrics, 6},
		{" 1.\n", "\n", DialectOpenMetrics, 4},
		{" 1.5", "\n", DialectOpenMetrics, -1},
		{" 1.5", "", DialectOpenMetrics, 4},
		{" 1.", "", DialectOpenMetrics, 3},
		{" 1", "", DialectOpenMetrics, 2},
		{" 1.5.5\n", "\n", DialectOpenMetrics, -1},
	} {
		seed := maphash.MakeSeed()
		for _, before := range []string{"", "a 1"} {
			want := tt.want
			if want >= 0 {
				want += len(before)
			}
			c := constant{maphash.String(seed, tt.constant), len(tt.constant)}
			assert.Equal(t, want, afterTimestamp(seed, []byte(before+tt.body), len(before), c, tt.dialect), "%q %q", before, tt.body)
		}
	}
}

// A target whose last answer was complete may be cut within a timestamp.
func TestABodyThatEndsWithinATimestampIsReplayedAsItIsRead(t *testing.T) {
	memory := NewMemory(1000)
	for _, d := range []Dialect{DialectText, DialectOpenMetrics} {
		for _, second := range []string{"a 2 12", "a 2 ", "a 2", "a 2 12.", "a 2 12.5", "a 2 12\n"} {
			reader := NewReader(memory)
			reader.Read([]byte("a 1 11\n"), d)
			want := render(NewReader(NewMemory(0)).Read([]byte(second), d))
			assert.Equal(t, want, render(reader.Read([]byte(second), d)), "%q", second)
		}
	}
}

// Blocks are equal only in everything: one text can be cut in several ways, and means
// something else in another dialect.
func TestBlocksAreEqualInEverything(t *testing.T) {
	a := func() *block { return &block{dialect: DialectText, constants: []constant{{1, 2}, {2, 1}}, hash: 7} }
	assert.True(t, a().equal(a()))
	for name, change := range map[string]func(*block){
		"dialect": func(b *block) { b.dialect = DialectOpenMetrics },
		"text":    func(b *block) { b.constants[1].hash++ },
		"cuts":    func(b *block) { b.constants = []constant{{1, 2}} },
		"hash":    func(b *block) { b.hash = 8 },
	} {
		b := a()
		change(b)
		assert.False(t, a().equal(b), name)
		assert.False(t, b.equal(a()), name)
		assert.True(t, b.equal(b), name)
	}
}
