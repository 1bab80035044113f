package profile

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func gunzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	body, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(body)
}

const header = "gpu,model,tp,dtype,vllm,component,x,y,ms\n"

// rows are a complete set of measurements of a card, whose products take so many
// milliseconds per token; the points are in no order.
func rows(card, perToken string) string {
	out := ""
	for _, r := range []string{
		"gemm,8192,,8192" + perToken, "gemm,1,,1" + perToken, "gemm,64,,64" + perToken, "lm_head,512,,4", "lm_head,1,,2",
		"decode_attention,2,100,8", "decode_attention,1,100,4", "prefill_attention,100,0,16", "prefill_attention,10,0,8",
	} {
		out += card + "," + r + "\n"
	}
	return out
}

func written(t *testing.T, text string, zip bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "components.csv")
	body := []byte(text)
	if zip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		body = b.Bytes()
	}
	require.NoError(t, os.WriteFile(path, body, 0o600))
	return path
}

func decodes(n, context int) (b engine.Batch) {
	for range n {
		b.AddDecode(1, context)
	}
	return b
}

func TestAProfileIsReadWithOrWithoutGzipAndInAnyOrderOfColumns(t *testing.T) {
	text := header + rows("H100-80G-SXM,Llama-3.1-8B,1,bf16,0.24.0", "")
	var swapped strings.Builder
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		swapped.WriteString(strings.Join([]string{f[8], f[5], f[6], f[7], "any", f[0], f[1], f[2], f[3]}, ",") + "\n")
	}
	for _, path := range []string{written(t, text, false), written(t, "\ufeff"+strings.ReplaceAll(text, "\n", "\r\n"), true), written(t, swapped.String(), false)} {
		m, err := Read(path, "h100_sxm", "llama-3.1-8b", 0, "")
		require.NoError(t, err)
		// Two tokens: gemm 2, lm_head 2 x 2^(1/9) across a wide gap, attention 8.
		m.StepSeconds, m.KVTokenSeconds = 0, 0
		assert.InEpsilon(t, 12.16e-3, m.StepTime(decodes(2, 100), engine.Nominal()), 0.001)
		assert.Empty(t, m.Note)
		assert.Equal(t, "H100-80G-SXM Llama-3.1-8B tp1 bf16", m.Name)
		again, err := Read(path, "h100_sxm", "llama-3.1-8b", 0, "")
		require.NoError(t, err)
		assert.Same(t, m.Tables, again.Tables, "the process keeps it")
	}
}

func TestTheCardIsFoundByItsWords(t *testing.T) {
	several := header +
		rows("H100-80G-SXM,Llama-3.1-8B,1,bf16,0.9.0", "1") + rows("H100-80G-SXM,Llama-3.1-8B,1,bf16,0.24.0", "2") +
		rows("H100-80G-SXM,Llama-3.1-8B,1,fp8,0.24.0", "3") +
		rows("H200-141G-SXM,Llama-3.1-8B,1,bf16,0.24.0", "4") + rows("H200-141G-SXM,Llama-3.1-8B-FP8,1,fp8,0.24.0", "5") +
		rows("L40S,Llama-3.1-8B,4,fp8,0.24.0", "6") + rows("L40S,Llama-3.1-8B,8,fp8,0.24.0", "7")
	path := written(t, several, false)
	for _, c := range []struct {
		gpu, model string
		tp         int
		dtype      string
		wantTP     int
		want       string // The digit that follows the time of the products, or the error.
	}{
		{"h100_sxm", "llama-3.1-8b", 1, "bf16", 1, "2"},
		{"H100", "8b", 0, "", 1, "2"},
		{"h100", "llama 3.1 8B", 0, "FP8", 1, "3"},
		{"h200", "Llama-3.1-8B", 0, "", 1, "4"},
		{"h200", "8b fp8", 0, "", 1, "5"},
		{"sxm", "llama", 1, "", 0, `gpu and model: "sxm" and "llama" are not unique: the file has H100-80G-SXM Llama-3.1-8B, H200-141G-SXM Llama-3.1-8B, H200-141G-SXM Llama-3.1-8B-FP8; name one in full`},
		{"b200", "8b", 1, "", 0, `gpu: no "b200": the file has H100-80G-SXM, H200-141G-SXM, L40S`},
		{"h10", "8b", 1, "", 0, `gpu: no "h10"`},
		{"h100", "70b", 1, "", 0, `model: no "70b" on "h100": the file has H100-80G-SXM Llama-3.1-8B`},
		{"h100", "8b", 4, "", 0, `tp: no 4 for H100-80G-SXM Llama-3.1-8B: the file has 1`},
		{"l40s", "8b", 0, "", 0, `tp: no 1 for L40S Llama-3.1-8B: the file has 4, 8`},
		{"h100", "8b", 1, "int8", 0, `dtype: no "int8" for H100-80G-SXM Llama-3.1-8B at tp 1: the file has bf16, fp8`},
		{"l40s", "8b", 8, "fp8", 0, `no row of the component allreduce, which several GPUs need`},
	} {
		card, parts, err := read(path, c.gpu, c.model, c.tp, c.dtype)
		if c.wantTP == 0 {
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
			continue
		}
		require.NoError(t, err, "%s %s", c.gpu, c.model)
		assert.Equal(t, c.wantTP, card.TP)
		assert.InDelta(t, 10e-3+float64(c.want[0]-'0')*1e-3, parts.Products[1].Seconds, 1e-9, "%s %s", c.gpu, c.model)
	}
}

