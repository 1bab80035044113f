package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Edit replaces the bytes of a scalar's text from From to To by New, which has one line.
type Edit struct {
	Node     *Node
	From, To int
	New      string
}

// Span is a part of a file in bytes.
type Span struct{ From, To int }

// change is an edit in the bytes of the file.
type change struct {
	Span
	text string
}

// place returns the part of the file that holds a part of a scalar's text. exact is false
// if only the beginning of the scalar is known.
func (n *Node) place(from, to int) (span Span, exact bool) {
	m := n.mapping()
	inDocument := Span{n.start, n.start}
	if m.exact {
		inDocument = Span{m.to, m.to}
		if from < len(m.start) {
			inDocument = Span{int(m.start[from]), int(m.start[from])}
		}
		if to > from && to <= len(m.end) {
			inDocument.To = int(m.end[to-1])
		}
	}
	span, outer := n.doc.place(inDocument)
	return span, m.exact && outer
}

// place returns the part of the file that holds a part of the document.
func (d *Document) place(s Span) (Span, bool) {
	if d.parent == nil {
		return Span{s.From + d.skipped, s.To + d.skipped}, true
	}
	return d.parent.place(s.From, s.To)
}

// Place returns the part of the file that holds the bytes from to to of a scalar's text. It
// is empty, and at the beginning of the scalar, if the part cannot be told.
func (n *Node) Place(from, to int) Span {
	span, _ := n.place(from, to)
	return span
}

// Start returns where a value begins in the file.
func (n *Node) Start() int {
	span, _ := n.doc.place(Span{n.start, n.start})
	return span.From
}

// Line returns the line of the document, from 1, in which a value begins.
func (n *Node) Line() int {
	return n.doc.lineIndex(n.start) + 1
}

// LastLine returns the last line of the document that a value takes.
func (n *Node) LastLine() int { return n.lastLine(maxDepth) }

func (n *Node) lastLine(depth int) int {
	last := n.Line()
	if n.Kind == Scalar {
		if m := n.mapping(); m.exact {
			last = max(last, n.doc.lineIndex(max(m.from, m.to-1))+1)
		}
		return last
	}
	if depth == 0 {
		return last
	}
	if i := len(n.Items) - 1; i >= 0 {
		last = max(last, n.Items[i].lastLine(depth-1))
	}
	if i := len(n.Pairs) - 1; i >= 0 {
		last = max(last, n.Pairs[i].Value.lastLine(depth-1))
	}
	return last
}

// Position returns the line and the column of a byte of a file.
func (d *Document) Position(at int) (line, column int) {
	return d.LineOf(max(0, at-d.skipped))
}

// change returns what an edit does to the bytes of the file.
func (e Edit) change() (change, error) {
	if strings.ContainsAny(e.New, "\r\n") {
		return change{}, errors.New("the new text has several lines")
	}
	m := e.Node.mapping()
	switch {
	case !m.exact:
		return change{}, errors.New("its place in the file is not certain")
	case e.From >= e.To || e.To > len(m.start):
		return change{}, errors.New("there is nothing to replace")
	case strings.ContainsAny(e.Node.Text[e.From:e.To], "\r\n"):
		return change{}, errors.New("the text to replace has several lines")
	}
	from, to := int(m.start[e.From]), int(m.end[e.To-1])
	if strings.ContainsAny(e.Node.doc.text[from:to], "\r\n") {
		return change{}, errors.New("the text to replace has several lines")
	}
	text := encode(e.New, e.Node.style)
	if parent := e.Node.doc.parent; parent != nil {
		return Edit{Node: parent, From: from, To: to, New: text}.change()
	}
	return change{Span{from + e.Node.doc.skipped, to + e.Node.doc.skipped}, text}, nil
}

