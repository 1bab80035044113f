package realruns

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder writes files into a new folder; those with names that end in .gz are compressed.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		raw := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			_, err := w.Write(raw)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			raw = packed.Bytes()
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o644))
	}
	return dir
}

const (
	index    = "name,model,vllm,kv_cache_tokens,label,note\none,A model,0.15.0,1000,steady,\"a, b\"\n"
	header   = "t_s,kv_usage_pct,running,waiting,prompt_tokens_total,generation_tokens_total,prefix_cache_queries_total,prefix_cache_hits_total,preemptions_total,requests_finished_total\n"
	rows     = header + "0.00,0,0,0,0,0,0,0,0,0\n1.00,50.5,2,1,100,10,120,20,3,1\n"
	requests = "sent_s,turn,prompt_tokens,output_tokens,ttft_ms,tpot_ms,latency_ms\n0.50,1,30,5,100.0,50.0,300\n0.10,1,70,2,200.0,10.0,210\n"
)

func TestRecordingsOfAnIndexAreRead(t *testing.T) {
	dir := folder(t, map[string]string{"index.csv": index, "one.csv.gz": rows, "one-requests.csv": requests})
	all, err := ReadFolder(dir, "0.9.0")
	require.NoError(t, err)
	require.Len(t, all, 1)
	r := all[0]
	assert.Equal(t, []any{"one", "A model", "0.15.0", "steady", "a, b", 1000.0}, []any{r.Name, r.Model, r.Version, r.Label, r.Note, r.Capacity})
	assert.Equal(t, []Row{{}, {At: 1, Usage: 0.505, Running: 2, Waiting: 1, Prompt: 100, Generated: 10, Queries: 120, Hits: 20, Preempted: 3, Finished: 1}}, r.Rows)
	assert.Equal(t, Counts{Usage: true, Lookups: true, Preemptions: true, Finished: true}, r.Counts)
	require.Len(t, r.Requests, 2, "in the order of the first tokens")
	assert.InDelta(t, 0.3, r.Requests[0].First, 1e-9)
	assert.InDelta(t, 0.31, r.Requests[0].Last, 1e-9)
	assert.InDelta(t, 0.2, r.Requests[0].timeToFirstToken(), 1e-9)
	assert.InDelta(t, 0.05, r.Requests[1].gap(), 1e-9, "0.2 s for four gaps")
	assert.True(t, math.IsNaN(r.Requests[0].Queued))
}

func TestRecordingsWithoutAnIndexAreRead(t *testing.T) {
	dir := folder(t, map[string]string{
		"b-series.csv":      "t_s,prompt_tokens_per_s,generation_tokens_per_s,running,waiting,kv_usage_pct\n1.0,30,4,1,0,\n3.0,10,2,1,0,\n",
		"b-requests.csv":    "arrival_s,prompt_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s\n0,50,8,0.1,0.2,0.5,2\n",
		"a-series.csv.gz":   rows,
		"notes.txt":         "other files are left alone",
		"c-requests.csv.gz": "broken, and of no recording",
	})
	all, err := ReadFolder(dir, "0.19.0")
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Equal(t, "a", all[0].Name)
	r := all[1]
	assert.Equal(t, "0.19.0", r.Version)
	// 30 a second for the first, then 10 a second for two.
	assert.Equal(t, []float64{30, 50, 4, 8}, []float64{r.Rows[0].Prompt, r.Rows[1].Prompt, r.Rows[0].Generated, r.Rows[1].Generated})
	assert.True(t, math.IsNaN(r.Rows[0].Usage))
	assert.Equal(t, Counts{Phases: true}, r.Counts)
	assert.InDelta(t, 0.2, r.Requests[0].Scheduled, 0)
}

