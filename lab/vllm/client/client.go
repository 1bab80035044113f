// Package client sends the requests of a story to a server, as many clients would, and notes
// what each of them saw.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Clients send requests to one server.
type Clients struct {
	// URL is the address of the server, Model the name of its model, and Adapter names the
	// LoRA adapters.
	URL, Model string
	Adapter    func(n int) string
	// Began is the beginning of the story.
	Began time.Time

	once, kept *http.Client
	mu         sync.Mutex
	sent       []judge.Sent
	underway   sync.WaitGroup
}

// New returns clients of a server.
func New(url, model string, adapter func(n int) string, began time.Time) *Clients {
	transport := func(alive bool) *http.Client {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableKeepAlives, t.MaxIdleConnsPerHost = !alive, 1000
		return &http.Client{Transport: t}
	}
	return &Clients{URL: url, Model: model, Adapter: adapter, Began: began, once: transport(false), kept: transport(true)}
}

// patience is how long a client waits whose phase has no time-out.
const patience = 10 * time.Minute

// Phase sends the requests of a phase, and returns when the phase is over. Requests that are
// still under way then go on.
func (c *Clients) Phase(ctx context.Context, phase *story.Phase, source *story.Source) {
	over, cancel := context.WithTimeout(ctx, phase.For)
	defer cancel()
	began := time.Now()
	if phase.Clients > 0 {
		var mu sync.Mutex
		for range phase.Clients {
			c.underway.Go(func() {
				for over.Err() == nil {
					mu.Lock()
					r := source.Draw(time.Since(began))
					mu.Unlock()
					c.send(ctx, phase, &r)
				}
			})
		}
	}
	for {
		r, more := source.Next()
		if !more {
			break
		}
		select {
		case <-time.After(time.Until(began.Add(r.After))):
		case <-over.Done():
			return
		}
		c.underway.Go(func() { c.send(ctx, phase, &r) })
	}
	<-over.Done()
}

// Wait waits until no request is under way; those that are left when the context of their phase
// ends are cut off. No phase may go on then.
func (c *Clients) Wait() {
	c.underway.Wait()
	c.kept.CloseIdleConnections()
}

// Sent returns all requests so far that have ended.
func (c *Clients) Sent() []judge.Sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// send sends a request, and again where the client has the patience to.
func (c *Clients) send(ctx context.Context, phase *story.Phase, r *story.Request) {
	for range 1 + phase.Retries {
		seen := c.attempt(ctx, phase, r)
		c.mu.Lock()
		c.sent = append(c.sent, seen)
		c.mu.Unlock()
		if phase.Clients > 0 && (seen.How == judge.Failed || seen.How == judge.Refused) {
			// A closed loop does not hammer a server that is away, or that wants none of it.
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		if seen.How != judge.TimedOut && seen.How != judge.Failed {
			return
		}
	}
}

func (c *Clients) attempt(ctx context.Context, phase *story.Phase, r *story.Request) (seen judge.Sent) {
	limit, how := patience, judge.TimedOut
	if phase.Timeout > 0 {
		limit = phase.Timeout
	}
	if r.Leaves > 0 && r.Leaves < limit {
		limit, how = r.Leaves, judge.Left
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body := c.body(phase, r)
	began := time.Now()
	since := func() float64 { return float64(time.Since(began).Round(100*time.Microsecond)) / float64(time.Second) }
	seen = judge.Sent{At: began.Sub(c.Began).Round(100 * time.Microsecond).Seconds(), Phase: r.Phase, How: judge.Failed, Prompt: r.Prompt}
	if r.Prefix >= 0 {
		seen.Prompt += phase.Prefix.Tokens
	}
	defer func() {
		if seen.How == judge.Answered {
			return
		}
		seen.End = since()
		switch {
		case seen.How == judge.Refused:
		case ctx.Err() != nil:
			seen.How = judge.Left // The story is over.
		case limited.Err() != nil:
			seen.How = how
		}
	}()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, c.URL+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return seen
	}
	request.Header.Set("Content-Type", "application/json")
	client := c.once
	if phase.KeepAlive {
		client = c.kept
	}
	response, err := client.Do(request)
	if err != nil {
		return seen
	}
	defer response.Body.Close()
	seen.Status = response.StatusCode
	if response.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, response.Body) // What it says does not matter.
		if response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests {
			seen.How = judge.Refused
		}
		return seen
	}
	if err := read(response.Body, &seen, since); err == nil {
		seen.How, seen.End = judge.Answered, since()
		// A connection can be used again only when its answer was read to the end.
		_, _ = io.Copy(io.Discard, response.Body)
	}
	return seen
}

