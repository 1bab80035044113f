package vllmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// completionRequest has the fields of a request to /v1/completions that are used.
type completionRequest struct {
	Model string `json:"model"`
	// Prompt is text, or token numbers.
	Prompt    json.RawMessage `json:"prompt"`
	MaxTokens *int            `json:"max_tokens"`
	Stream    bool            `json:"stream"`
}

const (
	// bytesPerToken is a usual mean for English text.
	bytesPerToken = 4
	// maxBody bounds a request's body in bytes.
	maxBody = 8 << 20
	// poll is how often a connection looks for new tokens; steps take longer.
	poll = 2 * time.Millisecond
)

// serveCompletion lets a client's request go through the simulated engine, in
// the time of the servers' clock. The answer has as many tokens as max_tokens
// allows (16 without), all of them the same word.
func (t *Target) serveCompletion(w http.ResponseWriter, r *http.Request) {
	var asked completionRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked); err != nil {
		apiError(w, http.StatusBadRequest, fmt.Sprintf("the body is not what /v1/completions takes: %v", err))
		return
	}
	cfg := t.server.cfg
	if asked.Model != "" && asked.Model != cfg.served() {
		apiError(w, http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist.", asked.Model))
		return
	}
	output := 16
	if asked.MaxTokens != nil {
		output = *asked.MaxTokens
	}
	prompt := promptTokens(asked.Prompt)
	if output < 1 || prompt+output > cfg.MaxModelLen {
		apiError(w, http.StatusBadRequest, fmt.Sprintf(
			"%d prompt tokens and %d of output do not fit into the model's %d", prompt, output, cfg.MaxModelLen))
		return
	}
	key, ok := t.send(engine.Request{Prompt: prompt, Output: output, MaxTokens: output, Stream: asked.Stream})
	if !ok {
		panic(http.ErrAbortHandler) // It went away while the request was read.
	}
	answer := completion{w: w, stream: asked.Stream, model: cfg.served(), id: fmt.Sprintf("cmpl-%d-%d", t.index, key.id), prompt: prompt}
	t.follow(r, key, &answer)
}

// send gives a request to the engine, unless there is none at this moment.
func (t *Target) send(q engine.Request) (awaitedKey, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.advance()
	if err != nil || t.away {
		return awaitedKey{}, false
	}
	key := awaitedKey{t.engine, t.engine.Send(q)}
	t.awaited[key] = nil
	return key, true
}

// follow passes on tokens as they are generated, until the request or its client ends.
func (t *Target) follow(r *http.Request, key awaitedKey, answer *completion) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-r.Context().Done():
			t.mu.Lock()
			_ = t.advance() // The client has gone, whatever happens to the server.
			key.process.Cancel(key.id)
			delete(t.awaited, key)
			t.mu.Unlock()
			return
		case <-ticker.C:
		}
		t.mu.Lock()
		err := t.advance()
		tokens, _ := key.process.Tokens(key.id)
		ended := t.awaited[key]
		if ended != nil {
			delete(t.awaited, key)
		}
		t.mu.Unlock()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if ended != nil {
			answer.finish(*ended)
			return
		}
		answer.show(tokens)
	}
}

// promptTokens estimates the length of a prompt in tokens.
func promptTokens(raw json.RawMessage) int {
	var numbers []int
	if json.Unmarshal(raw, &numbers) == nil && len(numbers) > 0 {
		return len(numbers)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) // A list of texts, whatever it holds.
	}
	return len(text)/bytesPerToken + 1
}

// completion writes one answer.
type completion struct {
	w         http.ResponseWriter
	stream    bool
	model, id string
	prompt    int
	shown     int
}

const word = " token"

type completionChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	FinishReason *string `json:"finish_reason"`
}

type completionUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type completionBody struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *completionUsage   `json:"usage,omitempty"`
}

// show sends new tokens to a client that wants a stream.
func (c *completion) show(tokens int) {
	if !c.stream || tokens <= c.shown {
		return
	}
	c.event(completionChoice{Text: strings.Repeat(word, tokens-c.shown)})
	c.shown = tokens
}

func (c *completion) event(choice completionChoice) {
	if c.shown == 0 {
		c.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	line, _ := json.Marshal(completionBody{ID: c.id, Object: "text_completion", Model: c.model, Choices: []completionChoice{choice}})
	_, _ = fmt.Fprintf(c.w, "data: %s\n\n", line) // A client that has gone ends its context.
	if flusher, ok := c.w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// finish sends the rest, or what went wrong.
func (c *completion) finish(o engine.Outcome) {
	if o.End != engine.EndStop && o.End != engine.EndLength && c.shown == 0 {
		apiError(c.w, http.StatusInternalServerError, "the request ended without an answer: "+o.End.String())
		return
	}
	reason := o.End.String()
	if c.stream {
		c.event(completionChoice{Text: strings.Repeat(word, o.Output-c.shown), FinishReason: &reason})
		_, _ = fmt.Fprint(c.w, "data: [DONE]\n\n")
		return
	}
	writeJSON(c.w, completionBody{
		ID: c.id, Object: "text_completion", Model: c.model,
		Choices: []completionChoice{{Text: strings.Repeat(word, o.Output), FinishReason: &reason}},
		Usage:   &completionUsage{c.prompt, o.Output, c.prompt + o.Output},
	})
}

func apiError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}}) // As above.
}
