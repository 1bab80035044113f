package vllmsim

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// live is a server in real time that only its clients keep busy.
func live(t *testing.T, change ...func(*Config)) (*Server, string) {
	t.Helper()
	cfg := Config{
		Hardware: "8b-h100", Version: "0.24.0", Model: "m", Clock: time.Now,
		Workload: &engine.Workload{Prompt: engine.Lengths{Median: 1}, Output: engine.Lengths{Median: 1}},
	}
	for _, c := range change {
		c(&cfg)
	}
	s := newServer(t, cfg)
	web := httptest.NewServer(s.Targets()[0])
	t.Cleanup(web.Close)
	return s, web.URL
}

func post(ctx context.Context, t *testing.T, url, body string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(body))
	require.NoError(t, err)
	return http.DefaultClient.Do(r)
}

func TestACompletionTakesTheTimeThatTheEngineTakes(t *testing.T) {
	_, url := live(t)
	began := time.Now()
	response, err := post(t.Context(), t, url, `{"model":"m","prompt":[1,2,3,4,5],"max_tokens":30}`)
	require.NoError(t, err)
	defer response.Body.Close()
	var got completionBody
	require.NoError(t, json.NewDecoder(response.Body).Decode(&got))
	// 30 steps of 7.1 ms each.
	assert.GreaterOrEqual(t, time.Since(began), 210*time.Millisecond)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, &completionUsage{5, 30, 35}, got.Usage)
	assert.Equal(t, 30, strings.Count(got.Choices[0].Text, word))
	assert.Equal(t, "length", *got.Choices[0].FinishReason)
}

func TestAStreamBringsTokensAsTheyCome(t *testing.T) {
	s, url := live(t)
	response, err := post(t.Context(), t, url, `{"prompt":"Say something","max_tokens":20,"stream":true}`)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Contains(t, response.Header.Get("Content-Type"), "text/event-stream")
	words, events, done := 0, 0, false
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var body completionBody
		require.NoError(t, json.Unmarshal([]byte(data), &body))
		events++
		words += strings.Count(body.Choices[0].Text, word)
	}
	assert.True(t, done)
	assert.Equal(t, 20, words)
	assert.Greater(t, events, 1)
	body, _, err := s.Targets()[0].Body()
	require.NoError(t, err)
	assert.Contains(t, string(body), `vllm:generation_tokens_total{engine="0",model_name="m"} 20.0`)
	assert.Contains(t, string(body), `http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 1.0`)
}

func TestAClientThatHangsUpLeavesTheEngine(t *testing.T) {
	ended := make(chan engine.Outcome, 1)
	_, url := live(t, func(c *Config) { c.Truth = func(_ int, o engine.Outcome) { ended <- o } })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	response, err := post(ctx, t, url, `{"prompt":"x","max_tokens":4000,"stream":true}`)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	// The truth is written at the next request.
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return len(ended) == 1
	}, 5*time.Second, 20*time.Millisecond)
	o := <-ended
	assert.Equal(t, engine.EndLeft, o.End)
	assert.Less(t, o.Output, 4000)
}

func TestRequestsThatCannotBeServedSayWhy(t *testing.T) {
	_, url := live(t)
	for _, c := range []struct {
		url, body string
		status    int
		want      string
	}{
		{url, `{`, 400, "the body is not"},
		{url, `{"model":"other","prompt":"x"}`, 404, "does not exist"},
		{url, `{"prompt":"x","max_tokens":0}`, 400, "do not fit"},
		{url, `{"prompt":"x","max_tokens":20000}`, 400, "the model's 16384"},
	} {
		response, err := post(t.Context(), t, c.url, c.body)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, c.status, response.StatusCode, c.body)
		assert.Contains(t, string(body), c.want)
	}
}

func TestPromptLengthsAreEstimated(t *testing.T) {
	for raw, want := range map[string]int{`"12345678"`: 3, `[1,2,3]`: 3, `["abcd","efgh"]`: 4, `""`: 1, ``: 1} {
		assert.Equal(t, want, promptTokens(json.RawMessage(raw)), raw)
	}
}
