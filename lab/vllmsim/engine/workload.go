package engine

import (
	"fmt"
	"math"
)

// Lengths is a lognormal distribution of lengths in tokens, at least 1. With
// Sigma 0 all are equal to the median.
type Lengths struct{ Median, Sigma float64 }

// Workload is what clients ask of one server.
type Workload struct {
	// Rate is the mean arrival rate in requests per second.
	Rate float64
	// CV is the coefficient of variation of the distances between arrivals,
	// which are gamma distributed; 0 stands for 1, a Poisson process. Above 1
	// requests arrive in clusters.
	CV float64
	// Swing is the share by which the rate rises and falls as a sine wave of
	// Period seconds, 86400 for a day; it begins at the mean, rising.
	Swing, Period float64
	// Bursts multiply the rate by BurstFactor, for BurstSeconds and every
	// BurstEvery seconds, both in the mean; their times are random.
	BurstFactor, BurstEvery, BurstSeconds float64

	Prompt, Output Lengths
	// MaxTokens are the values of max_tokens that clients use, 0 for none, all
	// equally often. A request that reaches it ends for the reason "length".
	MaxTokens []int

	// PrefixShare is the share of requests whose prompt starts with one of
	// Prefixes common beginnings of PrefixTokens tokens. The popularity of the
	// beginnings falls with their number; PrefixSkew 1 makes all equally
	// popular, 2 (the default) the first ones more so.
	PrefixShare  float64
	Prefixes     int
	PrefixTokens int
	PrefixSkew   float64

	// AdapterShare is the share of requests for one of Adapters LoRA adapters.
	AdapterShare float64
	Adapters     int

	// LeaveEarly is the share of clients that lose patience before the first
	// token, after Patience seconds in the mean (exponential); LeaveLate the
	// share that stops reading at a random token.
	LeaveEarly, LeaveLate, Patience float64
	// Timeout is when every client gives up that has no complete answer, in
	// seconds; 0 is never.
	Timeout float64
	// Refused is the share of requests that the front end answers with 400.
	Refused float64

	// ChoicesShare is the share of requests for several Choices (the parameter n).
	ChoicesShare float64
	Choices      int
	// BeamShare is the share of requests for a beam search with Beams beams.
	BeamShare float64
	Beams     int
	// SessionShare is the share of requests whose prompt arrives in Chunks, each
	// ChunkPause seconds after the answer to the one before.
	SessionShare float64
	Chunks       int
	ChunkPause   float64
	// MediaShare is the share of requests with one of Media images.
	MediaShare float64
	Media      int

	// Traffic is replayed instead of drawing arrivals and lengths: the rate and what belongs
	// to it, Prompt and Output mean nothing then. Speed divides the times of its arrivals (0
	// means 1), From is where it begins, in its own seconds.
	//
	// MaxTokens, adapters, impatient clients and all the rest are still drawn, and a
	// shared beginning where the traffic has no blocks. What is not set does not happen: no
	// traffic has clients that leave. Requests longer than the model allows are cut.
	Traffic     *Traffic
	Speed, From float64
	// Part is for one of several servers that share a traffic or a closed loop.
	Part Part
	// Clients is the number of clients of a closed loop, each of which sends its next request
	// when it has the answer to the last one; 0 is an open loop. Think is the mean pause
	// before it where the traffic has none, ThinkMost bounds every pause; both in seconds.
	Clients          int
	Think, ThinkMost float64
	// Retries is how often a client sends a request again that failed, or for which it lost
	// its patience at Timeout, each time RetryAfter seconds later (doubled each time).
	Retries    int
	RetryAfter float64
}

// Chat is a workload with the lengths of conversations, as medians of published
// production traces have them (the conversation trace of Splitwise).
func Chat(rate float64) Workload {
	return Workload{
		Rate: rate, Prompt: Lengths{1020, 0.9}, Output: Lengths{129, 0.8},
		MaxTokens:   []int{0, 512, 1024, 2048},
		PrefixShare: 0.5, Prefixes: 24, PrefixTokens: 512, PrefixSkew: 2,
		Patience: 10, LeaveEarly: 0.01, LeaveLate: 0.02, Refused: 0.002,
	}
}

// Code is a workload with the lengths of code completion, from the same source:
// long prompts and very short answers.
func Code(rate float64) Workload {
	w := Chat(rate)
	w.Prompt, w.Output = Lengths{1500, 0.9}, Lengths{13, 0.9}
	return w
}

