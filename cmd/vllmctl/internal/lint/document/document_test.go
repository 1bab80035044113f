package document

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// Each is a text with one value "e", and the part of it that stands for the word that is
// looked for. They are written by hand: what YAML and JSON say, and not what the package does.
var written = []struct {
	name, text, value, word, raw string
}{
	{"plain", "e: sum(a:b) > 1\n", "sum(a:b) > 1", "a:b", "a:b"},
	{"plain on two lines", "e: sum(x)\n  / sum(a:b)\n", "sum(x) / sum(a:b)", "a:b", "a:b"},
	{"plain with an empty line", "e: x\n\n  + a:b\n", "x\n+ a:b", "a:b", "a:b"},
	{"with a comment after it", "e: a:b # a:b is old\n", "a:b", "a:b", "a:b"},
	{"with an anchor and a tag", "e: &x !!str a:b\nf: *x\n", "a:b", "a:b", "a:b"},
	{"single quotes", "e: 'it''s a:b'\n", "it's a:b", "a:b", "a:b"},
	{"single quotes before", "e: '''a:b'''\n", "'a:b'", "'a:b'", "''a:b''"},
	{"double quotes", `e: "x{y=\"z\"} + a:b"` + "\n", `x{y="z"} + a:b`, "a:b", "a:b"},
	{"an escaped word", `e: "\x61:\u0062 + \U00000063"` + "\n", "a:b + c", "a:b", `\x61:\u0062`},
	{"a continued line", "e: \"x + \\\n   a:b\"\n", "x + a:b", "a:b", "a:b"},
	{"double quotes on two lines", "e: \"x +\n  a:b\"\n", "x + a:b", "a:b", "a:b"},
	{"a literal block", "e: |\n    x\n      + a:b\n", "x\n  + a:b\n", "a:b", "a:b"},
	{"a literal block with an indicator", "e: |2-\n    x\n  + a:b\n", "  x\n+ a:b", "a:b", "a:b"},
	{"a literal block that keeps its end", "e: |+\n  a:b\n\n\nf: 1\n", "a:b\n\n\n", "a:b", "a:b"},
	{"a literal block with empty lines", "e: |-\n  x\n\n  a:b\n", "x\n\na:b", "a:b", "a:b"},
	{"a folded block", "e: >-\n  x\n  + a:b\n  > 1\n", "x + a:b > 1", "a:b", "a:b"},
	{"a folded block with indented lines", "e: >\n  x\n    + y\n  + a:b\n", "x\n  + y\n+ a:b\n", "a:b", "a:b"},
	{"a folded block with an empty line", "e: >\n  x\n\n  a:b\n", "x\na:b\n", "a:b", "a:b"},
	{"characters of several bytes", "e: 'ä€😀 a:b'\n", "ä€😀 a:b", "a:b", "a:b"},
	{"tabs after the key", "e:\ta:b\n", "a:b", "a:b", "a:b"},
	{"JSON", `{"e": "x{y=\"z\"}\n + a:b"}`, "x{y=\"z\"}\n + a:b", "a:b", "a:b"},
	{"JSON with escapes", `{"e": "\u0061\u003ab \/ \ud83d\ude00"}`, "a:b / 😀", "a:b", `\u0061\u003ab`},
	{"JSON with a pair of surrogates before", `{"e": "\ud83d\ude00 a:b"}`, "😀 a:b", "a:b", "a:b"},
	{"JSON in several lines with tabs", "{\n\t\"d\": 1,\n\t\"e\" : \"a:b\"\n}", "a:b", "a:b", "a:b"},
	{"a flow map of YAML", "{e: a:b, f: [1, 2]}\n", "a:b", "a:b", "a:b"},
}

