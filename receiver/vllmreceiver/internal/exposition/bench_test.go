package exposition

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

func readWithExpfmt(tb testing.TB, body []byte) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	_, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(tb, err)
}

// timesExpfmt is how many times as long as expfmt alone read takes. Both run in
// turns and the best round of each counts, so that a busy machine does not decide.
func timesExpfmt(b *testing.B, body []byte, read func()) float64 {
	b.Helper()
	best := [2]time.Duration{1<<63 - 1, 1<<63 - 1}
	for range 10 {
		for i, f := range [2]func(){read, func() { readWithExpfmt(b, body) }} {
			begin := time.Now()
			for range 20 {
				f()
			}
			best[i] = min(best[i], time.Since(begin))
		}
	}
	return float64(best[0]) / float64(best[1])
}

// eachBenchBody runs a benchmark on an own body and on a real one where it is, each
// with a second scrape of the same server, so that numbers differ from read to read.
func eachBenchBody(b *testing.B, run func(b *testing.B, bodies [2][]byte)) {
	b.Run("own", func(b *testing.B) {
		run(b, [2][]byte{vllmBody("some/model", 1), vllmBody("some/model", 2)})
	})
	b.Run("v0.20", func(b *testing.B) {
		text, err := os.ReadFile(filepath.Join(captures.Dir(b), "inferguard-packet_a-vllm-v0.20-lmcache-mp.txt"))
		require.NoError(b, err)
		run(b, [2][]byte{text, bytes.ReplaceAll(text, []byte(" 0.0\n"), []byte(" 12.0\n"))})
	})
}

// start begins the measured part.
func start(b *testing.B, body []byte) {
	b.Helper()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
}

func BenchmarkExpfmt(b *testing.B) {
	eachBenchBody(b, func(b *testing.B, bodies [2][]byte) {
		start(b, bodies[0])
		for b.Loop() {
			readWithExpfmt(b, bodies[0])
		}
	})
}

// BenchmarkFirstRead reads a body whose layout is not remembered. The metric
// times-expfmt is how many times as long as expfmt alone it takes.
func BenchmarkFirstRead(b *testing.B) {
	eachBenchBody(b, func(b *testing.B, bodies [2][]byte) {
		read := func() { NewReader(NewMemory(1000)).Read(bodies[0], DialectText) }
		ratio := timesExpfmt(b, bodies[0], read)
		start(b, bodies[0])
		for b.Loop() {
			read()
		}
		b.ReportMetric(ratio, "times-expfmt")
	})
}

// BenchmarkSteadyRead reads bodies of a known layout. The metric faster is how
// many times as fast as expfmt alone it is.
func BenchmarkSteadyRead(b *testing.B) {
	eachBenchBody(b, func(b *testing.B, bodies [2][]byte) {
		reader, i := NewReader(NewMemory(1000)), 0
		read := func() {
			reader.Read(bodies[i%2], DialectText)
			i++
		}
		ratio := timesExpfmt(b, bodies[0], read)
		start(b, bodies[0])
		for b.Loop() {
			read()
		}
		b.ReportMetric(1/ratio, "faster")
	})
}

// BenchmarkReplica reads the first body of a target whose replica is known.
func BenchmarkReplica(b *testing.B) {
	eachBenchBody(b, func(b *testing.B, bodies [2][]byte) {
		memory := NewMemory(1000)
		first := NewReader(memory)
		first.Read(bodies[0], DialectText)
		read := func() { NewReader(memory).Read(bodies[1], DialectText) }
		ratio := timesExpfmt(b, bodies[0], read)
		start(b, bodies[0])
		for b.Loop() {
			read()
		}
		b.ReportMetric(1/ratio, "faster")
	})
}
