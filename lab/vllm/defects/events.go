package defects

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Event is something that is done to a server, and the defects that it can show.
type Event struct {
	Name, About string
	Do          func(ctx context.Context, t *Target, s *Seen) error
	Shows       []Judgement
}

// The server of the events has a cache of 31 free blocks of 32 tokens, computes 256 tokens in
// a step, and has room for one adapter of four at a time.
const (
	blocks    = 32
	blockSize = 32
	budget    = 256
	longest   = 960
	adapters  = 4
)

// long is a prompt that needs three steps.
const long = 2*budget + 188

var events = []Event{
	{
		Name: "long-prompt", About: "a prompt that takes three steps, alone", Do: longPrompt,
		Shows: []Judgement{
			{Defect: catalog.DefectGaugesTrailSteps, Find: func(s *Seen) Finding {
				return unless(s.Did["waited"] > 0.15, "the first token came too early", Number{
					"the share of the wait for the first token after which a gauge rose", s.Did["rose"] / s.Did["waited"], atMost(0.1), atLeast(0.2),
				})
			}},
			{Defect: catalog.DefectStepsWithoutOutputs, Find: func(s *Seen) Finding {
				count := s.rise("vllm:iteration_tokens_total_count")
				return Finding{Numbers: []Number{
					{"observed steps", count, exactly(3), exactly(1)},
					{"tokens of a step", s.rise("vllm:iteration_tokens_total_sum") / count, atMost(budget), atLeast(long)},
				}}
			}},
		},
	},
	{
		Name: "clients-leave", About: "all of two clients leave while they get tokens", Do: clientsLeave,
		Shows: []Judgement{
			{Defect: catalog.DefectClientAbortsUncounted, Find: func(s *Seen) Finding {
				began := s.rise("vllm:time_to_first_token_seconds_count")
				return unless(began == 2 && s.rise("vllm:generation_tokens_total") < s.Did["asked"], "the server did not end two requests early",
					Number{"finished requests", s.rise("vllm:request_success_total"), exactly(2), exactly(0)})
			}},
			{Defect: catalog.DefectGaugesFreezeOnAbort, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{"running requests at rest", s.After.sum("vllm:num_requests_running"), exactly(0), atLeast(1)}}}
			}},
			{Defect: catalog.DefectNullBlockUsed, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{"used blocks at rest", s.After.sum("vllm:kv_cache_usage_perc") * blocks, exactly(0), Span{0.5, 1.5}}}}
			}},
		},
	},
	{
		Name: "prompt-again", About: "the same prompt a second time", Do: promptAgain,
		Shows: []Judgement{{Defect: catalog.DefectStepTokensWithCached, Find: func(s *Seen) Finding {
			return unless(s.Did["cached"] > 0, "no token was cached", Number{
				"tokens of steps", s.rise("vllm:iteration_tokens_total_sum"), exactly(s.Did["prompt"] - s.Did["cached"] + 1), exactly(s.Did["prompt"] + 1),
			})
		}}},
	},
	{
		Name: "choices", About: "one request for three choices", Do: single("/v1/completions", 20, map[string]any{"n": 3, "max_tokens": 4}),
		Shows: []Judgement{{Defect: catalog.DefectChoicesCountedSingly, Find: func(s *Seen) Finding {
			return Finding{Numbers: []Number{
				{"finished requests", s.rise("vllm:request_success_total"), exactly(1), exactly(3)},
				{"prompt tokens", s.rise("vllm:prompt_tokens_total"), exactly(20), exactly(60)},
			}}
		}}},
	},
	{
		Name: "beam", About: "one beam search of four tokens", Do: single("/v1/completions", 20, map[string]any{"use_beam_search": true, "n": 2, "max_tokens": 4, "temperature": 0}),
		Shows: []Judgement{{Defect: catalog.DefectBeamStepsCounted, Find: func(s *Seen) Finding {
			return Finding{Numbers: []Number{{"finished requests", s.rise("vllm:request_success_total"), atMost(2), Span{4, 8}}}}
		}}},
	},
	{
		Name: "too-long", About: "a prompt that does not fit", Do: refused(make([]int, longest+100)),
		Shows: []Judgement{
			{Defect: catalog.DefectErrorsUncounted, Find: func(s *Seen) Finding {
				return unless(s.Did["status"] == http.StatusBadRequest, "the answer is not 400",
					Number{"finished requests", s.rise("vllm:request_success_total"), exactly(1), exactly(0)})
			}},
		},
	},
	{
		// A prompt that is too long would not do: in 0.24.0 its handler is inside the counter.
		Name: "no-such-token", About: "a prompt with a token that the model does not have", Do: refused([]int{1 << 20}),
		Shows: []Judgement{
			{Defect: catalog.DefectClientErrorsAsServerErrors, Find: func(s *Seen) Finding {
				return unless(s.Did["status"] == http.StatusBadRequest, "the answer is not 400",
					Number{"HTTP requests with 4xx", s.rise("http_requests_total", "status", "4xx"), exactly(1), exactly(0)},
					Number{"HTTP requests with 5xx", s.rise("http_requests_total", "status", "5xx"), exactly(0), exactly(1)})
			}},
		},
	},
	{
		Name: "preemption", About: "two requests outgrow the cache, and the second is preempted until the first ends", Do: preemption,
		Shows: []Judgement{
			{Defect: catalog.DefectPreemptionsCountedLate, Find: func(s *Seen) Finding {
				return unless(s.rise("vllm:num_preemptions_total") >= 1, "nothing was preempted", Number{
					"preemptions counted while the second request waits again",
					s.During.sum("vllm:num_preemptions_total") - s.Before.sum("vllm:num_preemptions_total"), atLeast(1), exactly(0),
				})
			}},
			{Defect: catalog.DefectFirstWaitOnly, Find: func(s *Seen) Finding {
				return unless(s.Did["stood"] > 0.3, "the second request did not wait again", Number{
					"the time in the queue as a share of the longest gap between two tokens",
					s.rise("vllm:request_queue_time_seconds_sum") / s.Did["stood"], atLeast(0.8), atMost(0.5),
				})
			}},
			{Defect: catalog.DefectOwnBlocksFound, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{"hits of the prefix cache", s.rise("vllm:prefix_cache_hits_total"), exactly(0), atLeast(1)}}}
			}},
		},
	},
	{
		Name: "no-room", About: "a prompt waits at the head of the queue for some thirty steps, since the cache has no room", Do: noRoom,
		Shows: []Judgement{{Defect: catalog.DefectCacheQueriesRecounted, Find: func(s *Seen) Finding {
			return Finding{Numbers: []Number{{
				"queried tokens for each prompt token", s.rise("vllm:prefix_cache_queries_total") / s.rise("vllm:prompt_tokens_total"), atMost(1), atLeast(3),
			}}}
		}}},
	},
	{
		Name: "adapters", About: "a request of one adapter runs, and one of another waits for its place", Do: twoAdapters,
		Shows: []Judgement{
			{Defect: catalog.DefectAdaptersListedTwice, Find: func(s *Seen) Finding {
				waiting, running := lists(s.During)
				return unless(slices.Contains(running, "adapter-1"), "the running adapter is not listed",
					Number{"waiting adapters of those that only run", count(waiting, "adapter-1"), exactly(0), exactly(1)})
			}},
			{Defect: catalog.DefectAdaptersInFlightOnly, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{
					{"loaded adapters in a list", listed(s.During), exactly(adapters), atMost(2)},
					{"series at rest", float64(len(s.After[adaptersInUse])), exactly(1), atLeast(2)},
				}}
			}},
			{Defect: catalog.DefectDeferredInWaiting, Find: func(s *Seen) Finding {
				return unless(s.During.sum("vllm:num_requests_waiting") == 1, "no request waits", Number{
					"waiting requests that are marked as deferred",
					s.During.sum("vllm:num_requests_waiting_by_reason", "reason", "deferred"), exactly(1), exactly(0),
				})
			}},
		},
	},
	{
		Name: "template", About: "a chat template that takes long", Do: template,
		Shows: []Judgement{{Defect: catalog.DefectArrivalTimeMoved, Find: func(s *Seen) Finding {
			return unless(s.Did["templating"] > 0.3, "the template did not take long", Number{
				"the share of the templating in the time to the first token", s.Did["reported"] / s.Did["templating"], atMost(0.2), atLeast(0.7),
			})
		}}},
	},
	{
		Name: "pause", About: "the server aborts a request in its prefill", Do: aborted,
		Shows: []Judgement{
			{Defect: catalog.DefectNegativeDurations, From: "0.17.0", Find: func(s *Seen) Finding {
				return unless(s.Did["tokens"] == 0, "the request was not aborted before its first token", Number{
					"seconds of prefill for each second that the event took", s.rise("vllm:request_prefill_time_seconds_sum") / s.Did["took"], Span{0, 1}, atLeast(10),
				})
			}},
			{Defect: catalog.DefectFirstTokenWithoutToken, From: "0.17.0", Find: func(s *Seen) Finding {
				return unless(s.Did["tokens"] == 0 && s.rise("vllm:generation_tokens_total") == 0, "the request was not aborted before its first token",
					Number{"observations of a first token", s.rise("vllm:time_to_first_token_seconds_count"), exactly(0), exactly(1)})
			}},
		},
	},
}

