package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// node is a place in a file.
type node struct {
	path string // Of the file.
	key  string // With the keys above it, as in "workload.rate".
	yaml *yaml.Node
}

// open reads a file, which has one document.
func open(path string, text []byte) (*node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) || (err == nil && len(first.Content) != 1) {
		return nil, fmt.Errorf("%s: nothing in it", path)
	}
	if err == nil {
		if err = decoder.Decode(&second); errors.Is(err, io.EOF) {
			n := &node{path: path, yaml: first.Content[0]}
			err = n.check()
			return n, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: not YAML: %w", path, err)
	}
	return nil, fmt.Errorf("%s:%d: a second document begins here: want one story in a file, without ---", path, second.Line)
}

// check refuses what no key can have. An alias could stand for much more than the file has.
func (n *node) check() error {
	switch n.yaml.Kind {
	case yaml.AliasNode:
		return n.errorf("aliases such as *%s are not supported; write the value itself", n.yaml.Value)
	case yaml.SequenceNode:
		return n.each((*node).check)
	case yaml.MappingNode:
		known := map[string]bool{}
		for i := 0; i+1 < len(n.yaml.Content); i += 2 {
			key := n.yaml.Content[i]
			inner := n.value(key.Value, n.yaml.Content[i+1])
			if key.Kind != yaml.ScalarNode {
				return (&node{n.path, n.key, key}).errorf("want a name as the key")
			}
			if known[key.Value] {
				return inner.errorf("this key stands here twice")
			}
			known[key.Value] = true
			if err := inner.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *node) errorf(format string, args ...any) error {
	where := fmt.Sprintf("%s:%d: ", n.path, n.yaml.Line)
	if n.key != "" {
		where += n.key + ": "
	}
	return fmt.Errorf("%s%w", where, fmt.Errorf(format, args...))
}

// field is one key that a mapping can have.
type field struct {
	name string
	read func(*node) error
}

// mapping reads the fields that are there, in the order in which they are listed
// here, and refuses all others.
func (n *node) mapping(fields ...field) error {
	if n.yaml.Kind != yaml.MappingNode {
		return n.errorf("want keys and values")
	}
	values := map[string]*node{}
	for i := 0; i+1 < len(n.yaml.Content); i += 2 {
		key := n.yaml.Content[i]
		child := n.value(key.Value, n.yaml.Content[i+1])
		values[key.Value] = child
		known := false
		var names []string
		for _, f := range fields {
			known = known || f.name == key.Value
			names = append(names, f.name)
		}
		if !known {
			return child.errorf("unknown key: want one of %s", strings.Join(names, ", "))
		}
	}
	for _, f := range fields {
		if value := values[f.name]; value != nil {
			if err := f.read(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// value returns the place of the value of a key.
func (n *node) value(key string, yaml *yaml.Node) *node {
	return &node{path: n.path, key: strings.TrimPrefix(n.key+"."+key, "."), yaml: yaml}
}

// element returns the place of an element of a list.
func (n *node) element(i int) *node {
	return &node{path: n.path, key: fmt.Sprintf("%s[%d]", n.key, i), yaml: n.yaml.Content[i]}
}

// child returns the value of a key, or the element of a list with this number; nil where there
// is none.
func (n *node) child(key string) *node {
	for i, content := range n.yaml.Content {
		switch {
		case n.yaml.Kind == yaml.MappingNode && i%2 == 0 && content.Value == key:
			return n.value(key, n.yaml.Content[i+1])
		case n.yaml.Kind == yaml.SequenceNode && key == strconv.Itoa(i):
			return n.element(i)
		}
	}
	return nil
}

// keys are those of a mapping.
func (n *node) keys() (out []string) {
	if n.yaml.Kind == yaml.MappingNode {
		for i := 0; i < len(n.yaml.Content); i += 2 {
			out = append(out, n.yaml.Content[i].Value)
		}
	}
	return out
}

// each reads the elements of a list.
func (n *node) each(read func(*node) error) error {
	if n.yaml.Kind != yaml.SequenceNode {
		return n.errorf("want a list")
	}
	for i := range n.yaml.Content {
		if err := read(n.element(i)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) text() (string, error) {
	if n.yaml.Kind != yaml.ScalarNode || n.yaml.Tag != "!!str" || n.yaml.Value == "" {
		return "", n.errorf("want text")
	}
	return n.yaml.Value, nil
}

func (n *node) float(least, most float64) (float64, error) {
	var v float64
	if n.yaml.Kind != yaml.ScalarNode || (n.yaml.Tag != "!!int" && n.yaml.Tag != "!!float") || n.yaml.Decode(&v) != nil {
		return 0, n.errorf("want a number, not %q", n.yaml.Value)
	}
	if !(v >= least && v <= most) {
		return 0, n.errorf("%v is not between %v and %v", v, least, most)
	}
	return v, nil
}

func (n *node) duration(least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(n.yaml.Value)
	if n.yaml.Kind != yaml.ScalarNode || err != nil {
		return 0, n.errorf("want a duration such as 90s or 5m, not %q", n.yaml.Value)
	}
	if d < least || d > most {
		return 0, n.errorf("%s is not between %s and %s", d, least, most)
	}
	return d, nil
}

// seconds is a time in seconds, as a number or a duration.
func (n *node) seconds(most time.Duration) (float64, error) {
	if n.yaml.Kind == yaml.ScalarNode && (n.yaml.Tag == "!!int" || n.yaml.Tag == "!!float") {
		return n.float(0, most.Seconds())
	}
	d, err := time.ParseDuration(n.yaml.Value)
	if n.yaml.Kind != yaml.ScalarNode || err != nil {
		return 0, n.errorf("want seconds, or a duration such as 90s or 5m, not %q", n.yaml.Value)
	}
	if d < 0 || d > most {
		return 0, n.errorf("%s is not between 0s and %s", d, most)
	}
	return d.Seconds(), nil
}

// The fields by the kind of what they set. Limits are inclusive.

func number(name string, into *float64, least, most float64) field {
	return field{name, func(n *node) (err error) { *into, err = n.float(least, most); return err }}
}

func integer(name string, into *int, least, most int) field {
	return field{name, func(n *node) error {
		v, err := n.float(float64(least), float64(most))
		if err == nil && v != math.Trunc(v) {
			err = n.errorf("want a whole number, not %v", v)
		}
		*into = int(v)
		return err
	}}
}

func boolean(name string, into *bool) field {
	return field{name, func(n *node) error {
		if n.yaml.Kind != yaml.ScalarNode || n.yaml.Tag != "!!bool" || n.yaml.Decode(into) != nil {
			return n.errorf("want true or false, not %q", n.yaml.Value)
		}
		return nil
	}}
}

func text(name string, into *string) field {
	return field{name, func(n *node) (err error) { *into, err = n.text(); return err }}
}

// span is a duration that is kept in seconds.
func span(name string, into *float64, least, most time.Duration) field {
	return field{name, func(n *node) error {
		d, err := n.duration(least, most)
		*into = d.Seconds()
		return err
	}}
}

// shares are a list of numbers from 0 to 1, one for each of so many things. Where it is
// not known how many there are, of is 0.
func shares(name string, into *[]float64, of func() int, things string) field {
	return field{name, func(n *node) error {
		total := 0.0
		err := n.each(func(n *node) error {
			v, err := n.float(0, 1)
			*into = append(*into, v)
			total += v
			return err
		})
		switch given, want := len(*into), of(); {
		case err != nil || given == 0 || want == 0:
			return err
		case given != want:
			return n.errorf("want a share for each of the %s, which are %d, not %d", things, want, given)
		case total == 0:
			return n.errorf("at least one must be above 0")
		}
		return nil
	}}
}
