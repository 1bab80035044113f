package diagnose

import (
	"cmp"
	"slices"
)

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
	// Imbalanced and UpstreamStarved are of pools.
	Imbalanced
	UpstreamStarved
	// WorkloadShift and FrozenGauges are notices.
	WorkloadShift
	FrozenGauges

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

// total is what the shares add up to.
func (s *Shares) total() (total float64) {
	for _, share := range s {
		total += share
	}
	return total
}

// atMost scales the shares down where they add up to more than a limit.
func (s Shares) atMost(limit float64) Shares {
	total := s.total()
	if total <= limit {
		return s
	}
	return s.Scale(limit / total)
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