func longPrompt(ctx context.Context, t *Target, s *Seen) error {
	began := time.Now()
	answer := t.begin(ctx, completion(t.prompt(long), 1))
	for !answer.over() && s.Did["rose"] == 0 {
		shown, err := t.metrics(ctx)
		if err != nil {
			return err
		}
		if shown.sum("vllm:num_requests_running")+shown.sum("vllm:num_requests_waiting") > 0 {
			s.Did["rose"] = time.Since(began).Seconds()
		}
	}
	if err := errors.Join(answer.end(), answer.reach(ctx, 1)); err != nil {
		return err
	}
	s.Did["waited"] = answer.times()[0].Sub(began).Seconds()
	if s.Did["rose"] == 0 { // Not before the first token.
		s.Did["rose"] = s.Did["waited"]
	}
	return nil
}

func clientsLeave(ctx context.Context, t *Target, s *Seen) error {
	const output = 200
	s.Did["asked"] = 2 * output
	one, two := t.begin(ctx, completion(t.prompt(20), output)), t.begin(ctx, completion(t.prompt(20), output))
	err := errors.Join(one.reach(ctx, 3), two.reach(ctx, 3))
	one.quit()
	two.quit()
	return err
}

func promptAgain(ctx context.Context, t *Target, s *Seen) error {
	prompt := t.prompt(10 * blockSize)
	if err := t.begin(ctx, completion(prompt, 1)).end(); err != nil {
		return err
	}
	var err error
	if s.Before, err = t.rest(ctx); err != nil {
		return err
	}
	answer := t.begin(ctx, completion(prompt, 1))
	if err := answer.end(); err != nil {
		return err
	}
	s.Did["prompt"] = float64(len(prompt))
	if answer.usage.Details != nil {
		s.Did["cached"] = float64(answer.usage.Details.Cached)
	}
	return nil
}