func TestTheBytesOfAWordAreFoundInEachStyle(t *testing.T) {
	for _, w := range written {
		for _, variant := range []struct {
			name string
			text string
		}{{"", w.text}, {"CRLF", strings.ReplaceAll(w.text, "\n", "\r\n")}, {"BOM", "\xef\xbb\xbf" + w.text}} {
			t.Run(w.name+" "+variant.name, func(t *testing.T) {
				if variant.name == "CRLF" && strings.Contains(w.name, "JSON") {
					t.Skip("line breaks of JSON are outside of texts")
				}
				d, err := Parse([]byte(variant.text))
				require.NoError(t, err)
				n := d.Roots[0].Get("e")
				require.Equal(t, w.value, n.String())
				at := strings.Index(w.value, w.word)
				span := n.Place(at, at+len(w.word))
				assert.Equal(t, w.raw, variant.text[span.From:span.To])

				after, spans, err := Apply([]byte(variant.text), []Edit{{Node: n, From: at, To: at + len(w.word), New: `new{q="1"}`}})
				if strings.Contains(w.name, "plain") || strings.Contains(w.name, "flow") || strings.Contains(w.name, "anchor") || strings.Contains(w.name, "comment") || strings.Contains(w.name, "tabs") {
					// A plain text may hold quotes, so that this is possible as well.
					if err != nil {
						return
					}
				}
				require.NoError(t, err)
				require.Equal(t, []Span{span}, spans)
				assert.Equal(t, variant.text[:span.From], string(after[:span.From]))
				assert.Equal(t, variant.text[span.To:], string(after[len(after)-len(variant.text)+span.To:]))
				again, err := Parse(after)
				require.NoError(t, err)
				assert.Equal(t, strings.Replace(w.value, w.word, `new{q="1"}`, 1), again.Roots[0].Get("e").String())
			})
		}
	}
}

// A document in a text has its places in the file, and what is written into it has the
// escapes of both.
func TestADocumentInATextIsChangedInTheFile(t *testing.T) {
	for name, text := range map[string]string{
		"JSON in a literal block":      "d:\n  b.json: |\n    {\"e\": \"x{y=\\\"1\\\"} + a:b\"}\n",
		"JSON in double quotes":        `d: {b.json: "{\"e\": \"x{y=\\\"1\\\"} + a:b\"}"}` + "\n",
		"JSON in JSON":                 `{"d": {"b.json": "{\"e\": \"x{y=\\\"1\\\"} + a:b\"}"}}`,
		"YAML in a literal block":      "d:\n  b.json: |\n    # rules\n    e: x{y=\"1\"} + a:b\n",
		"a block in a block":           "d:\n  b.json: |\n    e: |\n      x{y=\"1\"} + a:b\n",
		"JSON in a folded block":       "d:\n  b.json: >\n    {\"e\":\n    \"x{y=\\\"1\\\"} + a:b\"}\n",
		"YAML in a single-quoted text": "d:\n  b.json: 'e: \"x{y=\\\"1\\\"} + a:b\"'\n",
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(text))
			require.NoError(t, err)
			inner, err := d.Roots[0].At("d", "b.json").Inner()
			require.NoError(t, err)
			n := inner.Roots[0].Get("e")
			value := strings.TrimRight(n.String(), "\n")
			require.Equal(t, `x{y="1"} + a:b`, value)
			at := strings.Index(value, "a:b")
			span := n.Place(at, at+3)
			assert.Equal(t, "a:b", text[span.From:span.To])
			line, column := d.Position(span.From)
			assert.Equal(t, strings.Count(text[:span.From], "\n")+1, line)
			assert.Equal(t, span.From-strings.LastIndexByte(text[:span.From], '\n'), column)

			after, _, err := Apply([]byte(text), []Edit{{Node: n, From: at, To: at + 3, New: `c:d{q="\\w"}`}})
			require.NoError(t, err)
			changed, err := Parse(after)
			require.NoError(t, err)
			inner, err = changed.Roots[0].At("d", "b.json").Inner()
			require.NoError(t, err)
			assert.Equal(t, `x{y="1"} + c:d{q="\\w"}`, strings.TrimRight(inner.Roots[0].Get("e").String(), "\n"))
		})
	}
}

