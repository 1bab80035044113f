// Package recorded has what simulated servers answered to some scrapes 15 s apart. They are recorded
// in testdata/answers by the tests of lab/test/recorded, which compare them with the simulator, so that
// the tests of components need no simulator.
package recorded

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// Interval is the time between two answers.
const Interval = 15 * time.Second

// Begin is when the servers started.
var Begin = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// Answer is what a server answered at one time.
type Answer struct {
	At                time.Time
	Body, ContentType string
	// Version is what GET /version says.
	Version string
}

// Answers returns the answers of a server by its name in lab/test/recorded.
func Answers(tb testing.TB, server string) []Answer {
	tb.Helper()
	file := File(tb, server)
	compressed, err := os.Open(file)
	if err != nil {
		tb.Fatalf("%v; the tests of lab/test/recorded write it with -update", err)
	}
	defer compressed.Close()
	reader, err := zstd.NewReader(compressed)
	if err != nil {
		tb.Fatal(err)
	}
	defer reader.Close()
	var all []Answer
	if err := json.NewDecoder(reader).Decode(&all); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return all
}

// File returns the path of the recorded answers of a server.
func File(tb testing.TB, server string) string {
	tb.Helper()
	return filepath.Join(captures.Root(tb), "testdata", "answers", strings.ReplaceAll(server, " ", "-")+".json.zst")
}

// Write writes the answers of a server.
func Write(to io.Writer, all []Answer) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(all); err != nil {
		return err
	}
	// The window takes in several bodies, which are much alike.
	writer, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(4<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if _, err := writer.Write(text.Bytes()); err != nil {
		return err
	}
	return writer.Close()
}
