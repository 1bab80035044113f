package diagnose

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Verdict is the reported diagnosis of an engine or a pool.
type Verdict struct {
	Condition Condition
	// Severity is that of the condition; 1 where there is only a notice, and 2 where the
	// engine may have stalled.
	Severity int `json:",omitzero"`
	// Because is why the condition is unknown, or that the server was never read.
	Because Because `json:",omitzero"`
	// Primary is the cause that explains most of the harm, where Explained.
	Primary   Cause `json:",omitzero"`
	Explained bool  `json:",omitzero"`
	// Contributing and Notices are the others.
	Contributing [NumCauses]bool `json:",omitzero"`
	Notices      [NumCauses]bool `json:",omitzero"`
	// Reference is what the latencies were compared with. Objective is the name of the
	// missed objective.
	Reference Reference `json:",omitzero"`
	Objective string    `json:",omitzero"`
}

// same reports whether an operator would read the same.
func (v *Verdict) same(other *Verdict) bool {
	return v.Condition == other.Condition && v.Severity == other.Severity && v.Because == other.Because && v.Explained == other.Explained && (!v.Explained || v.Primary == other.Primary)
}

// Harms reports whether users are served worse than they should be.
func (v *Verdict) Harms() bool { return v.Condition.harms() }

// bad reports whether users are served worse than they should be, for whatever reason, or not at all.
func (v *Verdict) bad() bool { return v.Harms() || v.Severity >= 2 }

// notReported is the verdict before the first report.
var notReported = Verdict{Condition: Unknown, Because: JustSeen}

// conditions are the catalogue's, by number.
var conditions = func() (all [NumConditions]catalog.Condition) {
	for c := range NumConditions {
		described, _ := catalog.ConditionByName(c.String())
		all[c] = *described
	}
	return all
}()

// Condition is the state of an engine or a pool. Exactly one holds.
type Condition uint8

// The conditions. String is the name in the catalogue.
const (
	Healthy Condition = iota
	Idle
	Unknown
	Degraded
	Critical
	Failing
	Stalled
	Asleep
	Starting
	Unreachable
	Draining

	// NumConditions is the number of conditions, for arrays over them.
	NumConditions
)

// String is the condition's name in the catalogue.
func (c Condition) String() string {
	return [NumConditions]string{
		Healthy: "healthy", Idle: "idle", Unknown: "unknown", Degraded: "degraded", Critical: "critical", Failing: "failing",
		Stalled: "stalled", Asleep: "asleep", Starting: "starting", Unreachable: "unreachable", Draining: "draining",
	}[c]
}

// harms reports whether users are served worse than they should be in a condition.
func (c Condition) harms() bool { return c == Degraded || c == Critical || c == Failing }

// Cause is a reason for harm, or a notice.
type Cause uint8

// The causes of engines. What they mean is in the catalogue; String is the name.
const (
	DemandExceedsCapacity Cause = iota
	KVPressure
	PrefillHeavy
	SlowSteps
	DecodeLoad
	FrontendBound
	CacheThrash
	SpeculationWasteful
	AdmissionDeferred
	KVTransferFailing
	CorruptedOutput
	Erroring
	Restarting
	RequestsDropped
	// Imbalanced and UpstreamStarved belong to pools.
	Imbalanced
	UpstreamStarved
	// WorkloadShift, FrozenGauges and ClientsGiveUp are notices.
	WorkloadShift
	FrozenGauges
	ClientsGiveUp
	// ServersLost belongs to pools, and the last one: saved states have these numbers.
	ServersLost

	// NumCauses is the number of causes, for arrays over them.
	NumCauses
)

var causeNames = [NumCauses]string{
	DemandExceedsCapacity: "demand_exceeds_capacity",
	KVPressure:            "kv_pressure",
	PrefillHeavy:          "prefill_heavy",
	SlowSteps:             "slow_steps",
	DecodeLoad:            "decode_load",
	FrontendBound:         "frontend_bound",
	CacheThrash:           "cache_thrash",
	SpeculationWasteful:   "speculation_wasteful",
	AdmissionDeferred:     "admission_deferred",
	KVTransferFailing:     "kv_transfer_failing",
	CorruptedOutput:       "corrupted_output",
	Erroring:              "erroring",
	Restarting:            "restarting",
	RequestsDropped:       "requests_dropped",
	Imbalanced:            "imbalanced",
	UpstreamStarved:       "upstream_starved",
	WorkloadShift:         "workload_shift",
	FrozenGauges:          "frozen_gauges",
	ClientsGiveUp:         "clients_give_up",
	ServersLost:           "servers_lost",
}

// String is the cause's name in the catalogue.
func (c Cause) String() string { return causeNames[c] }

// Shares are how much of the harm each cause explains. They add up to 1 where all of it
// is explained.
type Shares [NumCauses]float64

// Scale multiplies all shares.
func (s Shares) Scale(by float64) Shares {
	for i := range s {
		s[i] *= by
	}
	return s
}

