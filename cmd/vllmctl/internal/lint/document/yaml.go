package document

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads all documents of the text.
func (d *Document) parseYAML() error {
	decoder := yaml.NewDecoder(strings.NewReader(d.text))
	r := &yamlReader{doc: d, seen: map[*yaml.Node]*Node{}}
	for {
		var root yaml.Node
		err := decode(decoder, &root)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, content := range root.Content {
			n, err := r.node(content, 0)
			if err != nil {
				return err
			}
			d.Roots = append(d.Roots, n)
		}
	}
}

// decode reads one document. The library panics on some broken texts.
func decode(decoder *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("it is not YAML: %v", failure)
		}
	}()
	err = decoder.Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return err
}

type yamlReader struct {
	doc *Document
	// seen has the values that aliases refer to, so that an alias costs nothing.
	seen map[*yaml.Node]*Node
}

func (r *yamlReader) node(y *yaml.Node, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	if y.Kind == yaml.AliasNode {
		if n, known := r.seen[y.Alias]; known {
			return n, nil
		}
		return nil, fmt.Errorf("line %d: the alias %q refers to a value that contains it", y.Line, y.Value)
	}
	n, err := r.doc.new(Scalar, r.doc.offsetOf(y.Line, y.Column))
	if err != nil {
		return nil, err
	}
	switch y.Kind {
	case yaml.ScalarNode:
		n.Text, n.IsText, n.style = y.Value, y.ShortTag() == "!!str", yamlStyle(y.Style)
	case yaml.SequenceNode:
		n.Kind = List
		for _, item := range y.Content {
			v, err := r.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, v)
		}
	case yaml.MappingNode:
		n.Kind = Map
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, value := y.Content[i], y.Content[i+1]
			v, err := r.node(value, depth+1)
			if err != nil {
				return nil, err
			}
			n.Pairs = append(n.Pairs, Pair{Key: key.Value, Value: v})
		}
	case yaml.DocumentNode, yaml.AliasNode:
	}
	if y.Anchor != "" {
		r.seen[y] = n
	}
	return n, nil
}

func yamlStyle(s yaml.Style) style {
	switch {
	case s&yaml.DoubleQuotedStyle != 0:
		return styleDouble
	case s&yaml.SingleQuotedStyle != 0:
		return styleSingle
	case s&yaml.LiteralStyle != 0:
		return styleLiteral
	case s&yaml.FoldedStyle != 0:
		return styleFolded
	}
	return stylePlain
}

// lineStarts returns the offsets at which lines start. Lines end as YAML's do.
func (d *Document) lineStarts() []int {
	if d.lines != nil {
		return d.lines
	}
	d.lines = []int{0}
	for i := 0; i < len(d.text); i++ {
		switch d.text[i] {
		case '\n':
		case '\r':
			if i+1 < len(d.text) && d.text[i+1] == '\n' {
				i++
			}
		case 0xc2:
			if !strings.HasPrefix(d.text[i:], "\u0085") || d.JSON {
				continue
			}
			i++
		case 0xe2:
			if !strings.HasPrefix(d.text[i:], "\u2028") && !strings.HasPrefix(d.text[i:], "\u2029") || d.JSON {
				continue
			}
			i += 2
		default:
			continue
		}
		d.lines = append(d.lines, i+1)
	}
	return d.lines
}

// cursor is a place whose column is known. Places are mostly asked for in their order, so that
// a long line is not counted again for each.
type cursor struct{ line, column, at int }

// offsetOf returns the offset of a line and a column, which count characters from 1.
func (d *Document) offsetOf(line, column int) int {
	lines := d.lineStarts()
	if line < 1 || line > len(lines) {
		return len(d.text)
	}
	if d.cursor.line != line || d.cursor.column > column {
		d.cursor = cursor{line, 1, lines[line-1]}
	}
	for d.cursor.column < column && d.cursor.at < len(d.text) {
		_, size := utf8.DecodeRuneInString(d.text[d.cursor.at:])
		d.cursor.at += size
		d.cursor.column++
	}
	return d.cursor.at
}

// lineIndex returns the index of the line that a byte is in.
func (d *Document) lineIndex(at int) int {
	i, found := slices.BinarySearch(d.lineStarts(), at)
	if !found {
		i--
	}
	return i
}

// LineOf returns the line and the column, in characters, of a byte of the document.
func (d *Document) LineOf(at int) (line, column int) {
	at = min(max(at, 0), len(d.text))
	line = d.lineIndex(at) + 1
	if d.cursor.line != line || d.cursor.at > at {
		d.cursor = cursor{line, 1, d.lineStarts()[line-1]}
	}
	d.cursor.column += utf8.RuneCountInString(d.text[d.cursor.at:at])
	d.cursor.at = at
	return line, d.cursor.column
}