// Apply returns the content of a file with edits, and the parts of it that they replaced.
// It fails if the result does not hold exactly the edited texts and all others as they were.
func Apply(content []byte, edits []Edit) ([]byte, []Span, error) {
	var changes []change
	for _, e := range edits {
		c, err := e.change()
		if err != nil {
			return nil, nil, err
		}
		changes = append(changes, c)
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.From, b.From) })
	var out []byte
	var spans []Span
	at := 0
	for i, c := range changes {
		if i > 0 && c == changes[i-1] {
			continue
		}
		if c.From < at || c.To > len(content) {
			return nil, nil, errors.New("two replacements overlap")
		}
		out = append(append(out, content[at:c.From]...), c.text...)
		spans = append(spans, c.Span)
		at = c.To
	}
	out = append(out, content[at:]...)
	return out, spans, verify(content, out, edits)
}

// verify reads the file again and compares all its values with those before.
func verify(before, after []byte, edits []Edit) error {
	old, err := Parse(before)
	if err != nil {
		return err
	}
	changed, err := Parse(after)
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	w := &comparison{wanted: map[int]string{}, same: map[[2]*Node]bool{}}
	for _, e := range edits {
		w.expect(e)
	}
	if len(old.Roots) != len(changed.Roots) || old.JSON != changed.JSON {
		return errors.New("the result has other documents")
	}
	for i := range old.Roots {
		if !w.equal(old.Roots[i], changed.Roots[i]) {
			return errors.New("the result has another value that is changed")
		}
	}
	return nil
}

// comparison knows the texts that scalars must have after the edits, by their places.
type comparison struct {
	wanted map[int]string
	edits  map[*Node][]Edit
	same   map[[2]*Node]bool
}

// expect adds an edit. The edits of an inner document are those of the text that holds it.
func (w *comparison) expect(e Edit) {
	if w.edits == nil {
		w.edits = map[*Node][]Edit{}
	}
	for e.Node.doc.parent != nil {
		m := e.Node.mapping()
		e = Edit{Node: e.Node.doc.parent, From: int(m.start[e.From]), To: int(m.end[e.To-1]), New: encode(e.New, e.Node.style)}
	}
	if slices.Contains(w.edits[e.Node], e) {
		return
	}
	w.edits[e.Node] = append(w.edits[e.Node], e)
	all := slices.Clone(w.edits[e.Node])
	slices.SortFunc(all, func(a, b Edit) int { return cmp.Compare(b.From, a.From) })
	text := e.Node.Text
	for _, one := range all {
		text = text[:one.From] + one.New + text[one.To:]
	}
	w.wanted[e.Node.start] = text
}

func (w *comparison) equal(a, b *Node) bool {
	pair := [2]*Node{a, b}
	if w.same[pair] {
		return true
	}
	if a.Kind != b.Kind || a.IsText != b.IsText || len(a.Items) != len(b.Items) || len(a.Pairs) != len(b.Pairs) {
		return false
	}
	if a.Kind == Scalar {
		want, edited := w.wanted[a.start]
		if !edited {
			want = a.Text
		}
		return b.Text == want
	}
	for i := range a.Items {
		if !w.equal(a.Items[i], b.Items[i]) {
			return false
		}
	}
	for i := range a.Pairs {
		if a.Pairs[i].Key != b.Pairs[i].Key || !w.equal(a.Pairs[i].Value, b.Pairs[i].Value) {
			return false
		}
	}
	w.same[pair] = true
	return true
}

// PlaceOfLine returns the place in the file of a byte of a line of the document. If it cannot
// be told, it is the place of n.
func (d *Document) PlaceOfLine(line, at int, n *Node) Span {
	lines := d.lineStarts()
	if line < 1 || line > len(lines) {
		return Span{}
	}
	from := lines[line-1] + at
	span, exact := d.place(Span{from, from})
	if !exact && n != nil {
		return Span{n.Start(), n.Start()}
	}
	return span
}

// Lines returns the lines of the document without their ends.
func (d *Document) Lines() []string {
	starts := d.lineStarts()
	all := make([]string, len(starts))
	for i, from := range starts {
		to := len(d.text)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		all[i] = strings.TrimRight(d.text[from:to], "\r\n")
	}
	return all
}
