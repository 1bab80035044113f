package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

func example() *Run {
	r := &Run{
		Play: story.Play{
			Stories: []string{"hang"}, Server: story.Server{Name: "plain", Flags: []string{"--x"}, Adapters: 2},
			Processor: map[string]any{"window": "1m"},
			Phases: []story.Phase{
				{Name: "steady", For: time.Minute, Load: 0.35, Prompt: story.Lengths{Mean: 128, Sigma: 0.5, Most: 3500}},
				{Name: "hang/hang", For: 75 * time.Second, Fault: &story.Fault{Do: "slow", Of: "worker1", Share: 0.25}},
			},
		},
		Version: "0.32.0", Simulated: true, Capacity: 3.25, Seed: 1<<64 - 1,
		Began: time.Date(2026, 11, 28, 12, 0, 0, 123456789, time.UTC),
		Spans: []Span{{0, 60.01}, {60.02, 135.5}},
		Sent: []judge.Sent{
			{At: 0.25, Tokens: judge.Times{0.1, 0.12, 0.2}, End: 0.2, How: judge.Answered, Status: 200, Prompt: 120, Cached: 16, Output: 3},
			{At: 70.5, End: 8, How: judge.TimedOut, Phase: 1, Prompt: 90},
		},
		Live: []Record{{At: 100, Level: "WARN", Condition: "stalled", Text: "it is stalled"}},
	}
	for i := range 13 {
		s := Scrape{At: float64(5 * i), Status: 200, Body: fmt.Appendf(nil, "vllm:requests %d\n", i), Load: `{"server_load":1}`, Health: 200}
		switch i {
		case 3:
			s = Scrape{At: 15, Failure: "timeout"} // It did not answer.
		case 10:
			s.Body = nil // It answered nothing.
		}
		r.Scrapes = append(r.Scrapes, s)
	}
	return r
}

func write(t *testing.T, r *Run) (path string, raw []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.tar.zst")
	require.NoError(t, r.Write(path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return path, raw
}

func TestARunIsReadAsItWasWritten(t *testing.T) {
	path, _ := write(t, example())
	got, err := Read(path)
	require.NoError(t, err)
	assert.Equal(t, example(), got)
	assert.InDelta(t, 135.5, got.End(), 0)
	assert.Equal(t, judge.Usual{First: 0.1, Token: 0.05}, got.Usual())

	path, _ = write(t, &Run{})
	got, err = Read(path)
	require.NoError(t, err)
	assert.Equal(t, &Run{}, got)
	assert.Zero(t, got.End())
	assert.Error(t, example().Write(filepath.Join(t.TempDir(), "no", "run.tar.zst")))
}

func TestATruncatedRunIsAnErrorThatNamesTheFile(t *testing.T) {
	path, raw := write(t, example())
	for n := range raw {
		require.NoError(t, os.WriteFile(path, raw[:n], 0o600))
		_, err := Read(path)
		require.ErrorContains(t, err, path, "%d bytes of %d", n, len(raw))
	}
	_, err := Read(path + ".none")
	require.ErrorContains(t, err, path+".none")
}

// A damaged byte is an error, or makes no difference: some bits of the format mean nothing.
func TestADamagedRunIsAnErrorThatNamesTheFile(t *testing.T) {
	path, raw := write(t, example())
	refused := 0
	for i := range raw {
		damaged := bytes.Clone(raw)
		damaged[i] ^= 0x55
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		got, err := Read(path)
		if err != nil {
			require.ErrorContains(t, err, path)
			refused++
			continue
		}
		require.Equal(t, example(), got, "byte %d of %d", i, len(raw))
	}
	assert.Greater(t, refused, len(raw)*9/10)
}

func TestWhatIsNoRunIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tar.zst")
	for name, c := range map[string]struct {
		parts [][2]string
		says  string
	}{
		"nothing":              {nil, "run.json"},
		"no requests":          {[][2]string{{"run.json", "{}"}}, "sent.jsonl"},
		"something else":       {[][2]string{{"run.json", "{}"}, {"readme", ""}}, "readme: no part of a run"},
		"a scrape too many":    {[][2]string{{"run.json", "{}"}, {"sent.jsonl", ""}, {"00000.txt", "x"}}, "there are 0 scrapes"},
		"a scrape before all":  {[][2]string{{"run.json", `{"scrapes":[{}]}`}, {"-1.txt", "x"}}, "no part of a run"},
		"no JSON":              {[][2]string{{"run.json", "{"}}, "run.json"},
		"no JSON in a request": {[][2]string{{"run.json", "{}"}, {"sent.jsonl", "{}\n{"}}, "sent.jsonl"},
		"more phases":          {[][2]string{{"run.json", `{"spans":[{"From":0,"To":1}]}`}, {"sent.jsonl", ""}}, "1 phases were played of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var raw bytes.Buffer
			compressor, err := zstd.NewWriter(&raw)
			require.NoError(t, err)
			require.NoError(t, archive(compressor, c.parts))
			require.NoError(t, compressor.Close())
			require.NoError(t, os.WriteFile(path, raw.Bytes(), 0o600))
			_, err = Read(path)
			require.ErrorContains(t, err, path)
			assert.ErrorContains(t, err, c.says)
		})
	}
}
