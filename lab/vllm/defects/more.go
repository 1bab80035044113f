package defects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func nothing(context.Context, *Target, *Seen) error { return nil }

// ofEngines are the events on a server with two engines, ofFrontEnds those on one with two
// API servers and drafts.
var ofEngines = []Event{
	{
		Name: "two-engines", About: "nothing is asked of two engines", Do: nothing,
		Shows: []Judgement{
			{Defect: catalog.DefectBlocksSummedOverEngines, Find: func(s *Seen) Finding {
				of, unknown := numberOfBlocks(s.After)
				return unless(unknown == 0, "the number is None", Number{"blocks of each engine", of, exactly(blocks), exactly(2 * blocks)})
			}},
			{Defect: catalog.DefectOnlyLastEngine, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{"engines", float64(len(s.After.values("vllm:num_requests_running", "engine"))), exactly(2), exactly(1)}}}
			}},
		},
	},
}

var ofFrontEnds = []Event{
	{
		Name: "two-front-ends", About: "nothing is asked of two API servers", Do: nothing,
		Shows: []Judgement{
			{Defect: catalog.DefectBlocksUnknownToApiServers, Find: func(s *Seen) Finding {
				_, unknown := numberOfBlocks(s.After)
				return Finding{Numbers: []Number{{"engines whose number of blocks is None", unknown, exactly(0), atLeast(1)}}}
			}},
		},
	},
	{
		Name: "spread", About: "eight requests run together on one engine", Do: spread,
		Shows: []Judgement{
			{Defect: catalog.DefectStepsSplitOverApiServers, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{
					"observations for each step", s.rise("vllm:iteration_tokens_total_count") / s.Did["steps"], atMost(1.05), Span{1.3, 2.1},
				}}}
			}},
			{Defect: catalog.DefectUsagePerProcess, Find: func(s *Seen) Finding {
				return Finding{Numbers: []Number{{
					"series of the usage for the first engine", float64(s.After.values("vllm:kv_cache_usage_perc", "engine")["0"]), exactly(1), exactly(2),
				}}}
			}},
		},
	},
	{
		Name: "drafts", About: "a text that repeats itself, so that drafts fit", Do: drafts,
		Shows: []Judgement{{Defect: catalog.DefectGapPerOutput, Find: func(s *Seen) Finding {
			accepted := s.rise("vllm:spec_decode_num_accepted_tokens_total")
			gaps := s.Did["tokens"] - 1
			return unless(accepted > 4, "no draft was accepted", Number{
				"observed times between two tokens", s.rise("vllm:inter_token_latency_seconds_count"), exactly(gaps), Span{1, gaps - 3},
			})
		}}},
	},
}

// numberOfBlocks is what each engine says, and how many say None.
func numberOfBlocks(shown Shown) (each, unknown float64) {
	for text, times := range shown.values("vllm:cache_config_info", "num_gpu_blocks") {
		var n float64
		if _, err := fmt.Sscan(text, &n); err != nil {
			unknown += float64(times)
			continue
		}
		each = max(each, n)
	}
	return each, unknown
}

// spread lets requests run together. The steps with a token are known from the clients: those
// before the last request's first token, as many as the first one has tokens by then, and one
// for each token of the last one. Which API server takes a connection is by chance, so it is
// tried again where a single one seems to have all.
func spread(ctx context.Context, t *Target, s *Seen) error {
	const output = 24
	for range 3 {
		var err error
		if s.Before, err = t.rest(ctx); err != nil {
			return err
		}
		var answers []*Stream
		for range 8 {
			answers = append(answers, t.begin(ctx, completion(t.prompt(20), output)))
			if err := pause(ctx, 25*time.Millisecond); err != nil {
				return err
			}
		}
		for _, a := range answers {
			err = errors.Join(err, a.end(), a.reach(ctx, 1))
		}
		if err != nil {
			return err
		}
		last := answers[0].times()[0]
		for _, a := range answers {
			if first := a.times()[0]; first.After(last) {
				last = first
			}
		}
		most := 0
		for _, a := range answers {
			before := 0
			for _, at := range a.times() {
				if at.Before(last) {
					before++
				}
			}
			most = max(most, before)
		}
		s.Did["steps"] = float64(output + most)
		if s.After, err = t.rest(ctx); err != nil {
			return err
		}
		if s.rise("vllm:iteration_tokens_total_count") > 1.3*s.Did["steps"] {
			return nil
		}
	}
	return nil
}

func drafts(ctx context.Context, t *Target, s *Seen) error {
	const output = 40
	part := t.prompt(8)
	var prompt []int
	for range 10 {
		prompt = append(prompt, part...)
	}
	asked := completion(prompt, output)
	asked["temperature"] = 0.0
	answer := t.begin(ctx, asked)
	err := answer.end()
	s.Did["tokens"] = float64(answer.usage.Output)
	return err
}

// adaptersInUse is the gauge with the adapters in use, whose value is its time.
const adaptersInUse = "vllm:lora_requests_info"

// lists are the adapters that are shown as waiting and as running.
func lists(shown Shown) (waiting, running []string) {
	labels := shown.newest(adaptersInUse).labels
	comma := func(r rune) bool { return r == ',' }
	return strings.FieldsFunc(labels["waiting_lora_adapters"], comma), strings.FieldsFunc(labels["running_lora_adapters"], comma)
}

func count(list []string, name string) float64 {
	n := 0.0
	for _, one := range list {
		if one == name {
			n++
		}
	}
	return n
}

// listed is the number of adapters that are in a list.
func listed(shown Shown) float64 {
	waiting, running := lists(shown)
	all := slices.Concat(waiting, running)
	slices.Sort(all)
	return float64(len(slices.Compact(all)))
}

func twoAdapters(ctx context.Context, t *Target, s *Seen) error {
	ask := func(model string, output int) *Stream {
		body := completion(t.prompt(20), output)
		body["model"] = model
		return t.begin(ctx, body)
	}
	first := ask("adapter-1", 40)
	if err := first.reach(ctx, 2); err != nil {
		return err
	}
	second := ask("adapter-2", 2)
	for s.During == nil && !first.over() {
		shown, err := t.metrics(ctx)
		if err != nil {
			return err
		}
		if shown.sum("vllm:num_requests_running") == 1 && shown.sum("vllm:num_requests_waiting") == 1 {
			s.During = shown
		}
	}
	if err := errors.Join(first.end(), second.end()); err != nil {
		return err
	}
	if s.During == nil {
		return errors.New("the second request never waited")
	}
	return nil
}
