package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// report is what an engine sends to the front end at the end of a step. The
// numbers that the server shows change when the front end works on it, not
// before: a front end that lags shows an old state.
//
// The moments of observation are those of vLLM (metrics/stats.py, metrics/loggers.py):
//
//   - Gauges, prefix lookups, drafts, evicted blocks: with each step, hence never
//     while there is none.
//   - Generated tokens, distances between tokens: with the step that gave them,
//     the distances on the engine's clock.
//   - Prompt tokens and time to first token: with the step that ends the prefill,
//     the time on the front end's clock from when it took the request up.
//   - Tokens per iteration: per step that gave output; a prompt counts whole in
//     the step that ends its prefill.
//   - Preemptions: with the next output of the request that was preempted, since
//     the event travels with it. Of a request that never gets there none counts.
//   - Queue, prefill, decode, inference and whole time, lengths, reasons: when a
//     request is complete. A client that leaves makes no observation at all.
type report struct {
	engine int
	// previous is the end of the step before; end of this one; stamp is when the
	// front end has worked on it.
	previous, end, stamp, gap float64

	running, waiting, deferredNow int
	// usage is the share of the KV blocks in use. shownUsage, and what is aborted but still
	// shown, differ from the truth in some versions.
	usage, shownUsage          float64
	goneRunning, goneWaiting   int
	lookedUp, lookedUpBlocks   int
	found                      int
	askedOut, foundOut, failed int
	flops, read, written       float64
	adaptersRunning            uint64
	adaptersWaiting            uint64

	// process is the API server that gets the first output of the step, perProcess how many
	// tokens each gets where there are several.
	process                        int
	perProcess                     []int
	generated, steady, preemptions int
	drafts, drafted                int
	accepted                       [maxDraft]int
	events                         []event

	// refused is a request that the front end refused; then there is nothing else.
	refused *request
	// evicted are followed blocks whose content was thrown out.
	evicted []blockEnd
	// parts are what clients get of the step; only with Config.Tokens.
	parts []part
}

// part is a part of an answer.
type part struct {
	r      *request
	tokens int
}

// maxDraft is the greatest number of tokens that can be drafted per step.
const maxDraft = 16

type eventKind uint8

const (
	evFirst eventKind = iota
	evGap
	evFinished
	// evUnscheduled is a request that the engine ended before it was scheduled.
	evUnscheduled
	// evChunk is the end of the answer to a chunk of a session.
	evChunk
)

type event struct {
	kind  eventKind
	r     *request
	value float64
}

func (rep *report) add(kind eventKind, r *request, value float64) {
	rep.events = append(rep.events, event{kind, r, value})
}

// reset makes the report empty and keeps its memory.
func (rep *report) reset() {
	clear(rep.parts)
	*rep = report{events: rep.events[:0], perProcess: rep.perProcess[:0], parts: rep.parts[:0]}
}

// passOn gives clients what they get of a step.
func (s *Server) passOn(rep *report) {
	for _, p := range rep.parts {
		if !p.r.gone {
			s.cfg.Tokens(p.r.asClient().id, p.tokens, rep.stamp)
		}
	}
}

// answerBytes is the length of the answer that HTTP announces. A stream announces none.
func (r *request) answerBytes() int {
	if r.streams {
		return 0
	}
	return r.generated*5 + 350
}

// asClient is the request of the client that this one is, or is a part of.
func (r *request) asClient() *request {
	if r.client != nil {
		return r.client
	}
	return r
}

// share adds tokens to those of the API server that has the request.
func (rep *report) share(r *request, tokens, processes int) {
	if processes == 1 {
		return
	}
	if len(rep.perProcess) == 0 {
		rep.perProcess = slices.Grow(rep.perProcess, processes)[:processes]
		clear(rep.perProcess)
	}
	rep.perProcess[r.id%processes] += tokens
}

