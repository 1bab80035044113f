package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseJSON reads the text with the tokens of encoding/json, which say where they end.
func (d *Document) parseJSON() error {
	decoder := json.NewDecoder(strings.NewReader(d.text))
	decoder.UseNumber()
	r := &jsonReader{doc: d, decoder: decoder}
	root, err := r.value(0)
	if err != nil {
		return jsonError(d, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		line, column := d.LineOf(int(decoder.InputOffset()))
		return fmt.Errorf("line %d, column %d: there is more text after the end of the JSON value", line, column)
	}
	d.Roots = []*Node{root}
	return nil
}

func jsonError(d *Document, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line, column := d.LineOf(max(0, int(syntax.Offset)-1))
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends in the middle of a value")
	}
	return err
}

type jsonReader struct {
	doc     *Document
	decoder *json.Decoder
}

// token returns the next token and where it starts.
func (r *jsonReader) token() (json.Token, int, error) {
	at := int(r.decoder.InputOffset())
	t, err := r.decoder.Token()
	if err != nil {
		return nil, 0, err
	}
	for at < len(r.doc.text) && strings.IndexByte(" \t\r\n,:", r.doc.text[at]) >= 0 {
		at++
	}
	return t, at, nil
}

func (r *jsonReader) value(depth int) (*Node, error) {
	t, at, err := r.token()
	if err != nil {
		return nil, err
	}
	return r.valueOf(t, at, depth)
}

func (r *jsonReader) valueOf(t json.Token, at, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return r.object(at, depth)
		}
		return r.array(at, depth)
	case string:
		n, err := r.doc.new(Scalar, at)
		if err != nil {
			return nil, err
		}
		n.Text, n.IsText, n.style = t, true, styleJSON
		return n, nil
	}
	n, err := r.doc.new(Scalar, at)
	if err != nil {
		return nil, err
	}
	n.style = styleNone
	if t != nil {
		n.Text = fmt.Sprint(t)
	}
	return n, nil
}

func (r *jsonReader) object(at, depth int) (*Node, error) {
	n, err := r.doc.new(Map, at)
	if err != nil {
		return nil, err
	}
	for r.decoder.More() {
		key, _, err := r.token()
		if err != nil {
			return nil, err
		}
		name, is := key.(string)
		if !is {
			return nil, errors.New("a key of a JSON object is not a text")
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Pairs = append(n.Pairs, Pair{Key: name, Value: v})
	}
	_, _, err = r.token()
	return n, err
}

func (r *jsonReader) array(at, depth int) (*Node, error) {
	n, err := r.doc.new(List, at)
	if err != nil {
		return nil, err
	}
	for r.decoder.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, v)
	}
	_, _, err = r.token()
	return n, err
}
