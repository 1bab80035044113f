//go:build linux

package real

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// workers are the states of the workers of a pretended server; a real one may run beside it.
func workers(noted string) (out []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		title, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		stat, _ := os.ReadFile(filepath.Join(p, "stat"))
		if _, rest, _ := strings.Cut(string(stat), ") "); rest != "" && bytes.HasPrefix(title, []byte("VLLM::Worker")) && bytes.Contains(environment, []byte(noted)) {
			out = append(out, rest[:1])
		}
	}
	return out
}

// played has a steady phase, and one with a fault; both are short.
func played(f story.Fault) *story.Play {
	lengths := story.Lengths{Mean: 3, Most: 9}
	return &story.Play{Stories: []string{"one"}, Phases: []story.Phase{
		{Name: "steady", For: time.Second, Rate: 20, Prompt: lengths, Output: lengths},
		{Name: "one/fault", For: 2 * time.Second, Rate: 10, Prompt: lengths, Output: lengths, Fault: &f},
	}}
}

// heard keeps what is said, and the workers' states when the last phase is said.
type heard struct {
	bytes.Buffer
	noted   string
	workers []string
}

func (h *heard) Write(line []byte) (int, error) {
	h.workers = workers(h.noted)
	return h.Buffer.Write(line)
}

func TestAPlayKeepsWhatItsClientsAndItsLooksSaw(t *testing.T) {
	o, _, noted := pretended(t)
	said := &heard{noted: noted}
	o.Say, o.Seed = said, 3
	play := played(story.Fault{Do: "stop", Of: "worker"})
	play.Phases = append(play.Phases, story.Phase{Name: "after", For: time.Second})
	r, err := Play(t.Context(), play, o)
	require.NoError(t, err)
	assert.NotEmpty(t, said.workers, "the server still runs")
	assert.NotContains(t, said.workers, "T", "the fault is over")
	assert.Empty(t, workers(noted), "the server has ended")
	assert.Equal(t, []any{"9", uint64(3), "one/fault"}, []any{r.Version, r.Seed, r.Play.Phases[1].Name})
	assert.Contains(t, said.String(), "one/fault for 2s")
	require.Len(t, r.Spans, 3)
	assert.GreaterOrEqual(t, r.Spans[0].To-r.Spans[0].From, 1.0)
	assert.GreaterOrEqual(t, r.Spans[1].To-r.Spans[1].From, 2.0)
	assert.GreaterOrEqual(t, r.Spans[1].From, r.Spans[0].To)
	require.NotEmpty(t, r.Scrapes)
	assert.Equal(t, 404, r.Scrapes[0].Status, "this server has no metrics")
	phases := map[int]int{}
	for _, s := range r.Sent {
		assert.Equal(t, judge.Answered, s.How)
		phases[s.Phase]++
	}
	assert.Len(t, phases, 2)
}

func TestAPlayThatFailsKeepsWhatWasSeenAndLeavesNothingBehind(t *testing.T) {
	o, _, noted := pretended(t)
	o.Say = &bytes.Buffer{}
	r, err := Play(t.Context(), played(story.Fault{Do: "stop", Of: "core"}), o)
	require.ErrorContains(t, err, `no process "core"`)
	require.NotNil(t, r)
	assert.Len(t, r.Spans, 1)
	assert.NotEmpty(t, r.Scrapes)
	assert.Empty(t, workers(noted))
}

// A story is broken off while a process stands still.
func TestAPlayThatIsBrokenOffLeavesNoProcessThatStands(t *testing.T) {
	o, _, noted := pretended(t)
	o.Say = &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := played(story.Fault{Do: "stop", Of: "worker"})
	p.Phases[1].For = time.Hour
	done := make(chan error, 1)
	go func() {
		r, err := Play(ctx, p, o)
		assert.NotEmpty(t, r.Scrapes)
		done <- err
	}()
	require.Eventually(t, func() bool { s := workers(noted); return len(s) == 1 && s[0] == "T" }, 2*time.Minute, 10*time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	assert.Empty(t, workers(noted))
}