// observe takes a report into the numbers of its engine.
func (s *Server) observe(rep *report) {
	st := s.stats[rep.engine]
	now := rep.stamp
	if r := rep.refused; r != nil {
		st.Answered(now, r.path(), r.statusGroup(&s.cfg.Semantics), now-r.takenUp, r.prompt*4+300, 160)
		s.addOutcome(r, now)
		return
	}
	s.rollRates(rep.engine, now)
	s.countMedia(st, now)
	st.Running, st.WaitingCapacity, st.WaitingDeferred = rep.running+rep.goneRunning, rep.waiting+rep.goneWaiting, rep.deferredNow
	st.KVUsage = rep.shownUsage
	if n := s.cfg.FrontEnd.Processes; n > 1 {
		if st.ProcessUsage == nil {
			st.ProcessUsage = make([]float64, n)
		}
		st.ProcessUsage[rep.process] = rep.shownUsage
	}
	st.LastStep = now
	size := float64(s.cfg.BlockSize)
	st.PrefixQueries += float64(rep.lookedUp)
	st.PrefixHits += float64(rep.found)
	st.PrefixQueryBlocks += float64(rep.lookedUpBlocks)
	st.PrefixHitBlocks += float64(rep.found) / size
	st.ExternalQueries += float64(rep.askedOut)
	st.ExternalHits += float64(rep.foundOut)
	st.TransferFailures += float64(rep.failed)
	st.Flops += rep.flops
	st.ReadBytes += rep.read
	st.WriteBytes += rep.written
	st.Preemptions += float64(rep.preemptions)
	st.Drafts += float64(rep.drafts)
	st.DraftTokens += float64(rep.drafted)
	for pos := range st.AcceptedPerPosition {
		st.AcceptedTokens += float64(rep.accepted[pos])
		st.AcceptedPerPosition[pos] += float64(rep.accepted[pos])
	}
	st.GenerationTokens += float64(rep.generated)
	st.InterToken.ObserveN(rep.gap, rep.steady)
	for _, end := range rep.evicted {
		st.BlockLifetime.Observe(end.lifetime)
		st.BlockIdle.Observe(end.idle)
		for _, gap := range end.gaps {
			st.BlockReuseGap.Observe(gap)
		}
	}
	prompts := 0
	for _, ev := range rep.events {
		switch ev.kind {
		case evFirst:
			n := s.observeFirst(st, ev.r, now)
			prompts += n
			rep.share(ev.r, n, s.cfg.FrontEnd.Processes)
		case evGap:
			st.InterToken.Observe(ev.value)
		case evFinished:
			s.observeEnd(st, ev.r, s.moments(ev.r), now)
		case evUnscheduled:
			prompts += s.observeUnscheduled(st, ev.r, rep.end, now)
		}
	}
	s.observeStep(st, rep, prompts)
	if s.cfg.MaxLoRAs > 0 {
		s.adapters[rep.engine].record(st, rep.adaptersRunning, rep.adaptersWaiting, now)
	}
}

// observeStep observes the tokens of a step, unless it gave no output.
func (s *Server) observeStep(st *observed.Stats, rep *report, prompts int) {
	if s.cfg.Semantics.StepPerProcess && len(rep.perProcess) > 0 {
		for _, n := range rep.perProcess {
			if n > 0 {
				st.IterationTokens.Observe(float64(n))
			}
		}
		return
	}
	if n := prompts + rep.generated; n > 0 {
		st.IterationTokens.Observe(float64(n))
	}
}

// observeFirst returns the prompt tokens that count for the iteration.
func (s *Server) observeFirst(st *observed.Stats, r *request, now float64) int {
	if r.gone {
		return 0 // The front end has forgotten it.
	}
	chunk := r.firstSeen > 0
	if !chunk {
		r.firstSeen = now
	}
	if r.client != nil && r.client.firstSeen == 0 {
		r.client.firstSeen = now
	}
	if (!chunk || s.cfg.Semantics.SessionPerChunk) && !s.cfg.Semantics.FirstTokenAtEnd {
		st.FirstToken.Observe(now - r.stamped)
	}
	if chunk && !s.cfg.Semantics.PromptPerChunk {
		return 0
	}
	st.PromptTokens += float64(r.prompt)
	st.PromptCached += float64(r.cached)
	st.PromptExternal += float64(r.external)
	if s.cfg.Semantics.IterationWithCached {
		return r.prompt
	}
	return r.prompt - r.cached
}

// observeUnscheduled observes a request that ended before it was scheduled. It returns the
// prompt tokens that count for the iteration.
func (s *Server) observeUnscheduled(st *observed.Stats, r *request, ended, now float64) int {
	prompts := 0
	if r.gone {
		return prompts
	}
	if s.cfg.Semantics.FirstWithoutToken && !s.uncounted(r) {
		st.FirstToken.Observe(now - r.stamped)
		st.PromptTokens += float64(r.prompt)
		prompts = r.prompt
	}
	s.observeEnd(st, r, s.unreached(r, ended), now)
	return prompts
}

// moments are those between which durations are observed. They are on the engine's clock.
type moments struct{ queued, admitted, first, last float64 }

// moments are those of a request that got tokens.
func (s *Server) moments(r *request) moments {
	m := moments{r.firstQueued, r.admitted, r.firstToken, r.lastToken}
	if r.session != nil && s.cfg.Semantics.SessionPerChunk {
		m.first = r.session.first
	}
	if s.cfg.Semantics.RequeuedSessions {
		m.queued = r.queued
	}
	return m
}

