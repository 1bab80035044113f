package exposition

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// hostile are ways to fill a body that might cost more than its size.
var hostile = []struct {
	name    string
	dialect Dialect
	line    func(i int) string
}{
	{"words", DialectText, func(int) string { return "not a metric\n" }},
	{"bad values", DialectText, func(int) string { return "a x\n" }},
	{"bad label sets", DialectText, func(i int) string { return fmt.Sprintf("a%d{b=%d} 1\n", i, i) }},
	{"one bad label set over and over", DialectText, func(int) string { return "a{b=1} 1\n" }},
	{"label sets without names", DialectText, func(i int) string { return fmt.Sprintf("{a=\"%d\"} 1\n", i) }},
	{"bad and good in turn", DialectText, func(i int) string { return fmt.Sprintf("a%d 1\na{b=%d} 1\n", i, i) }},
	{"bad comments", DialectText, func(int) string { return "# TYPE a b\n" }},
	{"quotes without end", DialectText, func(int) string { return "# TYPE \"a gauge\n\"a 1\na{b=\"c} 1\n" }},
	{"a family for each line", DialectText, func(i int) string { return fmt.Sprintf("# TYPE a%d gauge\na%d 1\n", i, i) }},
	{"a series for each line", DialectText, func(i int) string { return fmt.Sprintf("a{b=\"%d\"} 1\n", i) }},
	{"quoted names", DialectText, func(i int) string { return fmt.Sprintf("{\"a.%d\"} 1\n", i) }},
	{"buckets in falling order", DialectText, func(i int) string { return fmt.Sprintf("h_bucket{le=\"%d\"} 1\n", 10_000_000-i) }},
	{"duplicates", DialectText, func(int) string { return "a 1\n" }},
	{"comments between samples", DialectText, func(int) string { return "# TYPE a gauge\na 1\n" }},
	{"OpenMetrics: bad label sets", DialectOpenMetrics, func(i int) string { return fmt.Sprintf("a{b=%d} 1\n", i) }},
	{"OpenMetrics: exemplars", DialectOpenMetrics, func(i int) string { return fmt.Sprintf("a{b=\"%d\"} 1 # {} 1\n", i) }},
}

func hostileBody(size int, line func(i int) string) []byte {
	var b strings.Builder
	b.WriteString("# TYPE h histogram\n")
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return []byte(b.String())
}

// The work must grow in proportion to the body. It is measured in allocations, because
// times on a shared machine vary.
func TestHostileBodiesCostWhatTheirSizeCosts(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	const size = 1 << 16
	for _, tc := range hostile {
		t.Run(tc.name, func(t *testing.T) {
			half, whole := hostileBody(size/2, tc.line), hostileBody(size, tc.line)
			reader := NewReader(NewMemory(1000))
			s := reader.Read(whole, tc.dialect)
			require.NoError(t, checkConservation(s, whole))
			require.LessOrEqual(t, len(s.Problems), maxBadLines+2)
			require.Empty(t, difference(s, NewReader(NewMemory(0)).Read(whole, tc.dialect)))
			cost := func(body []byte) float64 {
				return testing.AllocsPerRun(1, func() { NewReader(NewMemory(0)).Read(body, tc.dialect) })
			}
			spent := cost(whole)
			require.LessOrEqual(t, spent, 2.3*cost(half)+1000)
			require.LessOrEqual(t, spent, 50*float64(strings.Count(string(whole), "\n")))
		})
	}
}

func TestTooManyBadLinesEndTheBody(t *testing.T) {
	body := "a 1\n" + strings.Repeat("a x\n", maxBadLines) + "b 2\nb y\nc 3\n"
	for _, reader := range []*Reader{NewReader(NewMemory(0)), NewReader(NewMemory(10))} {
		for range 2 {
			s := reader.Read([]byte(body), DialectText)
			require.Len(t, s.Problems, maxBadLines+1)
			require.Equal(t, Problem{Line: maxBadLines + 3, Reason: ReasonTooManyBadLines}, s.Problems[maxBadLines])
			require.Equal(t, []float64{1, 2}, s.Values)
			require.Len(t, s.Layout.Families, 2)
		}
	}
}

