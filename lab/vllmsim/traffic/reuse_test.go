package traffic

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// rowsOf reads a published trace without the reader under test, as maps of columns.
func rowsOf(t *testing.T, name string) []map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(*sharedFolder, "traces", name+".csv.gz"))
	if err != nil {
		t.Skipf("no published traces: %v; -shared names another folder", err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	records, err := csv.NewReader(unzipped).ReadAll()
	require.NoError(t, err)
	var out []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, column := range records[0] {
			row[column] = record[i]
		}
		out = append(out, row)
	}
	return out
}

func count(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// numbersIn are the numbers of a prompt's blocks, one by one.
func numbersIn(t *testing.T, text string) (out []int) {
	t.Helper()
	for _, run := range strings.Fields(text) {
		first, last, isRun := strings.Cut(run, "-")
		if !isRun {
			last = first
		}
		for n := count(t, first); n <= count(t, last); n++ {
			out = append(out, n)
		}
	}
	return out
}

// known returns how many tokens of a prompt are in full blocks that a prompt before it began
// with, without the last token, which is always computed, and notes the full blocks of this one.
func known(seen map[place]bool, blocks []int, prompt, size int) int {
	same, leading := 0, true
	for i, n := range blocks {
		if (i+1)*size > prompt {
			break
		}
		leading = leading && seen[place{i, n}]
		if leading && (i+1)*size < prompt {
			same++
		}
		seen[place{i, n}] = true
	}
	return same * size
}

// place is a block's position in the prompt and its number: equal ones are equal content up to
// the end of the block.
type place struct{ position, number int }

// An engine whose cache forgets nothing finds of a published trace what the trace itself
// says, request by request, and together 37 % of the tokens.
func TestAnEngineFindsTheReuseOfThePublishedConversations(t *testing.T) {
	race.SkipSequential(t)
	const name = "mooncake-conversation"
	rows := rowsOf(t, name)
	whole := trace(t, name)
	require.Len(t, whole.Arrivals, len(rows))
	short := *whole
	short.Arrivals = append([]engine.Arrival(nil), whole.Arrivals...)
	for i := range short.Arrivals {
		require.Equal(t, count(t, rows[i]["prompt_tokens"]), int(short.Arrivals[i].Prompt), "row %d", i)
		require.Equal(t, max(1, count(t, rows[i]["output_tokens"])), int(short.Arrivals[i].Output), "row %d", i)
		short.Arrivals[i].Output = 1
	}
	s, err := engine.New(engine.Config{
		Model: engine.Llama8B(), Blocks: 400_000, BlockSize: 512, KeepOutcomes: true,
		// So slow that each request finds all those before it.
		Workload: engine.Workload{Traffic: &short, Speed: 0.01},
	})
	require.NoError(t, err)
	s.AdvanceTo(short.Span*100 - 1e-3)
	found := make([]int, len(rows))
	outcomes := s.Outcomes()
	require.Len(t, outcomes, len(rows))
	for _, o := range outcomes {
		found[o.ID] = o.Cached
	}
	seen := map[place]bool{}
	all, hits, differ := 0.0, 0.0, 0
	for i, row := range rows {
		prompt := count(t, row["prompt_tokens"])
		all += float64(prompt)
		hits += float64(found[i])
		if found[i] != known(seen, numbersIn(t, row["prefix_blocks"]), prompt, 512) {
			differ++
		}
	}
	assert.Zero(t, differ, "requests of %d that find something else", len(rows))
	assert.InDelta(t, 0.37, hits/all, 0.015)
	t.Logf("%.2f %% of the prompt tokens", 100*hits/all)
}

// The same for each conversation with the coding assistant: 96 % of its tokens are in a turn
// before it.
func TestAnEngineFindsTheReuseWithinAConversation(t *testing.T) {
	race.SkipSequential(t)
	const name = "coding-assistant"
	rows := map[string][]map[string]string{}
	var order []string
	for _, row := range rowsOf(t, name) {
		id := row["conversation"]
		if rows[id] == nil {
			order = append(order, id)
		}
		rows[id] = append(rows[id], row)
	}
	conversations := trace(t, name).Conversations
	require.Len(t, conversations, len(order))
	all, hits, differ := 0.0, 0.0, 0
	for i, id := range order {
		if i%3 != 0 {
			continue // A third of them is enough.
		}
		talk := engine.Conversation{Turns: append([]engine.Turn(nil), conversations[i].Turns...)}
		require.Len(t, talk.Turns, len(rows[id]))
		for j := range talk.Turns {
			talk.Turns[j].Output = 1
		}
		s, err := engine.New(engine.Config{
			Model: engine.Llama8B(), BlockSize: 64, Blocks: 20_000, KeepOutcomes: true, MaxModelLen: 1 << 17,
			Workload: engine.Workload{
				Clients: 1, ThinkMost: 0.001,
				Traffic: &engine.Traffic{Name: id, Conversations: []engine.Conversation{talk}, BlockTokens: 64},
			},
		})
		require.NoError(t, err)
		// The client begins in the middle, so its second round is the first whole one.
		found := make([]int, len(talk.Turns))
		for done := false; !done; {
			s.AdvanceTo(s.Now() + 10)
			for _, o := range s.Outcomes() {
				switch turn, round := o.ID&0xfff, o.ID>>12&0xffff; round {
				case 1:
					found[turn] = o.Cached
				case 2:
					done = true
				}
			}
		}
		seen := map[place]bool{}
		for j, row := range rows[id] {
			prompt := count(t, row["prompt_tokens"])
			all += float64(prompt)
			hits += float64(found[j])
			if found[j] != known(seen, numbersIn(t, row["prefix_blocks"]), min(prompt, 1<<17-1), 64) {
				differ++
			}
		}
	}
	assert.Zero(t, differ, "requests that find something else")
	assert.InDelta(t, 0.96, hits/all, 0.015)
	t.Logf("%.2f %% of the prompt tokens", 100*hits/all)
}