// unreached are the moments that the statistics take a request to have that ended before
// its first token: the output that tells its end counts as its first, and if it was not
// admitted that was at the time 0 of the host.
func (s *Server) unreached(r *request, ended float64) moments {
	m := moments{r.firstQueued, r.admitted, ended, ended}
	switch {
	case r.started:
	case s.cfg.Semantics.UnguardedDurations:
		m.admitted = -s.cfg.HostUptime
	default:
		m.admitted, m.first, m.last = r.firstQueued, r.firstQueued, r.firstQueued
	}
	return m
}

// abortedUnreached is the same for a request that is aborted before its first token. Its
// end carries none of its moments, which would have come with its first output.
func (s *Server) abortedUnreached(st *observed.Stats, r *request) moments {
	if s.cfg.Semantics.FirstWithoutToken {
		st.FirstToken.Observe(s.now - r.stamped)
		st.PromptTokens += float64(r.prompt)
	}
	m := moments{s.now, s.now, s.now, s.now}
	if s.cfg.Semantics.UnguardedDurations {
		m.queued, m.admitted = -s.cfg.HostUptime, -s.cfg.HostUptime
	}
	return m
}

// uncounted reports whether no observation is made of the end of a request.
func (s *Server) uncounted(r *request) bool {
	switch r.end {
	case EndLeft:
		return !s.cfg.Semantics.AbortsCounted
	case EndAborted:
		return !s.cfg.Semantics.EngineAbortsCounted
	case EndError:
		return s.cfg.Semantics.ErrorsUncounted
	default:
		return false
	}
}

func (s *Server) observeEnd(st *observed.Stats, r *request, m moments, now float64) {
	if r.gone {
		return
	}
	if r.client == nil {
		st.Answered(now, r.path(), r.statusGroup(&s.cfg.Semantics), now-r.takenUp, r.prompt*4+300, r.answerBytes())
		s.addOutcome(r, now)
	}
	if !s.uncounted(r) {
		s.observeDurations(st, r, m, now)
	}
	if r.client != nil {
		s.memberSeen(st, r, now)
	}
}

// observeDurations makes the observations of a request that has ended.
func (s *Server) observeDurations(st *observed.Stats, r *request, m moments, now float64) {
	st.Finished[reasons[r.end]]++
	if s.cfg.Semantics.FirstTokenAtEnd && r.firstSeen > 0 {
		st.FirstToken.Observe(r.firstSeen - r.stamped)
	}
	if r.corrupted {
		st.Corrupted++
	}
	st.PromptLength.Observe(float64(r.prompt))
	st.GenerationLength.Observe(float64(r.generated))
	s.observeParams(st, r)
	if r.maxTokens > 0 {
		st.ParamsMaxTokens.Observe(float64(r.maxTokens))
	}
	decode := m.last - m.first
	mean := 0.0
	if r.generated > 1 {
		mean = decode / float64(r.generated-1)
	}
	st.TokenMean.Observe(mean)
	st.EndToEnd.Observe(now - r.stamped)
	st.Queue.Observe(m.admitted - m.queued)
	st.Inference.Observe(m.last - m.admitted)
	st.Prefill.Observe(m.first - m.admitted)
	st.Decode.Observe(decode)
	st.PrefillComputed.Observe(float64(r.prompt - max(0, r.cached)))
	st.RequestPreemptions.Observe(float64(r.preemptions))
}

var reasons = map[End]observed.Reason{
	EndStop: observed.ReasonStop, EndLength: observed.ReasonLength, EndError: observed.ReasonError,
	EndLeft: observed.ReasonAbort, EndAborted: observed.ReasonAbort,
}

func (r *request) path() string {
	if r.completions {
		return "/v1/completions"
	}
	return "/v1/chat/completions"
}

// adapterLog keeps the sets of adapters that were seen together, as vLLM's
// lora_requests_info does: each with the time when it was last so.
type adapterLog struct {
	running, waiting uint64
	at               int
	any              bool
}

func (a *adapterLog) record(st *observed.Stats, running, waiting uint64, now float64) {
	if !a.any || running != a.running || waiting != a.waiting {
		a.any, a.running, a.waiting = true, running, waiting
		names, queued := adapterNames(running), adapterNames(waiting)
		a.at = slices.IndexFunc(st.Adapters, func(s observed.AdapterSet) bool {
			return s.Running == names && s.Waiting == queued
		})
		if a.at < 0 {
			a.at = len(st.Adapters)
			st.Adapters = append(st.Adapters, observed.AdapterSet{Running: names, Waiting: queued, First: now})
		}
	}
	st.Adapters[a.at].Last = now
}

func adapterNames(set uint64) string {
	var names []string
	for i := 1; i <= maxAdapters; i++ {
		if set&(1<<i) != 0 {
			names = append(names, fmt.Sprintf("adapter-%02d", i))
		}
	}
	return strings.Join(names, ",")
}
