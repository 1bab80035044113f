package exposition

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// difference describes how two snapshots differ. It is empty where they are equal to the
// last bit.
func difference(got, want *Snapshot) string {
	if !reflect.DeepEqual(got.Layout, want.Layout) {
		return fmt.Sprintf("layouts differ:\ngot:\n%s\nwant:\n%s",
			strings.Join(render(got), "\n"), strings.Join(render(want), "\n"))
	}
	sameBits := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	if !slices.EqualFunc(got.Values, want.Values, sameBits) {
		return fmt.Sprintf("values differ:\ngot:  %v\nwant: %v", got.Values, want.Values)
	}
	sameExemplar := func(a, b Exemplar) bool {
		return a.Slot == b.Slot && sameBits(a.Value, b.Value) && a.Timestamp == b.Timestamp &&
			a.HasTimestamp == b.HasTimestamp && slices.Equal(a.Labels, b.Labels)
	}
	if !slices.EqualFunc(got.Exemplars, want.Exemplars, sameExemplar) {
		return fmt.Sprintf("exemplars differ:\ngot:  %v\nwant: %v", got.Exemplars, want.Exemplars)
	}
	if !slices.Equal(got.Problems, want.Problems) {
		return fmt.Sprintf("problems differ:\ngot:  %v\nwant: %v", got.Problems, want.Problems)
	}
	if got.Duplicates != want.Duplicates || got.Samples != want.Samples {
		return fmt.Sprintf("got %d samples and %d duplicates, want %d and %d",
			got.Samples, got.Duplicates, want.Samples, want.Duplicates)
	}
	return ""
}

// mutation changes a body in one of the ways in which bodies change, and in some
// in which they should not.
type mutation struct {
	name   string
	change func(r *rand.Rand, body []byte) []byte
}

func linesOf(body []byte) [][]byte { return bytes.SplitAfter(body, []byte{'\n'}) }

// onLine changes the lines around a random one.
func onLine(change func(r *rand.Rand, lines [][]byte, i int) [][]byte) func(*rand.Rand, []byte) []byte {
	return func(r *rand.Rand, body []byte) []byte {
		lines := linesOf(body)
		return bytes.Join(change(r, lines, r.IntN(len(lines))), nil)
	}
}

// onNumbers replaces the last word of about every n-th sample line.
func onNumbers(n int, replace func(r *rand.Rand, word string) string) func(*rand.Rand, []byte) []byte {
	return func(r *rand.Rand, body []byte) []byte {
		lines := linesOf(body)
		for i, line := range lines {
			end := len(bytes.TrimRight(line, " \r\n"))
			at := bytes.LastIndexByte(line[:end], ' ') + 1
			if end == 0 || line[0] == '#' || r.IntN(n) != 0 {
				continue
			}
			lines[i] = []byte(string(line[:at]) + replace(r, string(line[at:end])) + string(line[end:]))
		}
		return bytes.Join(lines, nil)
	}
}

