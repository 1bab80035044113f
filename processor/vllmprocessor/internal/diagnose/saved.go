package diagnose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

const (
	// diagnosisVersion goes up when the form or the meaning of something in a saved diagnosis changes.
	diagnosisVersion = 4
	// maxSavedDiagnosis bounds a saved diagnosis, in bytes, and maxSavedName the names in it.
	maxSavedDiagnosis = 8 << 10
	maxSavedName      = 128
)

// diagnosisForm is that of saved diagnoses: their version, with what the numbers in them count.
// A program with another condition, cause or factor has another one.
var diagnosisForm = func() uint32 {
	form := fmt.Appendf(nil, "%d %d %d %d", diagnosisVersion, numHarms, numProgress, NoMetrics)
	for c := range NumConditions {
		form = fmt.Appendf(form, " %s", c)
	}
	for c := range NumCauses {
		form = fmt.Appendf(form, " %s", c)
	}
	for _, w := range wanders {
		form = fmt.Appendf(form, " %s", w.of)
	}
	return crc32.ChecksumIEEE(form)
}()

// saved is the part of the diagnosis of an engine or of a pool that outlives a restart of the collector:
// what is reported, and the evidence that was collected for it and for what may follow. A collector that
// restarts goes on with it, as after a time in which nothing arrived. It is stored as JSON, with the exported
// fields of what is in it. All times are in Unix nanoseconds; 0 for never.
type saved struct {
	// Form and At, the time of the newest reading, are those of a stored form.
	Form uint32 `json:"diagnosis"`
	At   int64  `json:"at"`
	// First is the time of the first batch, also before the collector restarted.
	First int64 `json:",omitzero"`
	// Process is when the process of the server began, in Unix seconds; 0 where it does not say.
	// With Received it shows whether the server is the same process as before.
	Process  float64             `json:",omitzero"`
	Received [numProgress]number `json:",omitzero"`

	Reported Verdict
	// Shares are smoothed over a window.
	Shares   Shares `json:",omitzero"`
	SharesAt int64  `json:",omitzero"`
	Details  details
	// Raw is the condition that the newest reading alone shows, since RawSince. Bad is true where it
	// is harm; BadSince is when Bad changed last.
	Raw      Condition `json:",omitzero"`
	RawSince int64     `json:",omitzero"`
	Bad      bool      `json:",omitzero"`
	BadSince int64     `json:",omitzero"`
	// Evident is true where the evidence of latencies alone was the last harm.
	Evident bool `json:",omitzero"`
	// Resumed is when it began to work again after a standstill, Restarted when it restarted last.
	Resumed   int64    `json:",omitzero"`
	Restarted int64    `json:",omitzero"`
	Restarts  restarts `json:",omitzero"`

	// Changes are the factors that have changed, Harms the evidence of harm. SlowerThanPeers is the
	// evidence that it is slower than its siblings, in its steps and its prefills, and Ratio the
	// greatest logarithm by how much of late.
	Changes         [numFactors]change `json:",omitzero"`
	Harms           [numHarms]evidence `json:",omitzero"`
	SlowerThanPeers [2]change          `json:",omitzero"`
	Ratio           float64            `json:",omitzero"`
	// BrokenAt is when a factor was late beyond the documented limits last, GrownSince since when the
	// work has grown, MissedSince since when an objective for a kind of harm is missed, or there is none.
	BrokenAt    [numFactors]int64        `json:",omitzero"`
	GrownSince  [longerOutputs + 1]int64 `json:",omitzero"`
	MissedSince [missedObjective]int64   `json:",omitzero"`
	Felt        felt
	Hidden      hidden  `json:",omitzero"`
	GivenUp     givenUp `json:",omitzero"`
	Canary      canary  `json:",omitzero"`
	Backlog     backlog
	Without     backlogs
	Progress    progress
	// Sent is when requests have come to it last.
	Sent  int64 `json:",omitzero"`
	Users users `json:",omitzero"`
	// The requests of a pool have waited for no reason since Starved, until Fed.
	Starved int64 `json:",omitzero"`
	Fed     int64 `json:",omitzero"`
}

// number is one that may not be known: null.
type number float64

func (n number) known() bool { return signal.Known(float64(n)) }

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number(math.NaN())
	return json.Unmarshal(data, (*float64)(n)) // Which leaves it where it is null.
}

