package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// server starts a server with an answer, and checks that nothing is left when the test ends.
func server(t *testing.T, answer http.HandlerFunc) (url string, connections *atomic.Int64) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	connections = new(atomic.Int64)
	s := httptest.NewUnstartedServer(answer)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(func() {
		s.Close()
		goleak.VerifyNone(t, before)
	})
	return s.URL, connections
}

func clientsOf(url string) *Clients {
	return New(url, "tiny", func(n int) string { return fmt.Sprintf("adapter-%d", n) }, time.Now())
}

// say writes parts of an answer as vLLM does, each at once.
func say(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, p := range parts {
		fmt.Fprintf(w, "data: %s\n\n", p)
		w.(http.Flusher).Flush()
	}
}

const (
	token = `{"id":"cmpl-1","object":"text_completion","model":"tiny","choices":[{"index":0,"text":"ba","logprobs":null,"finish_reason":null}]}`
	empty = `{"id":"cmpl-1","object":"text_completion","model":"tiny","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":null}]}`
	last  = `{"id":"cmpl-1","object":"text_completion","model":"tiny","choices":[{"index":0,"text":"ba","logprobs":null,"finish_reason":"length"}]}`
	usage = `{"id":"cmpl-1","object":"text_completion","model":"tiny","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":4}}}`
	done  = "[DONE]"
)

func whole(w http.ResponseWriter, _ *http.Request) { say(w, token, empty, last, usage, done) }

// hang answers nothing until the client has gone, which a server only sees when it has read what
// it was asked.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestAWholeAnswerIsNotedWithItsTokens(t *testing.T) {
	var body []byte
	url, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "POST /v1/completions application/json", r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
		var asked map[string]any
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&asked))
		body, _ = json.Marshal(asked)
		whole(w, r)
	})
	c := clientsOf(url)
	c.Began = time.Now().Add(-time.Hour)
	c.send(t.Context(), &story.Phase{Prefix: story.Prefix{Tokens: 8, Of: 2}}, &story.Request{Phase: 3, Prompt: 12, Output: 5, Prefix: 1})
	c.Wait()
	require.Len(t, c.Sent(), 1)
	s := c.Sent()[0]
	assert.InDelta(t, 3600, s.At, 60)
	require.Len(t, s.Tokens, 3, "also a token without a text")
	assert.LessOrEqual(t, s.Tokens[0], s.Tokens[1])
	assert.LessOrEqual(t, s.Tokens[1], s.Tokens[2])
	assert.LessOrEqual(t, s.Tokens[2], s.End)
	s.At, s.Tokens, s.End = 0, nil, 0
	assert.Equal(t, judge.Sent{How: judge.Answered, Status: 200, Phase: 3, Prompt: 20, Cached: 4, Output: 5}, s)
	var asked struct {
		Model         string
		Prompt        []int
		MaxTokens     int  `json:"max_tokens"`
		IgnoreEOS     bool `json:"ignore_eos"`
		Stream        bool
		Temperature   float64
		StreamOptions map[string]bool `json:"stream_options"`
	}
	require.NoError(t, json.Unmarshal(body, &asked))
	assert.Len(t, asked.Prompt, 20)
	asked.Prompt = nil
	assert.Equal(t, "tiny", asked.Model)
	assert.Equal(t, 5, asked.MaxTokens)
	assert.True(t, asked.IgnoreEOS && asked.Stream && asked.StreamOptions["include_usage"])
	assert.InDelta(t, 1, asked.Temperature, 0)
}

func TestHowARequestEndsFollowsFromItsAnswer(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":{"message":"no"}}`, code) }
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		how    judge.Ending
		status int
		tokens int
	}{
		"whole":          {whole, judge.Answered, 200, 3},
		"an end too few": {func(w http.ResponseWriter, _ *http.Request) { say(w, token, last, usage) }, judge.Failed, 200, 2},
		"cut off": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			say(w, token, token)
			panic(http.ErrAbortHandler)
		}, judge.Failed, 200, 2},
		"nothing": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, judge.Failed, 0, 0},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { say(w, token, "{", done) }, judge.Failed, 200, 1},
		// What vLLM streams when its engine dies: the status was sent long before.
		"an error in the stream": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, token, `{"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": null, "code": 500}}`, done)
		}, judge.Failed, 200, 1},
		"an error of an older release": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, token, `{"object": "error", "message": "no", "type": "BadRequestError", "code": 400}`, done)
		}, judge.Failed, 200, 1},
		"aborted by the server": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, token, strings.Replace(last, "length", "abort", 1), usage, done)
		}, judge.Failed, 200, 1},
		"wrong request":     {status(400), judge.Refused, 400, 0},
		"no such model":     {status(404), judge.Refused, 404, 0},
		"too many requests": {status(429), judge.Failed, 429, 0},
		"error":             {status(500), judge.Failed, 500, 0},
		"not ready":         {status(503), judge.Failed, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := server(t, c.answer)
			clients := clientsOf(url)
			clients.send(t.Context(), &story.Phase{}, &story.Request{Prompt: 3, Output: 3, Prefix: -1})
			clients.Wait()
			require.Len(t, clients.Sent(), 1)
			s := clients.Sent()[0]
			assert.Equal(t, c.how, s.How)
			assert.Equal(t, c.status, s.Status)
			assert.Len(t, s.Tokens, c.tokens)
			assert.Equal(t, 3, s.Prompt)
		})
	}
}