var mutations = []mutation{
	{"other numbers", onNumbers(2, func(r *rand.Rand, _ string) string {
		return pythonFloat(r.ExpFloat64() * math.Pow10(r.IntN(15)))
	})},
	{"special numbers", onNumbers(9, func(r *rand.Rand, _ string) string {
		return []string{"NaN", "+Inf", "-Inf", "-0", "inf", "1e308", "5e-324", "0.1000000000000000055511151231257827"}[r.IntN(8)]
	})},
	{"bad numbers", onNumbers(60, func(r *rand.Rand, _ string) string {
		return []string{"x", "1e999", "0x1p3", "1_000", "1,5", "--1"}[r.IntN(6)]
	})},
	{"timestamps", onNumbers(3, func(r *rand.Rand, word string) string {
		return word + " " + []string{"1700000000000", "-1", "17.5", "1700000000.123", "later", "99999999999999999999"}[r.IntN(6)]
	})},
	{"exemplars", onNumbers(20, func(_ *rand.Rand, word string) string { return word + ` # {trace_id="a"} 1.5` })},
	{"a line removed", onLine(func(_ *rand.Rand, lines [][]byte, i int) [][]byte { return slices.Delete(lines, i, i+1) })},
	{"a line twice", onLine(func(_ *rand.Rand, lines [][]byte, i int) [][]byte { return slices.Insert(lines, i, lines[i]) })},
	{"two lines swapped", onLine(func(r *rand.Rand, lines [][]byte, i int) [][]byte {
		j := r.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		return lines
	})},
	{"a strange line", onLine(func(r *rand.Rand, lines [][]byte, i int) [][]byte {
		strange := []string{
			"new_metric 1\n", "{} 1\n", "{\"quoted\"} 1\n", "\n", "# note\n", "# TYPE vllm:new counter\n", "garbage\n", "x{y=\"1\"} 2\r\n",
			"x{y=\"1\"}3\n", "x+4\n", "x{le=\"1\",quantile=\"2\"} 1 \n", "# EOF\n",
		}
		return slices.Insert(lines, i, []byte(strange[r.IntN(len(strange))]))
	})},
	{"a run of lines removed", onLine(func(r *rand.Rand, lines [][]byte, i int) [][]byte {
		return slices.Delete(lines, i, min(len(lines), i+r.IntN(200)))
	})},
	{"the halves exchanged", onLine(func(_ *rand.Rand, lines [][]byte, i int) [][]byte {
		return append(slices.Clone(lines[i:]), lines[:i]...)
	})},
	{"cut", func(r *rand.Rand, body []byte) []byte { return body[:r.IntN(len(body)+1)] }},
	{"one byte", func(r *rand.Rand, body []byte) []byte {
		body = slices.Clone(body)
		if len(body) > 0 {
			body[r.IntN(len(body))] = []byte(" \t\n\r\"\\{}=,#_:.0a\x00\xff")[r.IntN(18)]
		}
		return body
	}},
	{"Windows line ends", func(_ *rand.Rand, body []byte) []byte { return bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n")) }},
	{"another label value", func(_ *rand.Rand, body []byte) []byte { return bytes.ReplaceAll(body, []byte(`="0"`), []byte(`="1"`)) }},
}

// ownBodies are bodies of every dialect that the project wrote itself.
func ownBodies() []namedBody {
	bodies := []namedBody{
		{"own/vllm", vllmBody("some/model", 1), DialectText},
		{"own/vllm other model", vllmBody("other/model", 1), DialectText},
		{"own/vllm as OpenMetrics", append(vllmBody("some/model", 3), "# EOF\n"...), DialectOpenMetrics},
	}
	for _, tc := range readCases {
		bodies = append(bodies, namedBody{tc.name, []byte(tc.body), tc.dialect})
	}
	return bodies
}

// checkConservation proves that every sample line of a body is accounted for: by
// exactly one slot of the layout, as a duplicate, or as a problem.
func checkConservation(s *Snapshot, body []byte) error {
	used := make([]bool, len(s.Values))
	count := 0
	var err error
	use := func(slot int) {
		switch {
		case slot == NoSlot:
		case slot < 0 || slot >= len(used):
			err = fmt.Errorf("slot %d of %d", slot, len(used))
		case used[slot]:
			err = fmt.Errorf("slot %d is used twice", slot)
		default:
			used[slot] = true
			count++
		}
	}
	for _, f := range s.Layout.Families {
		for _, series := range f.Series {
			for _, slot := range []int{series.Value, series.Sum, series.Count, series.Created} {
				use(slot)
			}
			for _, b := range series.Buckets {
				use(b.Slot)
			}
			for _, q := range series.Quantiles {
				use(q.Slot)
			}
		}
	}
	if err != nil {
		return err
	}
	isSample := func(line []byte) bool {
		line = bytes.Trim(line, " \t\r\n")
		return len(line) > 0 && line[0] != '#'
	}
	lines := linesOf(body)
	bad, last := 0, 0
	for _, p := range s.Problems {
		switch {
		case p.Reason == ReasonTooManyBadLines || p.Reason == ReasonTooManyLines:
			lines = lines[:p.Line-1]
			continue
		case p.Line < last || p.Line < 1 || p.Line > len(lines):
			return fmt.Errorf("problem at line %d after %d of %d", p.Line, last, len(lines))
		case p.Reason != ReasonMissingEOF && isSample(lines[p.Line-1]):
			bad++
		}
		last = p.Line
	}
	want := 0
	for _, line := range lines {
		if isSample(line) {
			want++
		}
	}
	if count+s.Duplicates+bad != want {
		return fmt.Errorf("%d in slots + %d duplicates + %d problems of %d samples", count, s.Duplicates, bad, want)
	}
	if s.Samples+bad != want || s.Layout.Slots != len(s.Values) {
		return fmt.Errorf("%d samples read + %d problems of %d; %d slots, %d values",
			s.Samples, bad, want, s.Layout.Slots, len(s.Values))
	}
	return nil
}

func TestMemoryChangesNothing(t *testing.T) {
	bodies := ownBodies()
	t.Run("with recorded bodies", func(t *testing.T) { bodies = append(bodies, realBodies(t)...) })
	shared := NewMemory(100_000)
	for i, base := range bodies {
		t.Run(base.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			// One target that sees a body change over and over, and one that is new.
			changing := NewReader(shared)
			body := base.text
			for round, m := range append([]mutation{{name: "nothing"}, {name: "nothing"}}, mutations...) {
				if m.change != nil {
					body = m.change(random, slices.Clone(base.text))
				}
				want := NewReader(NewMemory(0)).Read(body, base.dialect)
				require.NoError(t, checkConservation(want, body), m.name)
				require.Empty(t, difference(changing.Read(body, base.dialect), want), m.name)
				if round%2 == 0 {
					// Another target uses the memory of the body in between.
					changing.Done()
				}
				require.Empty(t, difference(changing.Read(body, base.dialect), want), m.name+", again")
				changing.Done()
				if round%4 == 0 {
					require.Empty(t, difference(NewReader(shared).Read(body, base.dialect), want), m.name+", new target")
				}
				if round%3 == 0 {
					want = NewReader(NewMemory(0)).Read(base.text, base.dialect)
					require.Empty(t, difference(changing.Read(base.text, base.dialect), want), "back after "+m.name)
				}
			}
		})
	}
}

// Two targets fill one memory in either order, and one of them changes dialect.
func TestOrderOfTargetsChangesNothing(t *testing.T) {
	bodies := ownBodies()
	wants := map[Dialect][]*Snapshot{}
	for _, b := range bodies {
		for _, d := range []Dialect{DialectText, DialectOpenMetrics} {
			wants[d] = append(wants[d], NewReader(NewMemory(0)).Read(b.text, d))
		}
	}
	for i := range bodies {
		for _, j := range []int{(i + 1) % len(bodies), (i + 7) % len(bodies), 0} {
			for _, order := range [][]int{{i, j, i}, {j, i, j}} {
				memory := NewMemory(1000)
				one := NewReader(memory)
				for _, k := range order {
					b := bodies[k]
					for _, d := range []Dialect{b.dialect, 1 - b.dialect, b.dialect} {
						want := wants[d][k]
						require.Empty(t, difference(one.Read(b.text, d), want), "%s as %s", b.name, d)
						require.Empty(t, difference(NewReader(memory).Read(b.text, d), want), "%s as %s", b.name, d)
					}
				}
			}
		}
	}
}

func FuzzReadMemoryEqualsNoMemory(f *testing.F) {
	for i, tc := range readCases {
		f.Add([]byte(tc.body), []byte(readCases[(i+1)%len(readCases)].body), tc.dialect == DialectOpenMetrics)
		f.Add(bytes.ReplaceAll([]byte(tc.body), []byte("\n"), []byte("\r\n")), bytes.ReplaceAll([]byte(tc.body), []byte("\n"), []byte("\r\r\n")), false)
		f.Add([]byte(tc.body), []byte(strings.ReplaceAll(tc.body, "1", "27")), tc.dialect == DialectOpenMetrics)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, openMetrics bool) {
		d := DialectText
		if openMetrics {
			d = DialectOpenMetrics
		}
		memory := NewMemory(1000)
		warm := NewReader(memory)
		for _, body := range [][]byte{a, b, a, append(slices.Clone(a), b...), b} {
			want := NewReader(NewMemory(0)).Read(body, d)
			if diff := difference(warm.Read(body, d), want); diff != "" {
				t.Fatalf("with a memory: %s", diff)
			}
			warm.Done()
			if diff := difference(NewReader(memory).Read(body, d), want); diff != "" {
				t.Fatalf("with another target's memory: %s", diff)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, tc := range readCases {
		f.Add([]byte(tc.body), tc.dialect == DialectOpenMetrics)
	}
	f.Fuzz(func(t *testing.T, body []byte, openMetrics bool) {
		d := DialectText
		if openMetrics {
			d = DialectOpenMetrics
		}
		s := NewReader(NewMemory(0)).Read(body, d)
		if err := checkConservation(s, body); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, family := range s.Layout.Families {
			if names[family.Name] {
				t.Fatalf("two families %q", family.Name)
			}
			names[family.Name] = true
			if family.Name == "" || strings.IndexFunc(family.Name, func(r rune) bool { return r == unicode.ReplacementChar }) >= 0 &&
				!bytes.ContainsRune(body, unicode.ReplacementChar) {
				t.Fatalf("family name %q", family.Name)
			}
		}
	})
}