// An edit that would change the structure is refused, and so is one that has no place.
func TestEditsThatWouldBreakTheFileAreRefused(t *testing.T) {
	d, err := Parse([]byte("e: a:b\nf: |\n  x\n  y\n"))
	require.NoError(t, err)
	e, f := d.Roots[0].Get("e"), d.Roots[0].Get("f")
	for name, edits := range map[string][]Edit{
		"a comment begins":   {{e, 0, 3, "x # y"}},
		"a key begins":       {{e, 0, 3, "x: y"}},
		"several lines":      {{e, 0, 3, "x\ny"}},
		"over a line end":    {{f, 0, 3, "z"}},
		"nothing":            {{e, 1, 1, "z"}},
		"beyond the end":     {{e, 0, 9, "z"}},
		"two that overlap":   {{e, 0, 2, "z"}, {e, 1, 3, "y"}},
		"another kind":       {{e, 0, 3, "1"}},
		"a second, bad, one": {{f, 0, 1, "z"}, {e, 0, 3, "x # y"}},
	} {
		_, _, err := Apply([]byte(d.Text()), edits)
		assert.Error(t, err, name)
	}
	after, _, err := Apply([]byte(d.Text()), []Edit{{e, 0, 3, "long name"}, {f, 0, 1, "z"}, {f, 0, 1, "z"}})
	require.NoError(t, err)
	assert.Equal(t, "e: long name\nf: |\n  z\n  y\n", string(after))
}

func TestHostileTextsAreRefusedSoon(t *testing.T) {
	race.SkipSequential(t)
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i)
	}
	merges := "m0: &m0 {x: 1}\n"
	for i := range 40 {
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d, *m%d]}\n", i+1, i+1, i, i, i)
	}
	begin := time.Now()
	for name, c := range map[string]struct{ text, err string }{
		"too large":            {strings.Repeat("a", MaxBytes+1), "larger than 16 MiB"},
		"UTF-16":               {"\xff\xfee\x00:\x00", "UTF-16"},
		"binary":               {"PK\x03\x04\x00\x00", "bytes that are 0"},
		"Latin-1":              {"e: \xe4\n", "UTF-8"},
		"deep JSON":            {strings.Repeat(`{"a":`, 100_000), "nested more than 200 levels"},
		"deep lists of JSON":   {strings.Repeat(`[`, 1_000_000), "nested more than 200 levels"},
		"deep YAML":            {strings.Repeat("- ", 5000) + "x", "nested more than 200 levels"},
		"many values":          {"[" + strings.Repeat("1,", maxNodes+1) + "1]", "more than 1048576 values"},
		"JSON that ends":       {`{"a": "b`, "middle of a value"},
		"JSON with more":       {`{"a": 1} {"b": 2}`, "more text after the end"},
		"YAML that is wrong":   {"a: [1\nb: 2\n", "line"},
		"a value in itself":    {"a: &a [*a]\n", "contains it"},
		"an unknown anchor":    {"a: *b\n", "unknown anchor"},
		"tabs as indentation":  {"a:\n\t- b\n", "cannot start any token"},
		"no value for a brace": {"{{ .Values.x }}\na: b\n", "line"},
	} {
		_, err := Parse([]byte(c.text))
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.err, name)
			assert.NotContains(t, err.Error(), "yaml:", name)
		}
	}
	d, err := Parse([]byte(bomb))
	require.NoError(t, err, "aliases cost nothing in a tree")
	assert.Nil(t, d.Roots[0].Plain())
	d, err = Parse([]byte(merges))
	require.NoError(t, err)
	assert.Nil(t, d.Roots[0].Get("m40").Get("y"))
	d.Roots[0].Plain()
	_, err = Parse([]byte("a: [" + strings.Repeat("1,", 500_000) + "1]"))
	require.NoError(t, err, "a long line is read in linear time")
	assert.Less(t, time.Since(begin), 60*time.Second)
}

