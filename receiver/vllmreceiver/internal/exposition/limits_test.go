package exposition

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A text at its limit is read. One byte more drops the line, with the reason that
// names the text. All other lines are delivered.
func TestLongTextsDropTheirLine(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, d := range []Dialect{DialectText, DialectOpenMetrics} {
		for _, tt := range []struct {
			line string
			want Reason
		}{
			{long(512) + " 1", ReasonNone},
			{long(513) + " 1", ReasonNameTooLong},
			{long(513) + `{a="b"} 1`, ReasonNameTooLong},
			{`a{` + long(512) + `="b"} 1`, ReasonNone},
			{`a{` + long(513) + `="b"} 1`, ReasonLabelNameTooLong},
			{`a{c="d",` + long(513) + `="b"} 1`, ReasonLabelNameTooLong},
			{`a{"` + long(513) + `"="b"} 1`, ReasonLabelNameTooLong},
			{`a{c="` + long(65536) + `"} 1`, ReasonNone},
			{`a{c="` + long(65537) + `"} 1`, ReasonLabelValueTooLong},
			{`a{c="d",e="` + long(65537) + `",f="g"} 1`, ReasonLabelValueTooLong},
			{"# TYPE " + long(512) + " gauge", ReasonNone},
			{"# TYPE " + long(513) + " gauge", ReasonNameTooLong},
			{"# HELP " + long(513) + " words", ReasonNameTooLong},
		} {
			s := NewReader(NewMemory(10)).Read([]byte("b 2\n"+tt.line+"\nc 3\n# EOF\n"), d)
			var reasons []Reason
			for _, p := range s.Problems {
				assert.Equal(t, 2, p.Line)
				reasons = append(reasons, p.Reason)
			}
			if tt.want == ReasonNone {
				assert.Empty(t, reasons, "%s: %.20s", d, tt.line)
				continue
			}
			assert.Equal(t, []Reason{tt.want}, reasons, "%s: %.20s", d, tt.line)
			assert.Equal(t, 2, s.Samples)
		}
	}
}

// A help text is cut at about a kilobyte, at the boundary of a character.
func TestHelpIsCut(t *testing.T) {
	for _, d := range []Dialect{DialectText, DialectOpenMetrics} {
		for _, unit := range []string{"x", "ü", "語"} {
			for _, n := range []int{1, 1024 / len(unit), 5000} {
				help := strings.Repeat(unit, n)
				s := NewReader(NewMemory(0)).Read([]byte("# HELP a "+help+"\n# TYPE a gauge\na 1\n# EOF\n"), d)
				require.Empty(t, s.Problems)
				got := s.Layout.Families[0].Help
				if len(help) <= 1024 {
					assert.Equal(t, help, got)
					continue
				}
				assert.LessOrEqual(t, len(got), 1024)
				assert.Greater(t, len(got), 1000)
				assert.True(t, utf8.ValidString(got))
				assert.True(t, strings.HasPrefix(help, strings.TrimSuffix(got, "...")))
			}
		}
	}
}

// lines is a body of n short lines with one label.
func lines(name string, n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s{a=\"%06d\"} 1\n", name, i)
	}
	return []byte(b.String())
}

// Large layouts share the memory: the largest leaves first, equal ones count once,
// and small ones are never refused.
func TestLargeLayoutsShareTheMemory(t *testing.T) {
	memory := NewMemory(1_000_000)
	memory.SetPool(16 << 20)
	readers := map[string]*Reader{}
	read := func(who string, body []byte) bool {
		if readers[who] == nil {
			readers[who] = NewReader(memory)
		}
		s := readers[who].Read(body, DialectText)
		if s.Refused {
			assert.Zero(t, s.Samples)
			assert.Empty(t, s.Layout.Families)
		}
		return !s.Refused
	}
	// Some 520 bytes a line: 20,000 lines are 10 MB.
	require.True(t, read("large", lines("l", 20_000)))
	assert.True(t, read("large", lines("l", 20_000)), "a known layout needs no room")
	assert.True(t, read("replica", lines("l", 20_000)), "equal ones count once")
	assert.False(t, read("as large", lines("m", 20_000)))
	assert.True(t, read("small", lines("s", 3_000)), "small ones are never refused")
	assert.False(t, read("beyond", lines("x", 100_000)))
	// One that is smaller takes the room of the largest, which notices.
	assert.True(t, read("smaller", lines("n", 13_000)))
	assert.False(t, read("large", lines("l", 20_000)))
	assert.False(t, read("replica", lines("l", 20_000)))
	assert.True(t, read("smaller", lines("n", 13_000)))
	// Released room is free again.
	readers["smaller"].Release()
	assert.True(t, read("as large", lines("m", 20_000)))
	// A target that becomes small is read again, and one that grows leaves.
	assert.True(t, read("beyond", lines("x", 10)))
	assert.False(t, read("as large", lines("m", 100_000)))
	assert.True(t, read("large", lines("l", 20_000)))
	for _, r := range readers {
		r.Release()
	}
	assert.Zero(t, memory.pool.used)
	assert.Empty(t, memory.pool.held)
}

// A large layout that changes with every body is counted once, not as often as it
// changed.
func TestALargeLayoutThatChangesKeepsItsRoom(t *testing.T) {
	memory := NewMemory(1_000_000)
	memory.SetPool(20 << 20)
	r := NewReader(memory)
	for i := range 10 {
		require.False(t, r.Read(lines(fmt.Sprintf("l%d", i), 20_000), DialectText).Refused)
	}
	assert.Len(t, memory.pool.held, 1)
}

// What a layout costs counts its comments, labels and long texts as well.
func TestTheCostOfALayoutIsAboutItsMemory(t *testing.T) {
	long := strings.Repeat("l", 400)
	for name, line := range map[string]string{
		"comments": "# TYPE a%[1]d gauge\n", "families": "# TYPE a%[1]d gauge\na%[1]d 1\n", "texts": "# HELP a%[1]d " + long + "\na%[1]d 1\n",
		"names": "a" + long + "%[1]d 1\n", "labels": "a{b=\"%[1]d\",c=\"%[1]d\",d=\"%[1]d\",e=\"%[1]d\",f=\"%[1]d\"} 1\n",
	} {
		var body strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&body, line, i)
		}
		memory := NewMemory(1_000_000)
		r := NewReader(memory)
		before := heap()
		r.Read([]byte(body.String()), DialectText)
		r.Done()
		kept := float64(heap()) - float64(before)
		assert.InDelta(t, 1, kept/float64(memory.pool.used), 0.7, "%s: %.0f bytes, counted as %d", name, kept, memory.pool.used)
		runtime.KeepAlive(r)
	}
}
