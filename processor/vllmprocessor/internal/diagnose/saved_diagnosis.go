package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const (
	// diagnosisVersion goes up when the meaning of something in a saved diagnosis changes.
	diagnosisVersion = 1
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

// savedDiagnosis is the stored form of the diagnosis of an engine or of a pool: what is reported,
// and the evidence that was collected for it and for what may follow. A collector that restarts
// goes on with it, as after a time in which nothing arrived. All times are in Unix nanoseconds.
type savedDiagnosis struct {
	Form uint32 `json:"diagnosis"`
	// At is the time of the newest reading.
	At int64 `json:"at"`
	// First is the time of the first one.
	First int64 `json:"first,omitzero"`
	// Process and Received show whether the server is the same process as before.
	Process  float64                  `json:"process,omitzero"`
	Received [numProgress]savedNumber `json:"received,omitzero"`
	Verdict  savedVerdict             `json:"verdict"`
	Shares   []savedCause             `json:"shares,omitempty"`
	SharesAt int64                    `json:"shares_at,omitzero"`
	Details  []savedCause             `json:"details,omitempty"`

	Raw      Condition `json:"raw,omitzero"`
	RawSince int64     `json:"raw_since,omitzero"`
	Bad      bool      `json:"bad,omitempty"`
	BadSince int64     `json:"bad_since,omitzero"`
	Evident  bool      `json:"evident,omitempty"`
	Resumed  int64     `json:"resumed,omitzero"`
	// Restarted is the last restart, Loop the first one of a loop.
	Restarted int64 `json:"restarted,omitzero"`
	Loop      int64 `json:"loop,omitzero"`

	Changes  [numFactors]savedTest    `json:"changes,omitzero"`
	Peers    [2]savedTest             `json:"peers,omitzero"`
	Harms    [numHarms]savedTest      `json:"harms,omitzero"`
	Felt     savedFelt                `json:"felt,omitzero"`
	Hidden   savedHidden              `json:"hidden,omitzero"`
	Canary   int64                    `json:"canary,omitzero"`
	Ratio    float64                  `json:"ratio,omitzero"`
	BrokenAt [numFactors]int64        `json:"broken,omitzero"`
	Grown    [longerOutputs + 1]int64 `json:"grown,omitzero"`
	Over     bool                     `json:"over,omitempty"`
	Queued   int64                    `json:"queued,omitzero"`
	Waiting  float64                  `json:"waiting,omitzero"`
	Without  [numFactors]float64      `json:"without,omitzero"`
	Standing *savedStanding           `json:"standing,omitempty"`
	// Starved and Fed are of a pool.
	Starved int64 `json:"starved,omitzero"`
	Fed     int64 `json:"fed,omitzero"`
}

// savedVerdict is a Verdict, with its sets of causes as bits.
type savedVerdict struct {
	Condition    Condition `json:"condition"`
	Because      Because   `json:"because,omitzero"`
	Primary      Cause     `json:"primary,omitzero"`
	Explained    bool      `json:"explained,omitempty"`
	Contributing uint32    `json:"contributing,omitzero"`
	Notices      uint32    `json:"notices,omitzero"`
	Reference    Reference `json:"reference,omitzero"`
	Objective    string    `json:"objective,omitempty"`
}

// savedCause is something about a cause.
type savedCause struct {
	Cause  Cause   `json:"cause"`
	Share  float64 `json:"share,omitzero"`
	Detail string  `json:"detail,omitempty"`
}

// savedFelt is the measured harm that is certain.
type savedFelt struct {
	On    bool `json:"on,omitempty"`
	Great bool `json:"great,omitempty"`
	First bool `json:"first,omitempty"`
	Gap   bool `json:"gap,omitempty"`
}

// savedHidden is what is known of open files.
type savedHidden struct {
	Moving   float64 `json:"moving,omitempty"`
	Quiet    float64 `json:"quiet,omitempty"`
	Slow     float64 `json:"slow,omitempty"`
	Shown    float64 `json:"shown,omitempty"`
	Changes  float64 `json:"changes,omitempty"`
	Followed float64 `json:"followed,omitempty"`
	Since    int64   `json:"since,omitempty"`
}

// savedTest is a test of a change, or of harm.
type savedTest struct {
	Score float64 `json:"score,omitzero"`
	On    bool    `json:"on,omitempty"`
	Clear float64 `json:"clear,omitzero"`
}

// savedStanding is for how long nothing has moved, see progress.
type savedStanding struct {
	At        int64          `json:"at"`
	Scrapes   int            `json:"scrapes,omitzero"`
	Shown     [2]savedNumber `json:"shown"`
	Live      bool           `json:"live,omitempty"`
	Before    savedNumber    `json:"before"`
	Balance   savedNumber    `json:"balance"`
	Settled   bool           `json:"settled,omitempty"`
	Left      savedNumber    `json:"left"`
	Generated savedNumber    `json:"generated"`
	Later     bool           `json:"later,omitempty"`
	Busy      bool           `json:"busy,omitempty"`
	Asked     int64          `json:"asked,omitempty"`
}

// savedNumber is a number that may not be known: null.
type savedNumber float64

// MarshalJSON implements json.Marshaler.
func (n savedNumber) MarshalJSON() ([]byte, error) {
	if !signal.Known(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *savedNumber) UnmarshalJSON(data []byte) error {
	*n = savedNumber(math.NaN())
	if string(data) == "null" {
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// encode returns the stored form; nil where it is nothing that could be used again.
func (d *savedDiagnosis) encode() []byte {
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
func decodeDiagnosis(data []byte) (*savedDiagnosis, bool) {
	if len(data) == 0 || len(data) > maxSavedDiagnosis {
		return nil, false
	}
	var d savedDiagnosis
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&d) != nil || !d.sound() {
		return nil, false
	}
	return &d, true
}

// DiagnosisAge returns the time of a stored diagnosis, in Unix nanoseconds, and whether it can be
// used.
func DiagnosisAge(data []byte) (at int64, sound bool) {
	d, sound := decodeDiagnosis(data)
	if !sound {
		return 0, false
	}
	return d.At, true
}

// sound reports whether a diagnosis can be one that this program has saved. Numbers that no engine
// has would hold a verdict for ever, or never report one.
func (d *savedDiagnosis) sound() bool {
	return d.Form == diagnosisForm && d.At > 0 && d.Verdict.sound() && d.Raw < NumConditions && d.soundTimes() && d.soundTests() && d.soundCauses() &&
		signal.Known(d.Process) && d.Process >= 0
}

func (v *savedVerdict) sound() bool {
	const causes = 1<<NumCauses - 1
	return v.Condition < NumConditions && v.Because <= NotRead && v.Primary < NumCauses &&
		v.Contributing&^causes == 0 && v.Notices&^causes == 0 && v.Reference <= Objectives && len(v.Objective) <= maxSavedName
}

func (d *savedDiagnosis) soundTimes() bool {
	times := []int64{d.First, d.SharesAt, d.RawSince, d.BadSince, d.Resumed, d.Restarted, d.Loop, d.Queued, d.Starved, d.Fed, d.Canary}
	times = append(append(times, d.BrokenAt[:]...), d.Grown[:]...)
	if d.Standing != nil {
		times = append(times, d.Standing.At)
		if d.Standing.Scrapes < 0 {
			return false
		}
	}
	for _, at := range times {
		if at < 0 || at > d.At {
			return false
		}
	}
	return true
}

func (d *savedDiagnosis) soundTests() bool {
	sound := func(tests []savedTest, most float64) bool {
		for _, t := range tests {
			if !(t.Score >= 0 && t.Score <= most) || !(t.Clear >= 0) || math.IsInf(t.Clear, 0) {
				return false
			}
		}
		return true
	}
	for _, x := range append([]float64{d.Waiting}, d.Without[:]...) {
		if !(x >= 0) || math.IsInf(x, 0) {
			return false
		}
	}
	return sound(d.Changes[:], workChangedAt+remembers) && sound(d.Peers[:], changedAt+remembers) && sound(d.Harms[:], enoughEvidence) &&
		signal.Known(d.Ratio)
}

func (d *savedDiagnosis) soundCauses() bool {
	total := 0.0
	for _, all := range [][]savedCause{d.Shares, d.Details} {
		if len(all) > int(NumCauses) {
			return false
		}
		for _, c := range all {
			if total += c.Share; c.Cause >= NumCauses || !(c.Share >= 0) || len(c.Detail) > maxSavedName {
				return false
			}
		}
	}
	return total <= 1+1e-6
}