// Plus adds shares.
func (s Shares) Plus(others Shares) Shares {
	for i := range s {
		s[i] += others[i]
	}
	return s
}

func (s *Shares) total() (total float64) {
	for _, share := range s {
		total += share
	}
	return total
}

// move gives the shares of some causes to another one.
func (s *Shares) move(to Cause, from ...Cause) {
	for _, c := range from {
		s[to] += s[c]
		s[c] = 0
	}
}

// ranked are the causes with at least some share, the largest first, without one of them.
func (s *Shares) ranked(least float64, without Cause) (causes []Cause) {
	for c := range NumCauses {
		if c != without && s[c] >= least {
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(s[b], s[a]) })
	return causes
}

// whole scales the shares so that they add up to 1. It changes nothing where all are 0.
func (s Shares) whole() Shares {
	total := s.total()
	if total <= 0 {
		return s
	}
	return s.Scale(1 / total)
}

// Because is why an engine cannot be judged; Sentence says what each one means.
type Because uint8

// The reasons. Waiting mends none of those from Unauthorized to PlainHTTP. NotRead is the last one:
// saved states have these numbers.
const (
	Judged Because = iota
	// JustSeen is also that of requests that fail, and have not done so for the hold yet.
	JustSeen
	NoLatencies
	FarApart
	StalledOrFrozen
	NoRequestSince
	Unauthorized
	Forbidden
	NotFound
	NoAddress
	NotTrusted
	NoMetrics
	PlainHTTP
	NotRead
)

// Sentence is the reason as a sentence that says what to do; empty where judged.
func (b Because) Sentence() string {
	return [...]string{
		Judged:          "",
		JustSeen:        "The engine cannot be judged yet: it has just been seen for the first time.",
		NoLatencies:     "The engine cannot be judged: the server reports neither vllm.time_to_first_token nor vllm.inter_token_latency.",
		FarApart:        "The engine cannot be judged: scrapes are more than two windows apart; scrape more often, or set window to at least twice that time.",
		StalledOrFrozen: "The engine has stalled, or its gauges froze when all its requests were aborted: vLLM before 0.10.2 shows both in the same way. Send one request: if it is answered, the engine works and its gauges are right again.",
		NoRequestSince:  "The engine cannot be judged: its users waited many times longer than usual, and no request has come since. Send one request: its answer shows whether the engine serves again.",
		Unauthorized:    "The server cannot be read: it answers 401, so the receiver's credentials are missing or wrong; check auth in the receiver's configuration.",
		Forbidden:       "The server cannot be read: it answers 403, so the receiver's credentials do not allow reading metrics; grant them that right, or use others.",
		NotFound:        "The server cannot be read: it answers 404, so there are no metrics at this path; check the path of the endpoint.",
		NoAddress:       "The server cannot be read: its name cannot be resolved; check the host in the endpoint and the name server.",
		NotTrusted:      "The server cannot be read: the TLS handshake fails; check the certificate, its name and its dates, and tls in the receiver's configuration.",
		PlainHTTP:       "The server cannot be read: it speaks plain HTTP, and the endpoint is https; write http:// in the endpoint.",
		NoMetrics:       "The server cannot be read: something answers, but not with metrics; check the endpoint and any proxy in front of the server.",
		NotRead:         "The server has not answered since it was first seen: it may still load its model, or its address may be wrong. Look at its log, and at the endpoint in the receiver's configuration.",
	}[b]
}

func (e *engine) because(s *State) Because {
	switch c := e.Reported.Condition; {
	case e.number == ServerOnly && !s.server.read && (c == Starting || c == Unreachable && s.server.blocked < blockedScrapes):
		return NotRead
	case c != Unknown:
		return Judged
	case e.number == ServerOnly && s.server.because() != Judged:
		return s.server.because()
	case e.still == ambiguous, e.Reported.Because == StalledOrFrozen && e.Raw != Unknown:
		return StalledOrFrozen
	case e.Felt.On && e.last.elapsed > 0 && quietNow(&e.last):
		return NoRequestSince
	case e.last.lacks && e.last.elapsed > 0:
		return NoLatencies
	case e.last.elapsed == 0 && e.at > e.began:
		return FarApart
	}
	return JustSeen
}

// News reports whether an operator should read about the change. A change of contributing
// causes alone is not news, nor is a new engine that turns out to be healthy. After a restart of the
// collector harm that continues is. Another detail
// of the primary cause is news: it decides what to do, and the line before says something
// else.
func (t *Transition) News() bool {
	switch {
	case t.Relearned, t.Refined:
		return true
	case t.Continues:
		return t.To.Severity >= 2
	case t.From.same(&t.To) && t.From.Notices == t.To.Notices:
		return false
	case t.To.Because == JustSeen:
		return false
	}
	return t.From.Because != JustSeen || t.To.Severity > 0
}