// single sends one request and waits for its answer.
func single(path string, prompt int, asked map[string]any) func(ctx context.Context, t *Target, s *Seen) error {
	return func(ctx context.Context, t *Target, _ *Seen) error {
		body := completion(t.prompt(prompt), 1)
		maps.Copy(body, asked)
		_, err := t.must(ctx, path, body)
		return err
	}
}

// refused sends a prompt that the server does not take.
func refused(prompt []int) func(ctx context.Context, t *Target, s *Seen) error {
	return func(ctx context.Context, t *Target, s *Seen) error {
		status, _, err := t.get(ctx, "/v1/completions", completion(prompt, 1))
		s.Did["status"] = float64(status)
		return err
	}
}

// preemption lets a first request fill its 15th block after 20 tokens. The second takes the
// last free block before, so that it has to go when the first needs one more.
func preemption(ctx context.Context, t *Target, s *Seen) error {
	first := t.begin(ctx, completion(t.prompt(15*blockSize-20), 50))
	if err := first.reach(ctx, 1); err != nil {
		return err
	}
	second := t.begin(ctx, completion(t.prompt(15*blockSize-1), 25))
	if err := second.reach(ctx, 1); err != nil {
		return err
	}
	for s.During == nil && !first.over() {
		shown, err := t.metrics(ctx)
		if err != nil {
			return err
		}
		// Both had a token, so the one that waits was preempted.
		if shown.sum("vllm:num_requests_running") == 1 && shown.sum("vllm:num_requests_waiting") == 1 && !second.over() {
			s.During = shown
		}
	}
	if err := errors.Join(first.end(), second.end()); err != nil {
		return err
	}
	at := second.times()
	for i := range at[1:] {
		s.Did["stood"] = max(s.Did["stood"], at[i+1].Sub(at[i]).Seconds())
	}
	if s.During == nil {
		return errors.New("the second request never waited again")
	}
	return nil
}

