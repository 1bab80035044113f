package judge

// Line is what is true and what was reported about one minute of one server. It is the
// form in which "vllmsim judge" prints it.
type Line struct {
	Scenario string `json:"scenario"`
	// Minute counts from 0; Server too, in the order of the scenario.
	Minute int `json:"minute"`
	Server int `json:"server"`
	// Requests are those that count: they arrived in this minute, and both the actual and
	// the nominal run have them.
	Requests int `json:"requests"`
	// Harmful is Effect above 1.
	Harmful bool `json:"harmful"`
	// Effect is the harm as a multiple of the bar of harm, 0 without harm and where fewer
	// than 20 requests count. With several engines it is that of all requests or of those of
	// the worst engine, the larger, and so are TrueCauses.
	Effect float64 `json:"effect"`
	// TrueCauses are, by the names of diagnosis.yaml, the shares of the harm that is undone
	// without the cause. It is empty, never nil, in minutes without harm.
	TrueCauses map[string]float64 `json:"true_causes"`
	// Condition, Severity and Causes are what the processor had reported at the end of the
	// minute. Without a report the condition is empty and the severity -1.
	Condition string  `json:"condition"`
	Severity  int     `json:"severity"`
	Causes    []Cause `json:"causes"`
	// Also are other names that are right for the true causes.
	Also []string `json:"also,omitempty"`
	// Pool is what was reported about the pool, where the processor has pools.
	Pool *Pool `json:"pool,omitempty"`
	// Unended is, in a harmful minute, the share of its requests that had not ended ten
	// minutes after the story also in a run without a cause. They count with their age in all
	// runs, so that the shares of TrueCauses are too small for injected causes and too large
	// for demand.
	Unended float64 `json:"unended,omitempty"`
	// open is whether the server may be harmed or not: scrapes fail, or fewer requests of an
	// engine count than are judged, and a cause was injected before or arrivals exceed capacity.
	open bool
	// Missed is whether an objective is missed, also one that the nominal run misses. It is no
	// part of the output.
	Missed bool `json:"-"`
	// Slow is whether requests waited beyond the bar of harm against the usual of the story, or an objective
	// was missed, whatever the reason, see slow. It is no part of the output.
	Slow bool `json:"-"`
}

// Cause is a reported cause.
type Cause struct {
	Name string `json:"name"`
	// Role is primary, contributing or notice.
	Role   string `json:"role"`
	Detail string `json:"detail"`
	// Share is that of the harm which the processor attributes to the cause, 0 where it
	// publishes none.
	Share float64 `json:"share"`
}

// Pool is what was reported about the pool of all servers.
type Pool struct {
	Condition string  `json:"condition"`
	Severity  int     `json:"severity"`
	Causes    []Cause `json:"causes"`
}