// nobody is an address on which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	return s.URL
}

func endings(all []judge.Sent) (out []judge.Ending) {
	for i := range all {
		out = append(out, all[i].How)
	}
	return out
}

func TestClientsTryAgainWhereTheyGotNoAnswer(t *testing.T) {
	request := &story.Request{Prompt: 3, Output: 3, Prefix: -1}
	c := clientsOf(nobody(t))
	c.send(t.Context(), &story.Phase{Retries: 2}, request)
	assert.Equal(t, []judge.Ending{judge.Failed, judge.Failed, judge.Failed}, endings(c.Sent()))

	url, _ := server(t, hang)
	c = clientsOf(url)
	c.send(t.Context(), &story.Phase{Timeout: 20 * time.Millisecond, Retries: 2}, request)
	assert.Equal(t, []judge.Ending{judge.TimedOut, judge.TimedOut, judge.TimedOut}, endings(c.Sent()))
	for i, s := range c.Sent() {
		assert.GreaterOrEqual(t, s.End, 0.02)
		assert.Zero(t, s.Status)
		assert.True(t, i == 0 || s.At >= c.Sent()[i-1].At+0.02)
	}
	// A client that leaves on purpose does not come back, one that loses its patience before does.
	c = clientsOf(url)
	leaves := *request
	leaves.Leaves = 20 * time.Millisecond
	c.send(t.Context(), &story.Phase{Retries: 2}, &leaves)
	leaves.Leaves = time.Hour
	c.send(t.Context(), &story.Phase{Retries: 1, Timeout: time.Millisecond}, &leaves)
	assert.Equal(t, []judge.Ending{judge.Left, judge.TimedOut, judge.TimedOut}, endings(c.Sent()))

	var asked atomic.Int64
	url, _ = server(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "", 500)
			return
		}
		whole(w, r)
	})
	c = clientsOf(url)
	c.send(t.Context(), &story.Phase{Retries: 5}, request)
	assert.Equal(t, []judge.Ending{judge.Failed, judge.Answered}, endings(c.Sent()))
}

// until plays a phase that would last an hour, and ends it when so many requests have ended.
func until(t *testing.T, c *Clients, p story.Phase, seen func(all []judge.Sent) bool) {
	t.Helper()
	p.For, p.Prompt, p.Output = time.Hour, story.Lengths{Mean: 3, Most: 3}, story.Lengths{Mean: 3, Most: 3}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	go func() {
		c.Phase(ctx, &p, (&story.Play{Phases: []story.Phase{p}}).Source(0, 1, 1))
		close(over)
	}()
	assert.Eventually(t, func() bool { return seen(c.Sent()) }, 2*time.Minute, time.Millisecond)
	cancel()
	<-over
	c.Wait()
}

func TestConnectionsAreKeptWhereThePhaseSaysSo(t *testing.T) {
	for _, keep := range []bool{true, false} {
		url, connections := server(t, func(w http.ResponseWriter, r *http.Request) {
			whole(w, r)
			// The end of the answer comes a little after its last part.
			time.Sleep(time.Millisecond)
		})
		c := clientsOf(url)
		var most, now atomic.Int64
		slow := c.kept.Transport
		c.kept.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return slow.RoundTrip(r)
		})
		until(t, c, story.Phase{Clients: 3, KeepAlive: keep}, func(all []judge.Sent) bool { return len(all) >= 60 })
		all := c.Sent()
		answered := 0
		for i := range all {
			if all[i].How == judge.Answered {
				answered++
			}
		}
		assert.GreaterOrEqual(t, answered, 57, "but for those that the end of the phase cut off")
		if keep {
			assert.LessOrEqual(t, connections.Load(), int64(3))
			assert.LessOrEqual(t, most.Load(), int64(3))
		} else {
			assert.GreaterOrEqual(t, connections.Load(), int64(answered))
		}
	}
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A client of a closed loop waits a second after each answer that is none.
func TestAClosedLoopDoesNotHammerAServer(t *testing.T) {
	refusing, _ := server(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 400) })
	for _, url := range []string{nobody(t), refusing} {
		c := clientsOf(url)
		began := time.Now()
		until(t, c, story.Phase{Clients: 2, Retries: 3}, func(all []judge.Sent) bool {
			return len(all) >= 2 && time.Since(began) > 1500*time.Millisecond
		})
		assert.LessOrEqual(t, len(c.Sent()), 2*(2+int(time.Since(began).Seconds())))
	}
}

