// Package document reads YAML and JSON into trees that know where each text is in the bytes
// of a file, and changes such texts without touching any other byte.
//
// A text can be a document itself, as the dashboards in a ConfigMap are: its places are
// those in the file, and a change is written with the escapes of both.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The bounds of a document. They are far above what people write, so that only a mistake or
// an attack exceeds them.
const (
	// MaxBytes is the size of the largest file.
	MaxBytes = 16 << 20
	// maxDepth is the depth of the deepest value.
	maxDepth = 200
	// maxFlow is the size of the largest text that begins with a brace and is tried as YAML.
	maxFlow = 1 << 20
	// maxNodes is the number of values in a file.
	maxNodes = 1 << 20
)

// Document is a file, or a text in a file, and its values.
type Document struct {
	// Roots are the values: one for JSON, one for each document of YAML.
	Roots []*Node
	// JSON reports whether it was read as JSON.
	JSON bool
	text string
	// skipped is the length of a byte order mark, which is not part of text.
	skipped int
	parent  *Node
	lines   []int
	cursor  cursor
	nodes   int
}

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Scalar Kind = iota
	List
	Map
)

// Node is a value.
type Node struct {
	Kind Kind
	// Text is the value of a scalar, without quotes and escapes.
	Text string
	// IsText reports whether a scalar is a string, and neither a number, a truth value nor
	// null.
	IsText bool
	// Items are the values of a list.
	Items []*Node
	// Pairs are the pairs of a map in their order. A key may be there twice.
	Pairs []Pair

	doc   *Document
	start int
	style style
	where *mapping
}

// Pair is a key and its value.
type Pair struct {
	Key   string
	Value *Node
}

// Parse reads a file. It is read as JSON if it begins like JSON, else as YAML.
func Parse(content []byte) (*Document, error) {
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d MiB", MaxBytes>>20)
	}
	d := &Document{}
	if bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) {
		d.skipped = 3
	}
	d.text = string(content[d.skipped:])
	err := d.parse()
	return d, err
}

// Inner reads a text as a document.
func (n *Node) Inner() (*Document, error) {
	d := &Document{text: n.Text, parent: n}
	err := d.parse()
	return d, err
}

func (d *Document) parse() error {
	switch {
	case strings.HasPrefix(d.text, "\xff\xfe"), strings.HasPrefix(d.text, "\xfe\xff"):
		return errors.New("it is encoded in UTF-16; convert it to UTF-8")
	case strings.IndexByte(d.text, 0) >= 0:
		return errors.New("it is not a text: it has bytes that are 0")
	case !utf8.ValidString(d.text):
		return errors.New("it is not encoded in UTF-8")
	}
	if begin := strings.TrimLeft(d.text, " \t\r\n"); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
		d.JSON = true
		err := d.parseJSON()
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) || len(d.text) > maxFlow {
			return err
		}
		// A map of YAML can begin with a brace, too.
		d.JSON, d.Roots, d.nodes, d.lines, d.cursor = false, nil, 0, nil, cursor{}
		template := strings.HasPrefix(begin, "{{")
		inYAML := d.parseYAML()
		if inYAML == nil && len(d.Roots) > 0 && !template {
			return nil
		}
		if first := strings.TrimLeft(begin[1:], " \t\r\n"); inYAML != nil && !template && first != "" && !strings.ContainsAny(first[:1], `"{[]}`) {
			// A key without quotes: YAML is meant.
			return inYAML
		}
		return err
	}
	return d.parseYAML()
}

// new returns a value that counts towards the bound.
func (d *Document) new(kind Kind, start int) (*Node, error) {
	d.nodes++
	if d.nodes > maxNodes {
		return nil, fmt.Errorf("it has more than %d values", maxNodes)
	}
	return &Node{Kind: kind, doc: d, start: start}, nil
}

var errDeep = fmt.Errorf("it is nested more than %d levels deep", maxDepth)

// mergeBudget bounds the maps that are searched for one key: merge keys can refer to each
// other many times.
const mergeBudget = 256

// Get returns the value of a key, through the merge keys of YAML; nil if n is not a map or has
// no such key. Of a key that is there twice, the last value counts, as everywhere.
func (n *Node) Get(key string) *Node {
	budget := mergeBudget
	return n.get(key, &budget)
}

func (n *Node) get(key string, budget *int) *Node {
	*budget--
	if n == nil || n.Kind != Map || *budget < 0 {
		return nil
	}
	for _, p := range slices.Backward(n.Pairs) {
		if p.Key == key {
			return p.Value
		}
	}
	if n.doc.JSON || key == "<<" {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key != "<<" {
			continue
		}
		merged := []*Node{p.Value}
		if p.Value.Kind == List {
			merged = p.Value.Items
		}
		for _, m := range merged {
			if v := m.get(key, budget); v != nil {
				return v
			}
		}
	}
	return nil
}

// At returns the value at the end of a path of keys, nil if there is none.
func (n *Node) At(path ...string) *Node {
	for _, key := range path {
		n = n.Get(key)
	}
	return n
}

// String returns the text of a scalar, and "" for anything else and for nil.
func (n *Node) String() string {
	if n == nil || n.Kind != Scalar {
		return ""
	}
	return n.Text
}

// List returns the items of a list, and none for anything else and for nil.
func (n *Node) List() []*Node {
	if n == nil || n.Kind != List {
		return nil
	}
	return n.Items
}

// Is reports whether n is there and of a kind.
func (n *Node) Is(kind Kind) bool { return n != nil && n.Kind == kind }

// Document returns the document that a value is in.
func (n *Node) Document() *Document { return n.doc }

// Text returns the text of the document, without a byte order mark.
func (d *Document) Text() string { return d.text }

// plainBudget bounds the values that Plain returns: an alias costs nothing in the tree, but
// each use of it does here.
const plainBudget = 200_000

// Plain returns the values of a node without their places, as encoding/json would decode
// them. It follows merge keys. It returns nil if there are too many.
func (n *Node) Plain() any {
	budget := plainBudget
	value := n.plain(&budget)
	if budget < 0 {
		return nil
	}
	return value
}

func (n *Node) plain(budget *int) any {
	*budget--
	if n == nil || *budget < 0 {
		return nil
	}
	switch {
	case n.Kind == List:
		all := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			all = append(all, item.plain(budget))
		}
		return all
	case n.Kind == Map:
		all := map[string]any{}
		n.collect(all, budget)
		return all
	case n.IsText:
		return n.Text
	}
	var value any
	if err := yaml.Unmarshal([]byte(n.Text), &value); err != nil {
		return n.Text
	}
	return value
}

// collect adds the pairs of a map and of those that it merges.
func (n *Node) collect(all map[string]any, budget *int) {
	for _, p := range n.Pairs {
		if p.Key != "<<" || n.doc.JSON {
			all[p.Key] = p.Value.plain(budget)
		}
	}
	for _, p := range n.Pairs {
		if p.Key != "<<" || n.doc.JSON {
			continue
		}
		merged := p.Value.List()
		if p.Value.Is(Map) {
			merged = []*Node{p.Value}
		}
		for _, m := range merged {
			*budget--
			if *budget < 0 || !m.Is(Map) {
				return
			}
			more := map[string]any{}
			m.collect(more, budget)
			for key, value := range more {
				if _, own := all[key]; !own {
					all[key] = value
				}
			}
		}
	}
}
