package engine

import (
	"container/heap"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// Server is one vLLM server under load. It is not safe for concurrent use.
type Server struct {
	cfg      Config
	arrivals *arrivals
	// countedSince is when the statistics began.
	countedSince float64
	loop         *loop
	sends        sends
	// drawnUnder are the present values, for requests that can be sent again; nil if none
	// was drawn under them. serials and sentHere count requests, those of Send.
	drawnUnder        *values
	serials, sentHere int
	engines           []*core
	stats             []*observed.Stats
	adapters          []adapterLog
	rates             []rates
	val               values

	now     float64
	change  int     // The next of cfg.Changes.
	left    int     // How often clients have left together.
	busy    float64 // Until when the front end has work.
	turn    int     // Of round robin.
	leavers leavers
	// leaversKept is how many there were when those that had ended were taken out.
	leaversKept int
	// together is the state of engines in lockstep.
	together lockstep

	// reports are those that the front end has not worked on yet.
	reports  []*report
	head     int
	spare    []*report
	outcomes []Outcome
	// live are requests that have not ended, by number; only with KeepOutcomes.
	live    map[int]*request
	journal journal
	// returning are requests of which the front end will have more for the engine, members
	// how many parts of requests there were.
	returning returning
	members   int
	// media are the images in the cache, lookups those that no engine has counted yet.
	media   map[int]bool
	lookups []mediaLookup
}

// New returns a server at time 0, or an error that names the invalid setting.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, val: nominalValues(),
		journal:  journal{to: cfg.Journal, lookups: map[int][]Event{}},
		arrivals: newArrivals(cfg.Seed, cfg.Workload, cfg.MaxModelLen),
	}
	s.loop = newLoop(s.arrivals)
	if cfg.KeepOutcomes {
		s.live = map[int]*request{}
	}
	for range cfg.Engines {
		s.addEngine()
	}
	s.setRate(0, s.val[ParamArrivalRate])
	return s, nil
}

// Stats returns what the server observes of each engine. They change with the
// next AdvanceTo.
func (s *Server) Stats() []*observed.Stats { return s.stats }

// AdvanceTo works until t seconds after the start. A step that would end after
// t stays under way and ends in a later call. An overfull server does nothing.
func (s *Server) AdvanceTo(t float64) {
	for !s.Overfull() {
		if !s.next(t) {
			break
		}
	}
	if s.Overfull() {
		return
	}
	s.now = max(s.now, t)
	s.catchUp(t)
	for i := range s.stats {
		s.rollRates(i, t)
	}
}

// next carries out the earliest event up to t. At equal times changes are
// first, then arrivals, clients that leave, parts of requests that come back, what clients
// send in reaction to an answer, answers, and engines in their order.
func (s *Server) next(t float64) bool {
	at, what := s.nextChange(), 0
	if s.arrivals.at < at {
		at, what = s.arrivals.at, 1
	}
	if len(s.leavers) > 0 && s.leavers[0].leaves < at {
		at, what = s.leavers[0].leaves, 2
	}
	if len(s.returning) > 0 && s.returning[0].at < at {
		at, what = s.returning[0].at, 4
	}
	if len(s.sends) > 0 && s.sends[0].at < at {
		at, what = s.sends[0].at, 5
	}
	if s.head < len(s.reports) && s.reacts() && s.reports[s.head].stamp < at {
		at, what = s.reports[s.head].stamp, 6
	}
	step, which := s.nextStep()
	if step < at {
		at, what = step, 3
	}
	if at > t || math.IsInf(at, 1) {
		return false
	}
	s.now = max(s.now, at)
	switch what {
	case 0:
		s.apply(s.cfg.Changes[s.change])
		s.change++
		s.drawnUnder = nil
		s.setRate(s.now, s.val[ParamArrivalRate])
	case 1:
		s.arrive()
	case 2:
		s.leave(heap.Pop(&s.leavers).(*request))
	case 4:
		s.comeBack()
	case 5:
		s.sendDue()
	case 6:
		s.catchUp(s.now)
	default:
		s.work(which)
	}
	return true
}

func (s *Server) nextChange() float64 {
	if s.change < len(s.cfg.Changes) {
		return s.cfg.Changes[s.change].At
	}
	return math.Inf(1)
}

// serve adds some seconds of work for the front end at this moment. It returns when that
// work begins and ends.
func (s *Server) serve(seconds float64) (begin, end float64) {
	begin = max(s.now, s.busy)
	s.busy = begin + seconds*s.val[ParamFrontEnd]/float64(s.cfg.FrontEnd.Processes)
	return begin, s.busy
}

// arrive takes in the next request.
func (s *Server) arrive() {
	if r := s.arrivals.take(&s.val); r != nil {
		s.submit(s.asked(r))
	}
}

// newSerial returns the next serial number of a request.
func (s *Server) newSerial() int {
	s.serials++
	return s.serials
}

// submit gives a request to the front end.
func (s *Server) submit(r *request) {
	r.serial = s.newSerial()
	if s.live != nil {
		s.live[r.id] = r
	}
	s.lookUpMedia(r)
	switch {
	case (r.choices > 1 || r.beams > 0) && r.end != EndRefused:
		s.submitGroup(r)
	default:
		s.toEngine(r)
		if !math.IsInf(r.leaves, 1) && !r.done {
			s.pushLeaver(r)
		}
	}
}