func TestRequestsThatHangWhenTheStoryEndsWereNotGivenUp(t *testing.T) {
	var waiting atomic.Int64
	url, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if waiting.Add(1) > 2 {
			say(w, token)
		}
		hang(w, r)
	})
	c := clientsOf(url)
	until(t, c, story.Phase{AtOnce: 5, Retries: 3}, func([]judge.Sent) bool { return waiting.Load() == 5 })
	assert.Equal(t, []judge.Ending{judge.Left, judge.Left, judge.Left, judge.Left, judge.Left}, endings(c.Sent()))
	assert.Equal(t, int64(5), waiting.Load(), "nobody tries again")
}

// A phase ends at its time also when its requests hang and others are still to come.
func TestAPhaseEndsWhenItIsOver(t *testing.T) {
	url, _ := server(t, hang)
	c := clientsOf(url)
	ctx, cancel := context.WithCancel(t.Context())
	p := story.Phase{For: 100 * time.Millisecond, Every: 10 * time.Millisecond, Prompt: story.Lengths{Mean: 3, Most: 3}}
	began := time.Now()
	c.Phase(ctx, &p, (&story.Play{Phases: []story.Phase{p}}).Source(0, 1, 1))
	assert.GreaterOrEqual(t, time.Since(began), p.For)
	assert.Empty(t, c.Sent(), "they still hang")
	cancel()
	c.Wait()
	assert.LessOrEqual(t, len(c.Sent()), 10)
	for _, s := range c.Sent() {
		assert.Equal(t, judge.Left, s.How)
	}
}

func TestARequestAsksForWhatItsPhaseSays(t *testing.T) {
	c := clientsOf("")
	asked := func(p story.Phase, r story.Request) map[string]any {
		out := map[string]any{}
		require.NoError(t, json.Unmarshal(c.body(&p, &r), &out))
		return out
	}
	plain := story.Request{Prefix: -1, Prompt: 9, Output: 4, Seed: 5}
	with := func(change func(*story.Request)) story.Request {
		r := plain
		change(&r)
		return r
	}
	b := asked(story.Phase{}, plain)
	assert.NotContains(t, b, "n")
	assert.NotContains(t, b, "structured_outputs")
	assert.Equal(t, b, asked(story.Phase{}, plain), "the seed makes the prompt")
	for _, token := range b["prompt"].([]any) {
		assert.True(t, token.(float64) >= 300 && token.(float64) < 2200)
	}
	assert.NotEqual(t, b["prompt"], asked(story.Phase{}, with(func(r *story.Request) { r.Seed = 6 }))["prompt"])
	assert.InDelta(t, 0, asked(story.Phase{Greedy: true}, plain)["temperature"], 0)
	assert.InDelta(t, 4, asked(story.Phase{Choices: 4}, plain)["n"], 0)
	assert.InDelta(t, -1, asked(story.Phase{}, with(func(r *story.Request) { r.Bad = true }))["max_tokens"], 0)
	assert.Equal(t, "adapter-2", asked(story.Phase{}, with(func(r *story.Request) { r.Adapter = 2 }))["model"])

	grammar := with(func(r *story.Request) { r.Grammar = true })
	one := asked(story.Phase{}, grammar)
	assert.NotContains(t, one, "ignore_eos", "a grammar ends by itself")
	grammar.Seed = 6
	assert.NotEqual(t, one["structured_outputs"], asked(story.Phase{}, grammar)["structured_outputs"])

	prompt := func(prefix int, seed uint64) []any {
		r := with(func(r *story.Request) { r.Prefix, r.Seed = prefix, seed })
		return asked(story.Phase{Prefix: story.Prefix{Tokens: 20, Of: 3}}, r)["prompt"].([]any)
	}
	assert.Len(t, prompt(0, 1), 29)
	assert.Equal(t, prompt(0, 1)[:20], prompt(0, 2)[:20])
	assert.NotEqual(t, prompt(0, 1)[20:], prompt(0, 2)[20:])
	assert.NotEqual(t, prompt(0, 1)[:20], prompt(1, 1)[:20])
}