func noRoom(ctx context.Context, t *Target, _ *Seen) error {
	first := t.begin(ctx, completion(t.prompt(15*blockSize-1), 30))
	if err := first.reach(ctx, 1); err != nil {
		return err
	}
	return errors.Join(t.begin(ctx, completion(t.prompt(20*blockSize), 1)).end(), first.end())
}

func template(ctx context.Context, t *Target, s *Seen) error {
	// The first number is the client's wait, the second what the server reported.
	measure := func(loops string) (waited, reported float64, err error) {
		before, err := t.metrics(ctx)
		if err != nil {
			return 0, 0, err
		}
		began := time.Now()
		_, err = t.must(ctx, "/v1/chat/completions", map[string]any{
			"model": "tiny", "max_tokens": 1, "chat_template": loops + "{% for m in messages %}{{ m['content'] }}{% endfor %}",
			"messages": []any{map[string]any{"role": "user", "content": "ba da"}},
		})
		waited = time.Since(began).Seconds()
		if err != nil {
			return 0, 0, err
		}
		after, err := t.rest(ctx)
		const sum = "vllm:time_to_first_token_seconds_sum"
		return waited, after.sum(sum) - before.sum(sum), err
	}
	// The first request with a template of its own pays for what the server prepares.
	if _, _, err := measure(""); err != nil {
		return err
	}
	short, shortReported, err := measure("")
	if err != nil {
		return err
	}
	long, longReported, err := measure("{% for i in range(300) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
	s.Did["templating"], s.Did["reported"] = long-short, longReported-shortReported
	return err
}

func aborted(ctx context.Context, t *Target, s *Seen) error {
	began := time.Now()
	answer := t.begin(ctx, completion(t.prompt(long), 5))
	for load := 0; load == 0; {
		body, err := t.must(ctx, "/load", nil)
		if err != nil {
			return err
		}
		var said struct {
			Load int `json:"server_load"`
		}
		if err := json.Unmarshal(body, &said); err != nil {
			return err
		}
		load = said.Load
	}
	if err := pause(ctx, 60*time.Millisecond); err != nil {
		return err
	}
	if _, err := t.must(ctx, "/pause?mode=abort", map[string]any{}); err != nil {
		return err
	}
	if err := answer.end(); err != nil {
		return err
	}
	s.Did["tokens"], s.Did["took"] = float64(len(answer.times())), time.Since(began).Seconds()
	_, err := t.must(ctx, "/resume", map[string]any{})
	return err
}
