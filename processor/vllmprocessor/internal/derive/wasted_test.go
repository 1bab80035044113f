package derive_test

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func (s *scope) reasons(put func(string, string, float64, bool)) {
	s.shares(put, "vllm.request.finished_ratio", input.RequestSuccess, input.RequestSuccess)

	var rejected, work, lower, upper, prompts float64
	held := false
	spec, abandoned := false, true
	for _, e := range s.engines {
		drafted, kd := s.increase(e, input.DraftTokens, s.from)
		accepted, ka := s.increase(e, input.AcceptedTokens, s.from)
		generated, kg := s.increase(e, input.GenerationTokens, s.from)
		p, l, u, k := s.abandoned(e)
		if first(kd, ka, kg, k) == pending {
			held = true
		}
		if first(kd, ka, kg) == present {
			rejected, work, spec = rejected+drafted-accepted, work+drafted+generated, true
		}
		if k == present {
			prompts, lower, upper = prompts+p, lower+l, upper+u
		} else {
			abandoned = false
		}
	}
	if held {
		return
	}
	put("vllm.wasted_tokens_ratio", "rejected_drafts\x00", rejected/work, spec && work > 0 && !s.hidesDrafts())
	put("vllm.wasted_tokens_ratio", "abandoned_prefill\x00lower", lower/prompts, abandoned && prompts > 0)
	put("vllm.wasted_tokens_ratio", "abandoned_prefill\x00upper", upper/prompts, abandoned && prompts > 0)
}

func (s *scope) hidesDrafts() bool { return len(s.engines) == 1 && s.misattributed(s.now) }

// abandoned is the interval of prompt tokens that no request accounts for.
func (s *scope) abandoned(e string) (prompts, lower, upper float64, k known) {
	prompts, kp := s.increase(e, input.PromptTokens, s.longFrom)
	done, kd := s.observations(e, input.RequestPromptTokens, s.longFrom)
	if kp == present && kd == never {
		kd = present
	}
	running, kr := s.level(e, input.Running, "")
	change, kc := s.moved(e, input.Running, s.longFrom)
	if k = s.unbroken(e, first(kp, kd, kr, kc)); k != present {
		return 0, 0, 0, k
	}
	before := running - change
	longest := 0.0
	if running > 0 || before > 0 {
		var ok bool
		if longest, ok = s.longest(e); !ok {
			return 0, 0, 0, never
		}
	}
	lower = math.Min(math.Max(prompts-done.sum()-running*longest, 0), prompts)
	upper = math.Min(math.Max(prompts-done.sum()+before*longest, 0), prompts)
	return prompts, lower, upper, present
}

// unbroken is unknown where the engine restarted within the long window: the newest life
// that was seen up to its start has ended since, as somebody saw.
func (s *scope) unbroken(e string, k known) known {
	then := -1
	for i := range s.now + 1 {
		switch {
		case !s.speaks(e, i):
		case i <= s.longFrom:
			then = s.life(e, s.scrapes[i])
		case then >= 0 && s.life(e, s.scrapes[i]) != then && k == present:
			return unknown
		}
	}
	return k
}

// longest is the bound of the highest bucket with a finished prompt, by the
// bounds of the present life.
func (s *scope) longest(e string) (float64, bool) {
	all := s.of(e, input.RequestPromptTokens)
	if len(all) == 0 {
		return 0, false
	}
	one, look := all[0], s.seen[all[0]]
	life := s.life(e, s.scrapes[s.now])
	bounds := one.bounds[life]
	highest := 0.0
	count := func(value float64) {
		i, _ := slices.BinarySearch(bounds, value)
		if i == len(bounds) {
			last := strconv.FormatFloat(bounds[i-1], 'f', 0, 64)
			next, known := map[byte]float64{'1': 2, '2': 2.5, '5': 2}[last[0]]
			if !known || strings.Trim(last[1:], "0") != "" {
				highest = math.Inf(1)
			}
			highest = max(highest, bounds[i-1]*next)
			return
		}
		highest = max(highest, bounds[i])
	}
	since := look.since[s.now]
	for _, o := range one.events { // what had happened when it was first seen
		if since >= 0 && look.exposed[since] && o.at <= s.scrapes[since] && s.life(e, o.at) == s.life(e, s.scrapes[since]) &&
			s.sameBounds(one, s.life(e, o.at), life) {
			count(o.value)
		}
	}
	for _, n := range look.noticed {
		if n.scrape > since && n.scrape <= s.now && s.sameBounds(one, n.life, life) {
			count(n.value)
		}
	}
	return highest, highest > 0 && !math.IsInf(highest, 1)
}

// sameBounds reports whether the bounds did not change between two lives, as far
// as anyone saw.
func (s *scope) sameBounds(one *stream, from, to int) bool {
	for life := from; life <= to; life++ {
		if slices.Equal(one.bounds[life], one.bounds[to]) {
			continue
		}
		for i := range s.now + 1 {
			if s.seen[one].exposed[i] && s.life(one.engine, s.scrapes[i]) == life {
				return false
			}
		}
	}
	return true
}