func TestAFolderWithoutRecordingsIsAbsent(t *testing.T) {
	for _, dir := range []string{
		filepath.Join(t.TempDir(), "no", "folder"), t.TempDir(),
		folder(t, map[string]string{"index.csv": "name,label\n"}),
	} {
		_, err := ReadFolder(dir, "")
		assert.ErrorIs(t, err, ErrAbsent, dir)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	line := func(fields string) string { return header + "0,0,0,0,0,0,0,0,0,0\n" + fields + "\n" }
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a path in the index":   {map[string]string{"index.csv": "name\n../one\n"}, "is not one of letters"},
		"a hidden name":         {map[string]string{"index.csv": "name\n.one\n"}, "is not one of letters"},
		"a name twice":          {map[string]string{"index.csv": "name\none\none\n", "one.csv": rows}, "is there twice"},
		"an index of nothing":   {map[string]string{"index.csv": ""}, "line 1"},
		"a series that is gone": {map[string]string{"index.csv": index}, "one.csv"},
		"no number":             {map[string]string{"a-series.csv": line("1,0,x,0,0,0,0,0,0,0")}, `line 3: running is "x", want a number`},
		"not a number":          {map[string]string{"a-series.csv": line("1,0,NaN,0,0,0,0,0,0,0")}, "want a number"},
		"infinity":              {map[string]string{"a-series.csv": line("1,0,0,0,Inf,0,0,0,0,0")}, "want a number"},
		"too large":             {map[string]string{"a-series.csv": line("1,0,0,0,1e300,0,0,0,0,0")}, "want a number"},
		"a negative counter":    {map[string]string{"a-series.csv": line("1,0,0,0,-1,0,0,0,0,0")}, "prompt_tokens_total is below 0"},
		"a negative gauge":      {map[string]string{"a-series.csv": line("1,0,-1,0,0,0,0,0,0,0")}, "a gauge is not possible"},
		"more than a full KV":   {map[string]string{"a-series.csv": line("1,101,0,0,0,0,0,0,0,0")}, "a gauge is not possible"},
		"time that stands":      {map[string]string{"a-series.csv": line("0,0,0,0,0,0,0,0,0,0")}, "is not after"},
		"a time of years":       {map[string]string{"a-series.csv": line("1e9,0,0,0,0,0,0,0,0,0")}, "is not between 0 and a week"},
		"a short row":           {map[string]string{"a-series.csv": line("1,0")}, "wrong number of fields"},
		"one row":               {map[string]string{"a-series.csv": header + "0,0,0,0,0,0,0,0,0,0\n"}, "want two rows or more"},
		"a column is missing":   {map[string]string{"a-series.csv": "t_s,running\n0,0\n"}, "the column waiting is missing"},
		"no tokens":             {map[string]string{"a-series.csv": "t_s,running,waiting\n0,0,0\n1,0,0\n"}, "want the columns prompt_tokens_total"},
		"first before sent": {map[string]string{
			"a-series.csv": rows, "a-requests.csv": "sent_s,prompt_tokens,output_tokens,ttft_ms,latency_ms\n0,1,2,-5,10\n",
		}, "not in order: sent"},
		"scheduled before queued": {map[string]string{
			"a-series.csv":   rows,
			"a-requests.csv": "arrival_s,prompt_tokens,output_tokens,queued_s,scheduled_s,first_token_s,last_token_s\n0,1,2,0.5,0.4,1,2\n",
		}, "not in order: queued"},
		"no output": {map[string]string{
			"a-series.csv": rows, "a-requests.csv": "sent_s,prompt_tokens,output_tokens,ttft_ms,latency_ms\n0,1,0,5,10\n",
		}, "no output token"},
		"a page of zeros": {map[string]string{"a-series.csv.gz": header + strings.Repeat("\x00", maxBytes+1)}, "has more than 64 MB"},
		"too many rows":   {map[string]string{"index.csv": "name\n" + strings.Repeat("x\n", 2)}, "is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFolder(folder(t, test.files), "")
			require.ErrorContains(t, err, test.want)
			assert.NotErrorIs(t, err, ErrAbsent)
		})
	}
}

func TestATableHasALimitOfRows(t *testing.T) {
	dir := folder(t, map[string]string{"x.csv": "a\n" + strings.Repeat("1\n", 5)})
	rows := 0
	err := readTable(filepath.Join(dir, "x.csv"), 4, nil, func(*record) error { rows++; return nil })
	require.ErrorContains(t, err, "has more than 4 rows")
	assert.Equal(t, 4, rows)
	require.NoError(t, readTable(filepath.Join(dir, "x.csv"), 5, nil, func(*record) error { return nil }))
}

func TestADamagedArchiveAndAFolderAreNoFiles(t *testing.T) {
	dir := folder(t, map[string]string{"a-series.csv.gz": rows})
	path := filepath.Join(dir, "a-series.csv.gz")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw[:len(raw)-9], 0o644))
	_, err = ReadFolder(dir, "")
	require.ErrorContains(t, err, "unexpected EOF")
	require.NoError(t, os.WriteFile(path, []byte("plain text"), 0o644))
	_, err = ReadFolder(dir, "")
	require.ErrorContains(t, err, "gzip")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err = ReadFolder(dir, "")
	require.ErrorContains(t, err, "is not a file")
}

// What an index says is printed to a terminal and into a page.
func TestTextsHaveNoControlCharacters(t *testing.T) {
	dir := folder(t, map[string]string{
		"index.csv": "name,label\none,\"a\x1b[31m\nb\xff\"\n", "one.csv": rows,
	})
	all, err := ReadFolder(dir, "")
	require.NoError(t, err)
	assert.Equal(t, "a [31m b?", all[0].Label)
}