func (w Workload) check() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{!(w.Rate >= 0 && w.Rate <= 1e5), fmt.Sprintf("arrival rate %v is not between 0 and 100000 per second", w.Rate)},
		{!(w.CV >= 0 && w.CV <= 20), fmt.Sprintf("variation of arrivals %v is not between 0 and 20", w.CV)},
		{!(w.Swing >= 0 && w.Swing <= 1), fmt.Sprintf("swing %v is not between 0 and 1", w.Swing)},
		{w.Swing > 0 && !(w.Period > 0), fmt.Sprintf("period %v s must be above 0", w.Period)},
		{
			w.BurstFactor < 0 || (w.BurstFactor > 0 && (!(w.BurstEvery > 0) || !(w.BurstSeconds > 0))),
			"bursts need a factor, a distance and a length above 0",
		},
		{w.Traffic == nil && !(w.Prompt.Median >= 1 && w.Output.Median >= 1), "median lengths must be at least 1 token"},
		{!(w.Prompt.Sigma >= 0 && w.Output.Sigma >= 0), "sigma of lengths must not be below 0"},
		{w.Prefixes < 0 || w.PrefixTokens < 0 || w.Adapters < 0, "numbers of prefixes and adapters must not be below 0"},
		{w.Adapters > maxAdapters, fmt.Sprintf("adapters: %d is above %d", w.Adapters, maxAdapters)},
		{w.PrefixShare > 0 && (w.Prefixes == 0 || w.PrefixTokens == 0), "shared prefixes need a number and a length"},
		{w.ChoicesShare > 0 && (w.Choices < 2 || w.Choices > maxMembers), fmt.Sprintf("choices: %d is not between 2 and %d", w.Choices, maxMembers)},
		{w.BeamShare > 0 && (w.Beams < 1 || w.Beams > maxMembers), fmt.Sprintf("beams: %d is not between 1 and %d", w.Beams, maxMembers)},
		{w.SessionShare > 0 && (w.Chunks < 2 || !(w.ChunkPause >= 0)), "sessions need at least 2 chunks, and a pause that is not below 0 s"},
		{w.MediaShare > 0 && w.Media < 1, "images need a number of different ones"},
		{w.LeaveEarly > 0 && !(w.Patience > 0), "clients that leave need a patience above 0 s"},
	} {
		if c.wrong {
			return fmt.Errorf("workload: %s", c.text)
		}
	}
	for _, share := range []float64{w.PrefixShare, w.AdapterShare, w.LeaveEarly, w.LeaveLate, w.Refused, w.ChoicesShare, w.BeamShare, w.SessionShare, w.MediaShare} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("workload: share %v is not between 0 and 1", share)
		}
	}
	for _, n := range w.MaxTokens {
		if n < 0 {
			return fmt.Errorf("workload: max_tokens %d is below 0", n)
		}
	}
	return w.checkSource()
}

// checkSource checks where requests come from, and when again.
func (w *Workload) checkSource() error {
	for _, c := range []struct {
		wrong bool
		text  string
	}{
		{!(w.Speed >= 0 && w.Speed <= 1e6), fmt.Sprintf("speed %v is not between 0 and 1000000", w.Speed)},
		{!(w.From >= 0 && w.From <= 1e9), fmt.Sprintf("the traffic cannot begin at %v s; want 0 to a billion", w.From)},
		{w.Clients < 0 || w.Clients > maxClients, fmt.Sprintf("%d clients are not between 0 and %d", w.Clients, maxClients)},
		{!(w.Think >= 0 && w.ThinkMost >= 0 && w.Think <= 1e9 && w.ThinkMost <= 1e9), "pauses of clients must be between 0 s and a billion"},
		{w.Retries < 0 || w.Retries > maxRetries, fmt.Sprintf("%d retries are not between 0 and %d", w.Retries, maxRetries)},
		{!(w.RetryAfter >= 0 && w.RetryAfter <= 1e6), fmt.Sprintf("the time before a retry, %v s, is not between 0 s and a million", w.RetryAfter)},
		{!(w.Timeout >= 0), fmt.Sprintf("timeout %v s is below 0", w.Timeout)},
		{!(w.Part.From >= 0 && w.Part.To >= w.Part.From), fmt.Sprintf("part from %v to %v", w.Part.From, w.Part.To)},
	} {
		if c.wrong {
			return fmt.Errorf("workload: %s", c.text)
		}
	}
	t := w.Traffic
	if t == nil {
		return nil
	}
	switch rate := float64(len(t.Arrivals)) / t.Span * w.speed(); {
	case len(t.Arrivals) == 0 && len(t.Conversations) == 0:
		return fmt.Errorf("workload: traffic %q has no requests", t.Name)
	case w.Clients > 0 && len(t.Conversations) == 0:
		return fmt.Errorf("workload: traffic %q has the times of its requests, so it is an open loop and has no clients", t.Name)
	case w.Clients == 0 && len(t.Arrivals) == 0:
		return fmt.Errorf("workload: traffic %q has conversations, so it is a closed loop; give the number of clients", t.Name)
	case rate > 1e5:
		return fmt.Errorf("workload: traffic %q has %v requests per second, more than 100000", t.Name, rate)
	}
	if err := t.check(); err != nil {
		return fmt.Errorf("workload: traffic %q: %w", t.Name, err)
	}
	return nil
}

// speed is that of traffic.
func (w *Workload) speed() float64 {
	if w.Speed == 0 {
		return 1
	}
	return w.Speed
}

// After returns the workload as a server gets it that begins so many seconds later: traffic
// goes on where it is.
func (w Workload) After(seconds float64) Workload {
	if w.Traffic != nil {
		w.From += seconds * w.speed()
	}
	return w
}

// maxMembers is the greatest number of choices and of beams.
const maxMembers = 64

// maxAdapters is what fits into one set of bits, besides the base model.
const maxAdapters = 63

// draw returns a length for a standard normal z.
func (l Lengths) draw(z, factor float64, most int) int {
	n := l.Median * factor * math.Exp(l.Sigma*z)
	return max(1, int(min(n, float64(most))+0.5))
}
