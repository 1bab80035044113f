package soak

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// get reads a page of a server within a second.
func get(t *testing.T, url string) (status int, body string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// noted waits until the ledger has so many answers: a server notes one after the client has it.
func noted(t *testing.T, l *ledger, n int) []answer {
	t.Helper()
	var answers []answer
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		answers = slices.Clone(l.answers)
		return len(answers) >= n
	}, 10*time.Second, time.Millisecond)
	require.Len(t, answers, n)
	return answers
}

func newTestServers(t *testing.T, targets int) (*servers, *ledger) {
	t.Helper()
	l := newLedger()
	f, err := newServers(testdata, t.TempDir(), 1, l)
	require.NoError(t, err)
	require.NoError(t, f.start(t.Context(), targets))
	t.Cleanup(f.close)
	return f, l
}

func TestOnlyWholeAnswersAreNoted(t *testing.T) {
	f, l := newTestServers(t, 1)
	target := f.active[0]
	url := "http://" + target.addr + "/metrics"
	status, body, err := get(t, url)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	answers := noted(t, l, 1)
	assert.InDelta(t, answers[0].id, value(t, body, servedFamily), 0)
	assert.InDelta(t, answers[0].tokens, value(t, body, tokensFamily), 0)
	assert.False(t, answers[0].settled)

	for _, m := range []mode{hanging, failing, garbage, resetting, cutting} {
		target.become(m)
		status, _, err := get(t, url)
		switch m {
		case failing:
			assert.Equal(t, http.StatusInternalServerError, status)
		case garbage:
			assert.Equal(t, http.StatusOK, status)
		default:
			require.Error(t, err, m)
		}
	}

	target.reset()
	for range 3 {
		_, body, err = get(t, url)
		require.NoError(t, err)
	}
	answers = noted(t, l, 4)
	assert.False(t, answers[2].settled)
	assert.True(t, answers[3].settled)
	assert.Less(t, answers[1].tokens, answers[2].tokens, "the counters grow")
	assert.InDelta(t, target.template.Value(tokensFamily, 0), answers[1].tokens, 0, "they began again")
	assert.InDelta(t, float64(time.Now().Unix()), value(t, body, "process_start_time_seconds"), 5)
}

func TestARestartedServerHasItsAddressAgain(t *testing.T) {
	f, l := newTestServers(t, 1)
	url := "http://" + f.active[0].addr + "/metrics"
	f.disturb(t.Context(), refusing, 100*time.Millisecond)
	_, _, err := get(t, url)
	require.Error(t, err)
	require.Len(t, l.windows, 1)
	assert.Equal(t, f.active[0].addr, l.windows[0].target)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		status, _, err := get(t, url)
		require.NoError(c, err)
		assert.Equal(c, http.StatusOK, status)
	}, 10*time.Second, 20*time.Millisecond)
}

// A server that is ended while it restarts does not come back.
func TestARetiredServerStaysAway(t *testing.T) {
	f, _ := newTestServers(t, 1)
	f.active[0].retire()
	require.NoError(t, f.active[0].listen(t.Context()))
	_, _, err := get(t, "http://"+f.active[0].addr+"/metrics")
	assert.Error(t, err)
}

// listed are the targets in both lists.
func listed(t *testing.T, f *servers) (file, page []string) {
	t.Helper()
	content, err := os.ReadFile(f.file())
	require.NoError(t, err)
	_, body, err := get(t, f.listURL)
	require.NoError(t, err)
	var one, two []group
	require.NoError(t, json.Unmarshal(content, &one))
	require.NoError(t, json.Unmarshal([]byte(body), &two))
	return one[0].Targets, two[0].Targets
}

func TestChurnReplacesOneTargetInTheLists(t *testing.T) {
	f, l := newTestServers(t, 10)
	file, page := listed(t, f)
	before := slices.Concat(file, page)
	assert.Len(t, file, 5)
	assert.Len(t, page, 5)
	require.NoError(t, f.churn(t.Context()))
	file, page = listed(t, f)
	after := slices.Concat(file, page)
	assert.Len(t, after, 10)
	gone := slices.DeleteFunc(slices.Clone(before), func(s string) bool { return slices.Contains(after, s) })
	require.Len(t, gone, 1)
	assert.Equal(t, map[string]int{gone[0]: 1}, l.lastLife)
	// It still answers, since discovery has not noticed yet.
	status, _, err := get(t, "http://"+gone[0]+"/metrics")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)

	// A target that was away long enough returns as another life.
	f.resting[0].since = time.Now().Add(-rest)
	for range 20 {
		require.NoError(t, f.churn(t.Context()))
		if f.events["targets returned"] > 0 {
			break
		}
	}
	file, page = listed(t, f)
	assert.Contains(t, slices.Concat(file, page), gone[0])
	_, _, err = get(t, "http://"+gone[0]+"/metrics")
	require.NoError(t, err)
	assert.Equal(t, 2, noted(t, l, 2)[1].life)

	require.NoError(t, f.clear())
	file, page = listed(t, f)
	assert.Empty(t, slices.Concat(file, page))
}

func TestTheConfigurationIsTheExampleWithChanges(t *testing.T) {
	dir := t.TempDir()
	content, err := config(setup{
		example: "../../../examples/diagnosis.yaml", dir: dir, interval: 5 * time.Second, backend: "http://127.0.0.2:1",
		listFile: filepath.Join(dir, "targets.json"), list: "http://127.0.0.1:2/targets", telemetry: "127.0.0.1:3", logFile: "log",
	})
	require.NoError(t, err)
	for _, part := range []string{"collection_interval: 5s", "endpoint: http://127.0.0.2:1", "refresh_interval: 1s", "storage: file_storage", "initial: true", "max_elapsed_time: 0"} {
		assert.Contains(t, string(content), part)
	}
	for _, part := range []string{"debug", "api-key", "127.0.0.1:8000", "env:"} {
		assert.NotContains(t, string(content), part)
	}
}