// answer is a part of a streamed answer.
type answer struct {
	Choices []struct {
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	// Error is what went wrong after the answer had begun: its status is 200 then. Object is
	// "error" where older releases say it.
	Error  json.RawMessage `json:"error"`
	Object string          `json:"object"`
	Usage  *struct {
		CompletionTokens int `json:"completion_tokens"`
		Details          *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// read reads a streamed answer. The error says that it is not complete.
func read(from io.Reader, seen *judge.Sent, since func() float64) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		data, is := strings.CutPrefix(scanner.Text(), "data: ")
		if !is {
			continue
		}
		if data == "[DONE]" {
			return nil
		}
		var part answer
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			return err
		}
		if len(part.Error) > 0 || part.Object == "error" {
			return fmt.Errorf("the server says %s", data)
		}
		if part.Usage != nil {
			seen.Output = part.Usage.CompletionTokens
			if part.Usage.Details != nil {
				seen.Cached = part.Usage.Details.Cached
			}
		}
		// A token can be a part of a character, without a text of its own.
		if len(part.Choices) > 0 {
			// A server that ends takes back what it has not finished.
			if reason := part.Choices[0].FinishReason; reason == "abort" || reason == "error" {
				return fmt.Errorf("the answer ended by %q", reason)
			}
			seen.Tokens = append(seen.Tokens, since())
		}
	}
	return errors.Join(scanner.Err(), io.ErrUnexpectedEOF)
}

// vocabulary is the range of the numbers of ordinary tokens.
const firstToken, lastToken = 300, 2200

func tokens(random *rand.Rand, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = firstToken + random.IntN(lastToken-firstToken)
	}
	return out
}

// body is the request as vLLM takes it.
func (c *Clients) body(phase *story.Phase, r *story.Request) []byte {
	var prompt []int
	if r.Prefix >= 0 {
		prompt = tokens(rand.New(rand.NewPCG(uint64(phase.Prefix.Tokens), uint64(r.Prefix))), phase.Prefix.Tokens)
	}
	prompt = append(prompt, tokens(rand.New(rand.NewPCG(r.Seed, 1)), r.Prompt)...)
	asked := map[string]any{
		"model": c.Model, "prompt": prompt, "max_tokens": r.Output, "ignore_eos": true, "temperature": 1.0,
		"stream": true, "stream_options": map[string]any{"include_usage": true},
	}
	if phase.Greedy {
		asked["temperature"] = 0.0
	}
	if phase.Choices > 1 {
		asked["n"] = phase.Choices
	}
	if r.Adapter > 0 {
		asked["model"] = c.Adapter(r.Adapter)
	}
	if r.Grammar {
		asked["structured_outputs"] = map[string]any{"json": schema(r.Seed)}
		delete(asked, "ignore_eos")
	}
	if r.Bad {
		asked["max_tokens"] = -1
	}
	out, err := json.Marshal(asked)
	if err != nil {
		panic(err) // It is made above.
	}
	return out
}

// schema is a JSON schema that no other request has.
func schema(seed uint64) map[string]any {
	properties := map[string]any{}
	var required []string
	for i := range 12 {
		name := fmt.Sprintf("field_%x_%d", seed, i)
		properties[name] = map[string]any{"type": "string", "pattern": fmt.Sprintf("^[a-z]{2,%d}(-[0-9]{1,4}){0,3}$", 5+i)}
		required = append(required, name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
