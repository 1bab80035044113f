package defects

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
	"strings"
	"sync"
	"time"
)

// Target is a server, and what was sent to it.
type Target struct {
	URL string
	// prompts is the number of prompts so far: no two are alike, unless an event repeats one.
	prompts uint64
}

// once has a connection for each request, so that every API server gets some.
var once = func() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport}
}()

func (t *Target) send(ctx context.Context, path string, asked map[string]any) (*http.Response, error) {
	method, body := http.MethodGet, []byte(nil)
	if asked != nil {
		var err error
		if body, err = json.Marshal(asked); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, t.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	// One engine is enough: where there are several, all requests go to the first.
	request.Header.Set("X-data-parallel-rank", "0")
	return once.Do(request)
}

// get sends a request and returns the status and the whole answer.
func (t *Target) get(ctx context.Context, path string, asked map[string]any) (int, []byte, error) {
	response, err := t.send(ctx, path, asked)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// must sends a request that has to be answered with 200.
func (t *Target) must(ctx context.Context, path string, asked map[string]any) ([]byte, error) {
	status, body, err := t.get(ctx, path, asked)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s is answered with %d: %.300s", path, status, body)
	}
	return body, err
}

func (t *Target) metrics(ctx context.Context) (Shown, error) {
	body, err := t.must(ctx, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	return Read(body)
}

// looks is how often in a row the counters must not have moved until the server rests.
const looks, between = 4, 400 * time.Millisecond

// rest waits until the counters rest, and returns what they show. It does not wait for the
// gauges, because they are what can be wrong.
func (t *Target) rest(ctx context.Context) (Shown, error) {
	last, same := "", 0
	for {
		shown, err := t.metrics(ctx)
		if err != nil {
			return nil, err
		}
		now := ""
		for _, name := range []string{
			"vllm:generation_tokens_total", "vllm:prompt_tokens_total", "vllm:request_success_total",
			"vllm:iteration_tokens_total_count", "vllm:time_to_first_token_seconds_count",
		} {
			now += fmt.Sprint(" ", shown.sum(name))
		}
		if now != last {
			last, same = now, 0
		} else if same++; same == looks {
			return shown, nil
		}
		if err := pause(ctx, between); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// prompt returns tokens that no prompt before had.
func (t *Target) prompt(n int) []int {
	t.prompts++
	random := rand.New(rand.NewPCG(t.prompts, 3))
	out := make([]int, n)
	for i := range out {
		out[i] = 300 + random.IntN(1900)
	}
	return out
}

// completion is a request for an answer of a fixed length.
func completion(prompt []int, output int) map[string]any {
	return map[string]any{"model": "tiny", "prompt": prompt, "max_tokens": output, "ignore_eos": true, "temperature": 1.0}
}

// usage is what an answer says of its tokens.
type usage struct {
	Output  int `json:"completion_tokens"`
	Details *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Stream is a streamed answer that is under way.
type Stream struct {
	leave context.CancelFunc
	done  chan struct{}

	mu sync.Mutex
	// at are the times of the parts with tokens.
	at    []time.Time
	usage usage
	err   error
}

// begin sends a request, and reads the answer in the background.
func (t *Target) begin(ctx context.Context, asked map[string]any) *Stream {
	asked["stream"], asked["stream_options"] = true, map[string]any{"include_usage": true}
	s := &Stream{done: make(chan struct{})}
	ctx, s.leave = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		response, err := t.send(ctx, "/v1/completions", asked)
		if err == nil {
			err = s.read(response)
			err = errors.Join(err, response.Body.Close())
		}
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}()
	return s
}

func (s *Stream) read(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("answered with %s: %.300s", response.Status, body)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || data == "[DONE]" {
			continue
		}
		var part struct {
			Choices []struct {
				Finish string `json:"finish_reason"`
			} `json:"choices"`
			Usage *usage `json:"usage"`
		}
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			return err
		}
		s.mu.Lock()
		for _, c := range part.Choices {
			// The end of an aborted answer has no token, if it is sent at all. Other parts have
			// one, also where its text is half a character.
			if c.Finish != "abort" {
				s.at = append(s.at, time.Now())
			}
		}
		if part.Usage != nil {
			s.usage = *part.Usage
		}
		s.mu.Unlock()
	}
	return lines.Err()
}

// times are when tokens came so far.
func (s *Stream) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// over reports whether the answer has ended.
func (s *Stream) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// reach waits until the answer has n tokens.
func (s *Stream) reach(ctx context.Context, n int) error {
	for len(s.times()) < n {
		if s.over() {
			return errors.Join(fmt.Errorf("the answer ended before token %d", n), s.err)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// end waits for the whole answer.
func (s *Stream) end() error {
	<-s.done
	s.leave()
	return s.err
}

// quit closes the connection, as a client does that leaves.
func (s *Stream) quit() {
	s.leave()
	<-s.done
}
