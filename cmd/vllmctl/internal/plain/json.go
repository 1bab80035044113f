package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// JSON writes a value as one JSON document and a line feed. Every character that a terminal
// would carry out or hide is an escape: encoding/json leaves U+007F, U+009B, U+0085 and U+202E as
// they are. Its error is that of the value or of w.
func JSON(w io.Writer, value any, indent string) error {
	var document, out bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	// Outside of its texts a document has only ASCII that can be printed, and line feeds.
	for _, r := range document.String() {
		switch {
		case r < 0x7f || unicode.IsPrint(r) && r != unicode.ReplacementChar:
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}
