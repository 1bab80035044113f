package plain

import (
	"bytes"
	"encoding/json"
	"io"
)

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