func TestKeysThatAreThereTwiceAndMergeKeys(t *testing.T) {
	d, err := Parse([]byte(`{"e": "old", "e": "new"}`))
	require.NoError(t, err)
	assert.Equal(t, "new", d.Roots[0].Get("e").String())

	d, err = Parse([]byte("base: &b {e: a:b, f: 1}\nrule: {<<: *b, f: 2}\nmany: {<<: [{g: 3}, *b]}\n"))
	require.NoError(t, err)
	root := d.Roots[0]
	assert.Equal(t, "a:b", root.At("rule", "e").String())
	assert.Equal(t, "2", root.At("rule", "f").String())
	assert.Equal(t, map[string]any{"e": "a:b", "f": 2}, root.Get("rule").Plain())
	assert.Equal(t, map[string]any{"e": "a:b", "f": 1, "g": 3}, root.Get("many").Plain())
	assert.Nil(t, root.At("rule", "e", "x"))
	assert.Empty(t, root.Get("rule").String())
}

func TestThePlaceOfALine(t *testing.T) {
	d, err := Parse([]byte("\xef\xbb\xbfa: 1\r\n# ä note\r\nb: 2"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a: 1", "# ä note", "b: 2"}, d.Lines())
	line, column := d.Position(d.PlaceOfLine(2, 5, nil).From)
	assert.Equal(t, [2]int{2, 5}, [2]int{line, column})
	assert.Equal(t, 3, d.Roots[0].Get("b").Line())
	assert.Equal(t, 3, d.Roots[0].LastLine())
}

// Whatever the bytes are, reading ends, and an edit changes only its own bytes or is refused.
func FuzzParse(f *testing.F) {
	for _, w := range written {
		f.Add([]byte(w.text), uint16(0), uint8(1), "new")
	}
	for _, text := range []string{"a: &a [*a]", "a: *b", "{", "? a\n: b", "--- x\n--- y", "a: >\n\n\n  b\n   c\n d", "%YAML 1.1\n---\na", "'", "\"\\", "|", ">2-\n x", "a: !!binary x", "- - - x", "\t", "a:\x85b", "{a: b", `{"a": "\ud800"}`} {
		f.Add([]byte(text), uint16(3), uint8(2), "x\"'#: ")
	}
	f.Fuzz(func(t *testing.T, content []byte, from uint16, length uint8, text string) {
		defer time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("hangs: %q %d %d %q", content, from, length, text)) }).Stop()
		d, err := Parse(content)
		if err != nil {
			return
		}
		var scalars []*Node
		var walk func(n *Node, depth int)
		walk = func(n *Node, depth int) {
			if depth > 20 || len(scalars) > 50 {
				return
			}
			if n.Kind == Scalar {
				scalars = append(scalars, n)
			}
			for _, item := range n.Items {
				walk(item, depth+1)
			}
			for _, p := range n.Pairs {
				walk(p.Value, depth+1)
			}
		}
		for _, root := range d.Roots {
			walk(root, 0)
			root.Plain()
			root.LastLine()
		}
		for _, n := range scalars {
			a := int(from) % (len(n.Text) + 1)
			b := min(a+int(length), len(n.Text))
			span := n.Place(a, b)
			if span.From < 0 || span.From > span.To || span.To > len(content) {
				t.Fatalf("%v of %d bytes", span, len(content))
			}
			d.Position(span.From)
			after, spans, err := Apply(content, []Edit{{Node: n, From: a, To: b, New: text}})
			if err != nil {
				continue
			}
			s := spans[0]
			if !bytes.Equal(after[:s.From], content[:s.From]) || !bytes.Equal(after[len(after)-(len(content)-s.To):], content[s.To:]) {
				t.Fatalf("other bytes changed: %q becomes %q", content, after)
			}
		}
	})
}

func TestTheErrorOfABraceIsThatOfTheLanguageThatIsMeant(t *testing.T) {
	for text, want := range map[string]string{
		`{groups: [{name: a, rules: [{expr: rate(x[5m]) > 1}]}]}`: "did not find expected",
		`{"groups": [}`: "invalid character",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want)
	}
}