// toEngine lets the front end work on a request and gives it to an engine.
func (s *Server) toEngine(r *request) {
	f := s.cfg.FrontEnd
	if r.end == EndRefused {
		s.sent(r)
		rep := s.newReport()
		r.takenUp, rep.stamp = s.serve(f.RequestSeconds)
		rep.refused = r
		r.done = true
		s.reports = append(s.reports, rep)
		return
	}
	r.takenUp, r.tokenized = s.serve(f.RequestSeconds + f.PromptTokenSeconds*float64(r.prompt))
	r.queued = r.tokenized + f.DelaySeconds
	r.stamped = r.takenUp
	if s.cfg.Semantics.ArrivalAfterTokenizing {
		r.stamped = r.tokenized
	}
	r.firstQueued = r.queued
	r.tokens, r.cached = r.prompt, -1
	r.engine = s.route(r)
	if r.client == nil {
		s.sent(r)
	}
	s.engines[r.engine].inbox.push(r)
}

// route picks the engine for a request.
func (s *Server) route(r *request) int {
	switch {
	case len(s.engines) == 1:
		return 0
	case s.cfg.Router == RouteRoundRobin:
		turn := s.turn
		s.turn = (turn + 1) % len(s.engines)
		return turn
	case s.cfg.Router == RouteWeights:
		total := 0.0
		for _, w := range s.cfg.Weights {
			total += w
		}
		at := r.route * total
		for i, w := range s.cfg.Weights {
			if at < w {
				return i
			}
			at -= w
		}
		return len(s.engines) - 1
	}
	best, least := 0, math.MaxInt
	for i := range s.engines {
		c := s.engines[(s.turn+i)%len(s.engines)]
		if load := 4*(c.queued+len(c.fetching)+len(c.inbox.live())) + len(c.running); load < least {
			best, least = c.index, load
		}
	}
	s.turn = (best + 1) % len(s.engines)
	return best
}

// work ends an engine's step, if one is under way, and begins the next.
func (s *Server) work(c *core) {
	if s.cfg.Lockstep {
		s.stepTogether()
	} else {
		s.endStep(c)
		s.beginStep(c)
	}
	s.catchUp(s.now)
}

// endStep ends the step that is under way.
func (s *Server) endStep(c *core) {
	if !c.stepping {
		return
	}
	rep := s.newReport()
	rep.engine, rep.previous = c.index, c.lastEnd
	c.finish(rep)
	c.lastEnd = c.ends
	_, rep.stamp = s.serve(s.cfg.FrontEnd.BatchSeconds + s.cfg.FrontEnd.TokenSeconds*float64(rep.generated))
	s.reports = append(s.reports, rep)
	s.continueEnded(rep)
	if c.val[ParamSleep] > 0 {
		s.fallAsleep(c)
	}
}

// beginStep begins a step where there is something to work on.
func (s *Server) beginStep(c *core) {
	switch {
	case c.plan(s.now):
		c.unreported = false
	case len(c.ended) > 0, c.unreported && !s.cfg.Semantics.FrozenAfterAborts:
		s.reportEmptyStep(c)
	}
}

// continueEnded continues sessions and beam searches when the front end has worked on a
// report.
func (s *Server) continueEnded(rep *report) {
	for _, ev := range rep.events {
		switch {
		case ev.kind == evChunk:
			s.pushReturning(ev.r, rep.stamp+ev.r.session.pause)
		case ev.kind == evFinished && ev.r.client != nil:
			s.memberDone(ev.r, rep.stamp)
		}
	}
}

// reportEmptyStep reports a step without requests, as vLLM does after requests that
// ended outside a step. Otherwise a server whose last client has left would show that
// request for ever.
func (s *Server) reportEmptyStep(c *core) {
	c.unreported = false
	c.batch.reset()
	rep := s.newReport()
	rep.engine, rep.end = c.index, s.now
	c.finishReport(rep)
	_, rep.stamp = s.serve(s.cfg.FrontEnd.BatchSeconds)
	s.reports = append(s.reports, rep)
}

func (s *Server) newReport() *report {
	if n := len(s.spare); n > 0 {
		rep := s.spare[n-1]
		s.spare = s.spare[:n-1]
		rep.reset()
		return rep
	}
	return &report{}
}

// catchUp takes in the reports that the front end has worked on by t.
func (s *Server) catchUp(t float64) {
	for s.head < len(s.reports) && s.reports[s.head].stamp <= t {
		rep := s.reports[s.head]
		s.passOn(rep) // Before the end of a request, which can be in the same report.
		s.observe(rep)
		s.worked(rep)
		s.spare = append(s.spare, rep)
		s.reports[s.head] = nil
		s.head++
	}
	switch {
	case s.head == len(s.reports):
		s.reports, s.head = s.reports[:0], 0
	case s.head > 256 && s.head > len(s.reports)/2:
		n := copy(s.reports, s.reports[s.head:])
		clear(s.reports[n:])
		s.reports, s.head = s.reports[:n], 0
	}
}