// encode returns the stored form; nil where it is nothing that could be used again.
func (d *saved) encode() []byte {
	d.Form = diagnosisForm
	if !d.sound() {
		return nil
	}
	data, err := json.Marshal(d)
	if err != nil || len(data) > maxSavedDiagnosis {
		return nil
	}
	return data
}

// decodeDiagnosis returns the diagnosis of a stored form; false where it is none that can be used.
func decodeDiagnosis(data []byte) (d saved, sound bool) {
	sound = len(data) <= maxSavedDiagnosis && decode(data, &d) && d.sound()
	return d, sound
}

// decode reads a stored form without anything unknown in it.
func decode(data []byte, form any) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(form) == nil
}

// DiagnosisAge returns the time of a stored diagnosis, in Unix nanoseconds, and whether it can be
// used.
func DiagnosisAge(data []byte) (at int64, sound bool) {
	d, sound := decodeDiagnosis(data)
	return d.At, sound
}

// sound reports whether a diagnosis can be one that this program has saved. Numbers that no engine
// has would hold a verdict for ever, or never report one.
func (d *saved) sound() bool {
	v := &d.Reported
	return d.Form == diagnosisForm && d.At > 0 && v.Condition < NumConditions && v.Because <= NotRead && v.Primary < NumCauses &&
		v.Reference <= Objectives && len(v.Objective) <= maxSavedName && d.Raw < NumConditions && d.soundTimes() && d.soundNumbers()
}

func (d *saved) soundTimes() bool {
	times := []int64{d.First, d.SharesAt, d.RawSince, d.BadSince, d.Resumed, d.Restarted, d.Restarts.Newest, d.Backlog.Since, d.Starved, d.Fed, d.Canary.Since, d.GivenUp.Since, d.GivenUp.Queued, d.Sent, d.Users.Hidden, d.Progress.At}
	times = slices.Concat(times, d.BrokenAt[:], d.GrownSince[:], d.MissedSince[:])
	return slices.Min(times) >= 0 && slices.Max(times) <= d.At && d.Progress.Scrapes >= 0 && d.Restarts.Count >= 0
}

func (d *saved) soundNumbers() bool {
	sound := signal.Known(d.Ratio)
	within := func(x, most float64) { sound = sound && x >= 0 && x <= most }
	for f := range numFactors {
		within(d.Changes[f].Score, workChangedAt+remembers)
		within(d.Without.Without[f], math.MaxFloat64)
	}
	for _, one := range d.SlowerThanPeers {
		within(one.Score, changedAt+remembers)
	}
	for _, one := range d.Harms {
		within(one.Score, enoughEvidence)
		within(one.Clear, math.MaxFloat64)
	}
	for c := range NumCauses {
		within(d.Shares[c], 1+1e-6)
		within(float64(len(d.Details.Reported[c])), maxSavedName)
	}
	within(d.Shares.total(), 1+1e-6)
	within(d.Process, math.MaxFloat64)
	within(d.Users.Own, d.Users.Pool)
	within(d.Users.Pool, math.MaxFloat64)
	within(d.Users.Seconds, math.MaxFloat64)
	within(d.Without.Waiting, math.MaxFloat64)
	return sound
}

// resumption is that of a diagnosis from before the collector restarted.
type resumption struct {
	// saved is the time of its newest reading, from that of the first reading since; 0 before
	// that. Both are in Unix nanoseconds.
	saved, from int64
	// noted is true once it was a transition.
	noted bool
}

// save returns the stored form of the diagnosis; nil where there is nothing to continue.
func (e *engine) save() []byte {
	if !e.memory.any() || e.last.At == 0 || e.Reported.Because == JustSeen {
		return nil
	}
	d := e.saved
	d.At, d.Received = e.last.At, e.last.received
	if d.Hidden.at == 0 {
		d.Hidden = hidden{} // Nothing is known of its open files.
	}
	if d.Progress.At > 0 && differ(e.last.progress[generatedTokens], d.Received[generatedTokens]) {
		// The totals since before a restart cannot be compared with those of a new collector.
		d.Progress.Before = number(math.NaN())
	}
	return d.encode()
}