func TestMistakesNameFileLineAndColumn(t *testing.T) {
	good := rows("G,M,1,bf16,1", "")
	for _, c := range []struct{ text, want string }{
		{"", "no header of columns"},
		{"gpu,model\n", `:1: column "tp" is missing: want gpu, model, tp`},
		{header, "no row below the header"},
		{header + "G,M,one,bf16,1,gemm,1,,1\n", `:2: tp: want a whole number from 1 to 1024, not "one"`},
		{header + good + "G,M,1,bf16,1,gemm,1,,NaN\n", `:11: ms: want a number above 0, not "NaN"`},
		{header + good + "G,M,1,bf16,1,gemm,1,,-1\n", `:11: ms: want a number above 0, not "-1"`},
		{header + good + "G,M,1,bf16,1,gemm,1,,Inf\n", `:11: ms: want a number above 0, not "Inf"`},
		{header + good + "G,M,1,bf16,1,gemm,0,,1\n", `:11: x: want a number above 0, not "0"`},
		{header + good + "G,M,1,bf16,1,gemm,1e-310,,1\n", `:11: x: want a number of at least 1e-09, not "1e-310"`},
		{header + good + "G,M,1,bf16,1,decode_attention,1,1e-320,1\n", `:11: y: want a number of at least 1e-09, not "1e-320"`},
		{header + good + "G,M,1,bf16,1,gemm,1,,1e-320\n", `:11: ms: want a number of at least 1e-09, not "1e-320"`},
		{"gpu," + header + good, `:1: column "gpu" is there twice: want it once`},
		{header + good + "G,M,1,bf16,1,gemm,1,7,1\n", `:11: y: gemm has one argument: want nothing, not "7"`},
		{header + good + "G,M,1,bf16,1,decode_attention,1,,1\n", `:11: y: want a number of at least 0, not ""`},
		{header + good + "G,M,1,bf16,1,moe,1,,1\n", `:11: component: unknown "moe": want gemm`},
		{header + good + "G,M,1,bf16,1,gemm,1\n", "wrong number of fields"},
		{header + "G,M,1,bf16,1,gemm,1,,1\n", "tp 1, bf16: lm_head: no measurement"},
		{header + strings.Repeat("G,M,1,bf16,1,gemm,1,,1                                        \n", 1_300_000), "more than 64 MiB"},
	} {
		path := written(t, c.text, len(c.text) > 1<<20)
		_, err := Read(path, "g", "m", 0, "")
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, path)
	}
	_, err := Read(filepath.Join(t.TempDir(), "none.csv"), "g", "m", 0, "")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnknownHardwareIsNoted(t *testing.T) {
	m, err := Read(written(t, header+rows("TPU,Moon-1T,1,bf16,1", ""), false), "tpu", "moon", 0, "")
	require.NoError(t, err)
	assert.Equal(t, "the size of the KV cache of Moon-1T on TPU is not known: 262144 tokens are assumed; kv_cache_tokens sets it", m.Note)
	assert.Equal(t, 262144, m.Blocks*16)
	_, err = engine.New(engine.Config{Model: m, FlopsCounters: true, Workload: engine.Chat(1)})
	require.NoError(t, err)
}

// The cache sizes that vLLM itself reported, in tokens.
func TestCacheSizesAreThoseThatWereReported(t *testing.T) {
	path := filepath.Join(*shared, "profiles", "capacity.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the measurements are not here: %v; -shared names their folder", err)
	}
	other, err := Read(written(t, header+rows("G,M,1,bf16,1", ""), false), "g", "m", 0, "")
	require.NoError(t, err)
	compared := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if f[1] != "Llama-3.3-70B" && f[1] != "Llama-3.1-8B" {
			continue
		}
		card := engine.Card{GPU: f[0], Model: f[1], DType: f[2], TP: int(f[4][0] - '0')}
		want := 0
		for _, digit := range f[9] {
			want = want*10 + int(digit-'0')
		}
		got := engine.Measured("", card, other.Tables).Blocks * 16
		if f[3] == "fp8" {
			got *= 2 // Its cache has one byte per value, and the model's has two.
		}
		assert.InEpsilon(t, want, got, 0.04, line)
		compared++
	}
	assert.Equal(t, 5, compared)
}

// Every card of the measurements can be read, and its steps are the sums of its parts.
func TestEveryCardOfTheMeasurementsCanBeRead(t *testing.T) {
	path := components(t)
	cards := map[engine.Card]bool{}
	for _, line := range strings.Split(strings.TrimSpace(gunzip(t, path)), "\n")[1:] {
		f := strings.Split(line, ",")
		cards[engine.Card{GPU: f[0], Model: f[1], DType: f[3], TP: int(f[2][0] - '0')}] = true
	}
	require.Len(t, cards, 22)
	for card := range cards {
		m, err := Read(path, card.GPU, card.Model, card.TP, card.DType)
		require.NoError(t, err)
		assert.Empty(t, m.Note)
		m.StepSeconds, m.KVTokenSeconds = 0, 0
		for _, s := range measured(t, path, card).steps() {
			require.InEpsilon(t, s.ms/1000, m.StepTime(s.batch, engine.Nominal()), 0.002, "%v: %s", card, s.name)
		}
	}
}
