package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// JSON writes a value as one indented JSON document whose characters can all be printed: those that a
// terminal would carry out or hide are written as \u escapes, which stand for the same text.
func JSON(w io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		// What is below a space was escaped before, but for the end of a line.
		if r < unicode.MaxASCII || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// JSONLine writes a value as JSON does, on one line.
func JSONLine(w io.Writer, value any) error {
	var document, line bytes.Buffer
	if err := JSON(&document, value); err != nil {
		return err
	}
	if err := json.Compact(&line, document.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.Write(line.Bytes())
	return err
}