// resume continues a stored diagnosis, of an engine or a pool that is seen at a time for the first
// time. It is not used where more time has passed than that after which a server that is silent is
// forgotten: a collector that had not restarted would not know it either.
func (e *engine) resume(settings *Settings, data []byte, at int64) bool {
	d, sound := decodeDiagnosis(data)
	if !sound || at < d.At || at-d.At > int64(settings.MaxStaleness) {
		return false
	}
	d.First = cmp.Or(d.First, e.First)
	e.saved, e.resumption = d, &resumption{saved: d.At}
	// What was only a notice goes on as one.
	notice := e.Reported.Condition == Degraded && e.Reported.Severity == 1
	if e.Reported.Severity = e.Reported.severity(); notice {
		e.Reported.Severity = 1
	}
	for c := range NumCauses {
		if !e.Details.Shown[c] || !described(c, e.Details.Reported[c]) {
			e.Details.forget(c)
		}
	}
	e.Felt.clearAt, e.Felt.greatAt = at, at
	if e.Hidden != (hidden{}) {
		e.Hidden.at = at
	}
	e.last.At, e.last.Signals, e.last.received = d.At, signal.Unknown(), d.Received
	e.memory.add(e)
	if e.Reported.Harms() {
		e.memory.share(&e.Shares)
	}
	return true
}

// check takes the first reading since a diagnosis was resumed. Of another process nothing is
// resumed. What has not moved since then has stood still.
func (e *engine) check(settings *Settings, s *State, v *window.View, r *reading) {
	if e.resumption != nil && e.resumption.from == 0 {
		if e.otherProcess(v, r, s.process) {
			e.resetDiagnosis()
		} else {
			e.continues(s)
			e.resumption.from = r.At
			// Without a total that the server sends it is not known.
			moved := !r.received[generatedTokens].known() || !e.last.received[generatedTokens].known()
			for i, now := range r.received {
				moved = moved || differ(now, e.last.received[i])
			}
			if e.Progress.was = r.progress; moved {
				e.Progress = progress{}
			}
		}
	} else if e.resumption != nil && r.elapsed == 0 && r.At-e.resumption.from >= int64(settings.Window) {
		// The scrapes are too far apart now, so that no reading would ever end what was found before.
		e.Harms, e.Changes, e.Restarts, e.resumption = [numHarms]evidence{}, [numFactors]change{}, restarts{}, nil
		e.Felt = felt{}
	}
	if s.process > 0 {
		e.Process = s.process
	}
	r.restarted = max(r.restarted, e.Restarted)
	e.Restarted = r.restarted
}

// continues notes once that a diagnosis was resumed: the log of the new collector does not have it.
func (e *engine) continues(s *State) {
	if e.resumption.noted {
		return
	}
	e.resumption.noted = true
	t := e.transition(s, e.Reported, &symptoms{})
	t.Continues = true
	s.transitions = append(s.transitions, t)
}

// otherProcess reports whether the server has restarted since the reading that was saved. Its
// process began at another time, its counters did, or one of them is lower.
func (e *engine) otherProcess(v *window.View, r *reading, process float64) bool {
	if !window.SameStart(e.Process, process) {
		return true
	}
	for _, total := range []int{generatedTokens, estimatedFLOPs, promptTokens} {
		if r.received[total] < e.last.received[total] {
			return true
		}
	}
	return v.Began(input.GenerationTokens) > e.resumption.saved
}

// resetDiagnosis begins the diagnosis again. What was learned stays.
func (e *engine) resetDiagnosis() {
	*e = engine{
		saved:  saved{First: e.First, Reported: notReported},
		number: e.number, attributes: e.attributes, began: e.at, at: e.at, baseline: e.baseline, peers: e.peers, model: e.model,
		blocks: e.blocks, memory: e.memory, listed: e.listed, follows: notReported,
	}
	e.memory.add(e)
}

// partial reports whether a reading is not to be judged, because it covers a part of the first
// window since a diagnosis was resumed: the rest of that window was not seen. It neither ends harm
// nor makes an engine unknown. The first one has no window at all, and so only what its gauges show
// counts. What was reported before stays, for at most one window.
func (e *engine) partial(settings *Settings, r *reading, raw Condition) bool {
	if e.resumption == nil {
		return false
	}
	if r.At-e.resumption.from >= int64(settings.Window) {
		e.resumption = nil
		return false
	}
	switch raw {
	case Unknown:
		return e.still != ambiguous
	case Degraded:
		return r.At == e.resumption.from
	case Healthy, Idle:
		return e.Reported.Harms()
	default:
		return false
	}
}

// described reports whether the catalogue has a detail of a cause. A stored one becomes an
// attribute, and could otherwise be any text.
func described(c Cause, detail string) bool {
	cause, _ := catalog.CauseByName(c.String())
	return detail == "" || slices.ContainsFunc(cause.Details, func(d catalog.Detail) bool { return d.Name == detail })
}
