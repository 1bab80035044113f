package traffic

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
)

// column is one that has a meaning here.
type column int

const (
	arrival column = iota
	prompt
	output
	prefix
	client
	conversation
	seq
	think
	shared
	columns
)

var columnNames = [columns]string{
	"arrival_s", "prompt_tokens", "output_tokens", "prefix_blocks", "client",
	"conversation", "seq", "think_s", "shared_prefix_tokens",
}

// form is where a file has which column.
type form struct {
	// at has the place of each column in a line, -1 for none.
	at [columns]int
	// width is the number of columns in the file.
	width int
	// closed is a file of conversations.
	closed bool
}

func newForm(names [][]byte) (form, error) {
	f := form{width: len(names)}
	for c := range f.at {
		f.at[c] = -1
	}
	for i, name := range names {
		for c, known := range columnNames {
			if string(bytes.TrimSpace(name)) != known {
				continue
			}
			if f.at[c] >= 0 {
				return f, fmt.Errorf("the column %s is there twice: want it once", known)
			}
			f.at[c] = i
		}
	}
	f.closed = f.at[arrival] < 0 && f.at[conversation] >= 0
	wanted := []column{arrival, prompt, output}
	if f.closed {
		wanted = []column{conversation, think, prompt, output}
	}
	for _, c := range wanted {
		if f.at[c] >= 0 {
			continue
		}
		all := make([]string, len(wanted))
		for i, c := range wanted {
			all[i] = columnNames[c]
		}
		return f, fmt.Errorf("the header has no column %s: want %s, separated by commas", columnNames[c], strings.Join(all, ", "))
	}
	return f, nil
}

// fields splits a line into the fields in dst. Quotes are rare in traces of numbers, so only
// lines with one take the slow way.
func fields(line []byte, dst [][]byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') >= 0 {
		texts, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err != nil {
			return nil, errors.New("a quoted field does not end in its line: want every quote closed")
		}
		for _, text := range texts {
			dst = append(dst, []byte(text))
		}
		return dst, nil
	}
	for {
		field, rest, more := bytes.Cut(line, []byte{','})
		dst = append(dst, field)
		if !more {
			return dst, nil
		}
		line = rest
	}
}
