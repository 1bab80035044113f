package traffic

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func readText(text string) (*engine.Traffic, error) {
	return read(strings.NewReader(text), "FILE", "file", usual)
}

func packed(tb testing.TB, text string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

const openLoop = `arrival_s,prompt_tokens,output_tokens,prefix_blocks
0.5,1000,7,0-1
1,600,8,0 2
2.25,1024,9,4-5
`

func TestAnOpenLoopIsRead(t *testing.T) {
	want := &engine.Traffic{
		Name: "file", Span: 3.125, BlockTokens: 512,
		Arrivals: []engine.Arrival{
			{At: 0.5, Prompt: 1000, Output: 7, Prefix: []engine.BlockRun{{First: 0, Last: 1}}},
			{At: 1, Prompt: 600, Output: 8, Prefix: []engine.BlockRun{{First: 0, Last: 0}, {First: 2, Last: 2}}},
			{At: 2.25, Prompt: 1024, Output: 9, Prefix: []engine.BlockRun{{First: 4, Last: 5}}},
		},
	}
	got, err := readText(openLoop)
	require.NoError(t, err)
	assert.Equal(t, want, got)

	for name, text := range map[string]string{
		"other order, unknown columns": "x,prefix_blocks,output_tokens,prompt_tokens,arrival_s\na,0-1,7,1000,0.5\nb,0 2,8,600,1\n,4-5,9,1024,2.25\n",
		"spaces and carriage returns":  "\ufeffarrival_s, prompt_tokens, output_tokens, prefix_blocks\r\n 0.5, 1000, 7, 0-1\r\n\r\n1,600,8,0  2\r\n2.25,1024,9,4-5",
		"quotes":                       "\"arrival_s\",prompt_tokens,output_tokens,prefix_blocks\n0.5,1000,7,\"0-1\"\n\"1\",600,8,\"0 2\"\n2.25,1024,9,4-5\n",
		"floats":                       "arrival_s,prompt_tokens,output_tokens,prefix_blocks,client\n5e-1,1000.0,7.,0-1,\n1,600,8.00,0 2,0.0\n2.25,1024,9,4-5,0\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readText(text)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestPlainAndGzipFilesAreRead(t *testing.T) {
	folder := t.TempDir()
	for name, body := range map[string][]byte{
		"one.csv": []byte(openLoop), "one.csv.gz": packed(t, openLoop),
		"named-wrongly.gz": []byte(openLoop), "named-wrongly": packed(t, openLoop),
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, body, 0o600))
		got, err := Read(path)
		require.NoError(t, err, name)
		want, _, _ := strings.Cut(name, ".")
		assert.Equal(t, want, got.Name)
		assert.Len(t, got.Arrivals, 3)
	}
	_, err := Read(folder)
	assert.ErrorContains(t, err, "is a folder: want a CSV file")
	_, err = Read(filepath.Join(folder, "absent.csv"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAClosedLoopIsRead(t *testing.T) {
	got, err := readText(`conversation,seq,t_s,think_s,served_s,prompt_tokens,output_tokens,shared_prefix_tokens,prefix_blocks
7,0,0,0,5.2,200,15,130,1-3
9,0,0,0,,100,1,130,1
7,3,9,3.5,3.4,260,0,128,1-4
`)
	require.NoError(t, err)
	assert.Equal(t, &engine.Traffic{
		Name: "file", BlockTokens: 64,
		Conversations: []engine.Conversation{
			{Shared: 128, Turns: []engine.Turn{
				{Prompt: 200, Output: 15, Prefix: []engine.BlockRun{{First: 1, Last: 3}}},
				{Think: 3.5, Prompt: 260, Output: 1, Prefix: []engine.BlockRun{{First: 1, Last: 4}}},
			}},
			{Shared: 130, Turns: []engine.Turn{{Prompt: 100, Output: 1, Prefix: []engine.BlockRun{{First: 1, Last: 1}}}}},
		},
	}, got)
}

func TestMistakesAreNamed(t *testing.T) {
	const open, closed = "arrival_s,prompt_tokens,output_tokens\n0,1,1\n", "conversation,seq,think_s,prompt_tokens,output_tokens\n1,1,0,5,5\n"
	const blocks = "arrival_s,prompt_tokens,output_tokens,prefix_blocks\n0,100,1,1-2\n"
	for text, want := range map[string]string{
		"":                          "FILE is empty: want a header line with arrival_s",
		"\n \n":                     "FILE is empty",
		"a,b\n1,2\n":                "line 1: the header has no column arrival_s: want arrival_s, prompt_tokens, output_tokens",
		"arrival_s,prompt_tokens\n": "line 1: the header has no column output_tokens",
		"conversation,prompt_tokens,output_tokens\n": "line 1: the header has no column think_s: want conversation, think_s",
		"arrival_s,arrival_s,prompt_tokens\n":        "line 1: the column arrival_s is there twice",
		"arrival_s,prompt_tokens,output_tokens\n":    "FILE has a header and no request",
		open + "1,2\n":                                  "line 3: it has 2 fields and the header has 3",
		open + "1,2,3,4\n":                              "line 3: it has 4 fields",
		open + "NaN,2,3\n":                              `line 3, column arrival_s: "NaN" is not a time: want seconds`,
		open + "+Inf,2,3\n":                             `"+Inf" is not a time`,
		open + "-1,2,3\n":                               `"-1" is not a time`,
		open + "1700000000,2,3\n":                       `want seconds since the start of the trace`,
		open + ",2,3\n":                                 `column arrival_s: "" is not a time`,
		open + "2,2,3\n\n1,2,3\n":                       "line 5, column arrival_s: 1 is before 2 in the row above: want the rows in the order of their times",
		open + "1,-2,3\n":                               `line 3, column prompt_tokens: "-2" is not a number of tokens: want a whole number from 0 to 10000000`,
		open + "1,2.5,3\n":                              `column prompt_tokens: "2.5" is not a number of tokens`,
		open + "1,2,99999999999999999999\n":             `column output_tokens: "99999999999999999999" is not a number of tokens`,
		open + "1,2,10000001\n":                         `column output_tokens: "10000001" is not a number of tokens`,
		open + "1,2,\"3\n":                              "line 3: a quoted field does not end in its line",
		open + "1,2," + strings.Repeat("x", 100) + "\n": `"` + strings.Repeat("x", 40) + `"… is not a number of tokens`,
		strings.Replace(open, "output_tokens\n0,1,1", "output_tokens,client\n0,1,1,2147483648", 1): `line 2, column client: "2147483648" is not a number: want a whole number from 0 to 2147483647`,
		blocks + "1,100,1,1-2147483648\n": `line 3, column prefix_blocks: "1-2147483648" is not a block or a run`,
		blocks + "1,100,1,7-6\n":          `"7-6" is not a block`,
		blocks + "1,100,1,-6\n":           `"-6" is not a block`,
		blocks + "1,100,1,6-\n":           `"6-" is not a block`,
		blocks + "1,100,1,1.5\n":          `"1.5" is not a block`,
		blocks + "1,100,1,0-2147483647\n": "line 3, column prefix_blocks: there are more blocks than the 100 tokens of the prompt",
		blocks + "1,100,1,1-9\n":          "line 3, column prefix_blocks: a prompt of 100 tokens has 9 blocks, which fits no size of blocks that the rows above have",
		closed + "1,1,0,5,5\n":            "line 3, column seq: 1 does not come after 1 of the same conversation",
		closed + "x,2,0,5,5\n":            `line 3, column conversation: "x" is not a number`,
		closed + ",2,0,5,5\n":             `line 3, column conversation: "" is not a number`,
		closed + "1,,0,5,5\n":             `line 3, column seq: "" is not a number`,
		closed + "1,2,nan,5,5\n":          `line 3, column think_s: "nan" is not a time`,
	} {
		_, err := readText(text)
		if assert.ErrorContains(t, err, want, "%q", text) {
			assert.True(t, strings.HasPrefix(err.Error(), "trace: FILE"), err)
			assert.NotContains(t, err.Error(), "\n")
		}
	}
}

// endless is a source of one byte that never ends.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestTheCostOfAFileIsBounded(t *testing.T) {
	const header = "arrival_s,prompt_tokens,output_tokens\n"
	small := limits{unpacked: 2 << 20, line: 1 << 10, kept: 1 << 20}
	_, err := read(endless('1'), "FILE", "file", small)
	assert.ErrorContains(t, err, "line 1: the line is longer than 1024 bytes")
	_, err = read(endless('\n'), "FILE", "file", small)
	assert.ErrorContains(t, err, "the file has more than 2 MB unpacked: cut it into shorter windows")
	// 2 MB of rows of six bytes would be 16 MB of requests.
	_, err = read(strings.NewReader(header+strings.Repeat("0,1,1\n", 30000)), "FILE", "file", small)
	assert.ErrorContains(t, err, "line 21847: the requests up to here take more than 1 MB of memory")
	// Runs count, too.
	row := "0,100000,1," + strings.Repeat("1 ", 200) + "\n"
	_, err = read(strings.NewReader("arrival_s,prompt_tokens,output_tokens,prefix_blocks\n"+strings.Repeat(row, 1000)), "FILE", "file", small)
	assert.ErrorContains(t, err, "take more than 1 MB of memory")
	// So do conversations of one turn each.
	var b strings.Builder
	b.WriteString("conversation,think_s,prompt_tokens,output_tokens\n")
	for i := range 10000 {
		b.WriteString(strings.Repeat("1", i/1000+1)[:1])
		b.WriteString(strings.TrimPrefix(string(appendInts(nil, int32(i))), ","))
		b.WriteString(",0,1,1\n")
	}
	_, err = read(strings.NewReader(b.String()), "FILE", "file", small)
	assert.ErrorContains(t, err, "take more than 1 MB of memory")
}

func TestAGzipBombEndsAtTheBound(t *testing.T) {
	bomb := packed(t, "arrival_s,prompt_tokens,output_tokens\n"+strings.Repeat("\n", 64<<20))
	require.Less(t, len(bomb), 1<<17)
	_, err := read(bytes.NewReader(bomb), "FILE", "file", limits{unpacked: 8 << 20, line: 1 << 10, kept: 1 << 20})
	assert.ErrorContains(t, err, "more than 8 MB unpacked")
}

func TestACutFileIsNotReadAsAShortOne(t *testing.T) {
	whole := packed(t, openLoop+strings.Repeat("3,1000,7,0-1\n", 5000))
	for _, n := range []int{5, 20, len(whole) - 4} {
		_, err := read(bytes.NewReader(whole[:n]), "FILE", "file", usual)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1
	_, err := read(bytes.NewReader(broken), "FILE", "file", usual)
	assert.ErrorIs(t, err, gzip.ErrChecksum)
	_, err = read(io.MultiReader(strings.NewReader(openLoop), failing{}), "FILE", "file", usual)
	assert.ErrorContains(t, err, "FILE: cannot be read to its end, it stops after line 4: disk is gone")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("disk is gone") }

func TestTheSizeOfBlocksFitsAllRows(t *testing.T) {
	type row struct{ prompt, blocks int }
	for name, c := range map[string]struct {
		rows []row
		want int
	}{
		"no blocks":               {[]row{{100, 0}, {700, 0}}, 0},
		"the last one counts":     {[]row{{6758, 14}, {7322, 15}, {2290, 5}, {512, 1}, {513, 2}}, 512},
		"only whole ones":         {[]row{{15818, 247}, {16003, 250}, {64, 1}, {63, 0}, {127, 1}}, 64},
		"no power of two":         {[]row{{200, 2}, {201, 3}, {100, 1}}, 100},
		"only whole ones of 50":   {[]row{{49, 0}, {99, 1}, {100, 2}, {149, 2}}, 50},
		"one row, the likely":     {[]row{{1000, 2}}, 512},
		"an empty prompt's share": {[]row{{10, 0}, {48, 3}, {47, 2}}, 16},
	} {
		size := newBlockSize()
		for _, r := range c.rows {
			assert.True(t, size.add(r.prompt, r.blocks), "%s: %v", name, r)
		}
		assert.Equal(t, c.want, size.result(), name)
	}
	size := newBlockSize()
	assert.True(t, size.add(1024, 2))
	assert.False(t, size.add(1024, 4))
}

func TestRequestsOfACoarseTickAreSpread(t *testing.T) {
	times := func(text string) []float64 {
		var b strings.Builder
		b.WriteString("arrival_s,prompt_tokens,output_tokens\n")
		for _, at := range strings.Fields(text) {
			b.WriteString(at + ",5,5\n")
		}
		got, err := readText(b.String())
		require.NoError(t, err)
		all := make([]float64, 0, len(got.Arrivals))
		for _, a := range got.Arrivals {
			all = append(all, a.At)
		}
		return all
	}
	assert.InDeltaSlice(t, []float64{0, 1, 2, 3, 4.5, 6, 7, 8}, times("0 0 0 3 3 6 6 6"), 1e-9)
	// A clock of milliseconds, and a pause of several ticks: over the tick, not the pause.
	assert.InDeltaSlice(t, []float64{0, 1.4995, 2.999, 6, 7.4995, 18, 19.4995}, times("0 0 2.999 6 6 18 18"), 0.002)
	assert.InDeltaSlice(t, []float64{0, 0.5, 1, 1.5, 7}, times("0 0 1 1 7"), 1e-9)
	// A fine clock: equal times are requests that came together.
	assert.Equal(t, []float64{0.001, 0.001, 0.002, 3}, times("0.001 0.001 0.002 3"))
	assert.Equal(t, []float64{0, 0, 1.3, 2.4}, times("0 0 1.3 2.4"))
	assert.Equal(t, []float64{5, 5}, times("5 5"))
}

func TestTheSpanIsThatOfTheWindow(t *testing.T) {
	at := func(times ...float64) []engine.Arrival {
		all := make([]engine.Arrival, 0, len(times))
		for _, v := range times {
			all = append(all, engine.Arrival{At: v})
		}
		return all
	}
	assert.Equal(t, 11.0, span(at(10)))
	assert.Equal(t, 15.0, span(at(0, 5, 10)))
	assert.Equal(t, 86400.0, span(at(0, 43000, 86399.9)))
	assert.Equal(t, 3600.0, span(at(0, 1800, 3600))-1800, "a request at the full hour is inside")
	var second []float64
	for i := range 3502 {
		second = append(second, float64(i))
	}
	assert.Equal(t, 3502.0, span(at(second...)), "98 s before the full hour is not near it")
	assert.Equal(t, 1.0, span(at(0)))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(openLoop))
	f.Add([]byte("conversation,seq,think_s,prompt_tokens,output_tokens,shared_prefix_tokens,prefix_blocks\n1,0,0,200,5,64,1-3\n2,0,0,64,5,64,1\n1,1,2.5,260,5,64,1-4\n"))
	f.Add([]byte("arrival_s,prompt_tokens,output_tokens,client\n0,5,5,1\n0,5,5,2\n3,5,5,1\n"))
	f.Add(packed(f, openLoop))
	f.Add([]byte("arrival_s,prompt_tokens,output_tokens,prefix_blocks\n-0,\"1\",1,\n"))
	small := limits{unpacked: 1 << 20, line: 1 << 16, kept: 1 << 20}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := read(bytes.NewReader(body), "FILE", "file", small)
		if err != nil {
			require.Nil(t, got)
			return
		}
		last := 0.0
		for _, a := range got.Arrivals {
			require.GreaterOrEqual(t, a.At, last)
			require.GreaterOrEqual(t, got.Span, a.At)
			require.Positive(t, a.Prompt)
			require.Positive(t, a.Output)
			last = a.At
		}
		for _, c := range got.Conversations {
			require.NotEmpty(t, c.Turns)
		}
		require.NotEqual(t, len(got.Arrivals) > 0, len(got.Conversations) > 0)
		// What was read is written and read back.
		var b bytes.Buffer
		require.NoError(t, Write(&b, got))
		again, err := read(&b, "FILE", "file", usual)
		require.NoError(t, err)
		require.Len(t, again.Arrivals, len(got.Arrivals))
		require.Len(t, again.Conversations, len(got.Conversations))
	})
}
