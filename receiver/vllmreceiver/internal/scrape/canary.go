package scrape

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// MaxCanaries is how many canaries of all targets of a receiver are sent at a time. Without a
// limit a failure of all servers would keep a request to each of them in memory.
const MaxCanaries = 16

// canary sends requests for one token to a server without traffic: the metrics of a server without
// requests do not show that its engine hangs. Its methods can be called on nil, which is a
// target without canaries.
type canary struct {
	scraper  *Target
	settings *CanaryConfig

	mu sync.Mutex
	// begun and ended count canaries. The server may have counted the one token of each that was
	// open at some time since the last scrape. marked is ended when that began, and marking the
	// same of the present scrape.
	begun, ended, marked, marking int
	// runs counts the server processes.
	runs int
	serverRun
	budget lineBudget
}

// serverRun is what is known since the server process started.
type serverRun struct {
	// compared is true once it was scraped, ready if it can serve as far as the last scrape shows,
	// and busy if that shows tokens of other requests. served is when that was the last time.
	compared, ready, busy bool
	served                time.Time
	// tokens is normalize.Serving.Tokens of the last scrape.
	tokens float64
	// rejected is true once it does not take canaries.
	rejected bool
	model    string
	outcome  fetch.CanaryOutcome
	// timeouts is how many canaries in a row timed out, and since when the first was sent.
	timeouts  int
	since     time.Time
	durations emit.CanaryDurations
}

func newCanary(s *Target, settings *CanaryConfig) *canary {
	c := &canary{scraper: s, settings: settings}
	c.durations.Start = s.now()
	return c
}

// Canary returns what sends a canary if one is due, and is called once in each interval of the
// settings. It is nil where all metrics of canaries are off. A canary ends when the target stops.
func (s *Target) Canary(settings *CanaryConfig) (turn func()) {
	if settings.APIKey != "" {
		s.warnIfPlain()
	}
	if !slices.ContainsFunc([]string{emit.MetricCanaryDuration, emit.MetricCanarySuccess, emit.MetricCanaryUnanswered}, s.shared.Emits) {
		return nil
	}
	s.canary = newCanary(s, settings)
	return s.canary.turn
}

// turn sends a canary if it is due, and a second one after a timeout.
func (c *canary) turn() {
	if !c.due() {
		return
	}
	places := c.scraper.shared.canaries
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-c.scraper.stopped.Done():
		return
	}
	for again := true; again && c.due(); {
		again = c.send()
	}
}

// due reports whether a canary would say something that the scrapes do not.
func (c *canary) due() bool {
	now := c.scraper.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready && !c.rejected && !c.busy && now.Sub(c.served) >= c.settings.Interval &&
		!c.scraper.Draining() && c.scraper.stopped.Err() == nil
}

// send sends one canary, and reports whether another one is to follow at once.
func (c *canary) send() (again bool) {
	c.mu.Lock()
	run, model := c.runs, c.model
	c.mu.Unlock()
	ctx := c.scraper.stopped
	request := fetch.Canary{Path: c.settings.Path, Model: c.settings.Model, Key: c.settings.APIKey, Timeout: c.settings.Timeout}
	if request.Model == "" {
		request.Model = model
	}
	if request.Model == "" {
		found, outcome, err := c.scraper.origin.FirstModel(ctx, request)
		c.mu.Lock()
		if c.runs == run {
			c.model = found
			c.reject(err)
		}
		c.mu.Unlock()
		if outcome != fetch.CanaryOK {
			// The list of models does not ask the engine, so this says nothing of it.
			return false
		}
		request.Model = found
	}
	c.mu.Lock()
	c.begun++
	c.mu.Unlock()
	sent := c.scraper.now()
	outcome, err := c.scraper.origin.SendCanary(ctx, request)
	took := c.scraper.now().Sub(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended++
	if c.runs != run || outcome == fetch.CanaryCanceled {
		return false
	}
	c.outcome = outcome
	c.reject(err)
	if outcome == fetch.CanaryOK {
		c.durations.Add(took)
	}
	if outcome != fetch.CanaryTimeout || c.served.After(sent) {
		c.timeouts = 0
		return false
	}
	if c.timeouts == 0 {
		c.since = sent
	}
	c.timeouts++
	return c.timeouts == 1
}

// reject ends the canaries to this server process if it rejects them. The caller holds the lock.
func (c *canary) reject(err error) {
	if err == nil {
		return
	}
	c.rejected, c.outcome = true, ""
	c.budget.log(c.scraper.logger, c.scraper.now(), zapcore.WarnLevel,
		"No more canaries are sent to this target until the server restarts: "+fetch.AsError(err).Message)
}

// scraping is called before the server is asked for its metrics.
func (c *canary) scraping() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marking = c.ended
}

// scraped takes what a scrape shows, unless another process of the address has answered. It
// returns what is known of the canaries.
func (c *canary) scraped(scrape emit.Scrape) *emit.Canary {
	if c == nil {
		return nil
	}
	allowed := c.allowed(scrape.Plan)
	serving := c.scraper.shared.plans.options.Serving(scrape.Snapshot)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scraper.emitter.Foreign(scrape) {
		return c.report(scrape.Time)
	}
	// The first scrape has nothing to compare with, and counts as traffic.
	c.busy = !c.compared || serving.Tokens < c.tokens || serving.Tokens-c.tokens > float64(c.begun-c.marked)
	c.marked, c.tokens, c.compared = c.marking, serving.Tokens, true
	c.ready = allowed && !serving.Asleep && !c.scraper.Draining()
	if c.busy {
		c.served = scrape.Time
	}
	if c.busy || !c.ready {
		// Requests that are served show that an older failure is over.
		c.timeouts = 0
		if c.outcome != fetch.CanaryOK {
			c.outcome = ""
		}
	}
	return c.report(scrape.Time)
}

// failed is called after a scrape that failed, which says more than a canary. It returns what is
// known of the canaries.
func (c *canary) failed(at time.Time) *emit.Canary {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = false
	out := c.report(at)
	out.Unanswered = nil
	if c.outcome == fetch.CanaryOK {
		out.Outcome = ""
	}
	return out
}

// restarted is called when another server process answers.
func (c *canary) restarted(at time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	c.serverRun = serverRun{durations: emit.CanaryDurations{Start: at}}
}

// report returns what is known of the canaries. The caller holds the lock.
func (c *canary) report(at time.Time) *emit.Canary {
	out := &emit.Canary{Outcome: string(c.outcome), Durations: c.durations}
	if c.rejected || c.durations.Count == 0 {
		return out
	}
	waited := 0.0
	if c.timeouts > 1 {
		waited = max(0, at.Sub(c.since).Seconds())
	}
	out.Unanswered = &waited
	return out
}

// allowed reports whether a canary may be sent to this kind of server. Where it may not, the log
// says why, once for each reason.
func (c *canary) allowed(plan *normalize.Plan) bool {
	also := func(word string) bool { return slices.Contains(c.settings.Also, word) }
	reason := ""
	switch {
	case !plan.Answers():
		reason = "its body is not that of a vLLM server; list the servers themselves as targets, or remove canary here"
	case plan.Transfers() && !also(alsoTransfer):
		reason = "it transfers KV with other servers; if it can answer a request alone, add kv_transfer to canary::also"
	case plan.Parallel() && !also(alsoParallel):
		reason = "it has several engines, and a canary tests only one of them; if that is enough, add data_parallel to canary::also"
	}
	if reason != "" && c.scraper.first("canary "+reason) {
		c.scraper.logger.Info("No canaries are sent to this target: "+reason, zap.String("server", string(plan.Server)))
	}
	return reason == ""
}