// The limit counts bad lines of all kinds, also where they are found late.
func TestBadLinesOfAllKindsCountTogether(t *testing.T) {
	var b strings.Builder
	for i := range maxBadLines {
		fmt.Fprintf(&b, "# TYPE a%d gauge\na%d 1\na%d{b=1} 1\n# TYPE a%d nothing\n", i, i, i, i)
	}
	s := NewReader(NewMemory(0)).Read([]byte(b.String()), DialectText)
	require.Len(t, s.Problems, maxBadLines+1)
	require.Equal(t, Problem{Line: 4*maxBadLines/2 + 3, Reason: ReasonTooManyBadLines}, s.Problems[maxBadLines])
	require.Len(t, s.Values, maxBadLines/2+1)
}

func TestTooManyLinesEndTheBody(t *testing.T) {
	body := []byte(strings.Repeat("a 1\n", maxLines) + "b 2\n")
	s := NewReader(NewMemory(0)).Read(body, DialectText)
	require.Equal(t, []Problem{{Line: maxLines + 1, Reason: ReasonTooManyLines}}, s.Problems)
	require.Equal(t, maxLines, s.Samples)
	require.Equal(t, maxLines-1, s.Duplicates)
	s = NewReader(NewMemory(0)).Read(body[:4*maxLines], DialectText)
	require.Empty(t, s.Problems)
	require.Equal(t, maxLines, s.Samples)
}

func TestTooManyLabelsAreRefused(t *testing.T) {
	line := func(n int) []byte {
		pairs := make([]string, n)
		for i := range pairs {
			pairs[i] = "l" + strconv.Itoa(i) + `="v"`
		}
		return []byte("a{" + strings.Join(pairs, ",") + "} 1\n")
	}
	for _, d := range []Dialect{DialectText, DialectOpenMetrics} {
		s := NewReader(NewMemory(0)).Read(append(line(maxLabels), "# EOF\n"...), d)
		require.Empty(t, s.Problems)
		require.Len(t, s.Layout.Families[0].Series[0].Labels, maxLabels)
		s = NewReader(NewMemory(0)).Read(append(line(maxLabels+1), "# EOF\n"...), d)
		require.Equal(t, []Problem{{Line: 1, Reason: ReasonBadLabels}}, s.Problems)
	}
}

// A large block of the last body is not hashed again at each small block of this one.
func TestALargeBlockIsNotComparedWithEverySmallOne(t *testing.T) {
	filler := strings.Repeat("x", 4<<20)
	many := strings.Repeat("#TYPE a0 gauge\n#TYPE a1 gauge\n", 5000) + "# " + filler + "y\na 1\n"
	took := func(r *Reader) time.Duration {
		began := time.Now()
		r.Read([]byte(many), DialectText)
		r.Done()
		return time.Since(began)
	}
	fresh := took(NewReader(NewMemory(1000)))
	r := NewReader(NewMemory(1000))
	r.Read([]byte("# "+filler+"\na 1\n"), DialectText)
	r.Done()
	assert.Less(t, took(r), 20*fresh+time.Second/2, "it takes a hundred times as long otherwise")
}

// What follows the last bad line that is read is no part of a block that is remembered.
func TestABodyThatWasDroppedInABlockIsReadAgain(t *testing.T) {
	for _, last := range []string{"# TYPE z gauge\nz 1\nz x\nz{a=\"b\"} 5\n", "# TYPE z gauge\nz x\nz{a=\"b\"} 5\n"} {
		r := NewReader(NewMemory(1000))
		r.Read([]byte(strings.Repeat("a x\n", maxBadLines)+last), DialectText)
		want := NewReader(NewMemory(0)).Read([]byte("b 1\n"+last), DialectText)
		assert.Empty(t, difference(r.Read([]byte("b 1\n"+last), DialectText), want))
	}
}
