package signal

import (
	"bytes"
	"encoding/json"
	"math"
)

// baselineVersion goes up when the meaning or the order of the signals, or the shape of a
// baseline, changes: what another version has learned is not comparable. Signals that were
// added at the end are learned again; at first there were leastSignals.
const (
	baselineVersion = 1
	leastSignals    = int(MissedRatio) + 1
)

// saved is the stored form of a baseline.
type saved struct {
	Version int `json:"version"`
	// Signals is the number of levels.
	Signals  int       `json:"signals"`
	Baseline *Baseline `json:"baseline"`
}

// Encode returns the stored form; nil where nothing was learned, or nothing that could be
// used again.
func (b *Baseline) Encode() []byte {
	if b.Windows == 0 || !b.sound() {
		return nil
	}
	data, _ := json.Marshal(saved{baselineVersion, int(Count), b})
	return data
}

// DecodeBaseline returns the baseline of a stored form; false where it is none that can be used.
func DecodeBaseline(data []byte) (*Baseline, bool) {
	s := saved{Baseline: NewBaseline()}
	if decodeStrictly(data, &s) != nil || s.Version != baselineVersion || s.Signals < leastSignals || s.Signals > int(Count) {
		return nil, false
	}
	if b := s.Baseline; b != nil && b.sound() && b.Windows > 0 && b.Learned > 0 {
		return b, true
	}
	return nil, false
}

// Reference is what is usual for the engines of a pool that serve one model with one
// configuration. It outlives them: the next engines begin with it.
type Reference struct {
	// Model is the name of the served model, Blocks the number of blocks of the KV cache; 0
	// where it is not known.
	Model  string
	Blocks float64
	// Usual is nil while nothing is known.
	Usual *Model
}

const (
	// sameBlocks is by how much the logarithms of the numbers of blocks differ at most in one
	// configuration: 10 %. vLLM measures how much memory is left, so that equal servers differ by some blocks.
	sameBlocks = 0.0953
	// MostReferences bounds the models and configurations of one pool, and longestModel the
	// name of a model in bytes: with both the stored form of a pool is at most 20 kB.
	MostReferences = 8
	longestModel   = 256
)

// Fits reports whether the reference is for engines with a model and a number of blocks, 0 where
// it is not known.
func (r *Reference) Fits(model string, blocks float64) bool {
	if r.Model != model || (r.Blocks > 0) != (blocks > 0) {
		return false
	}
	return !(blocks > 0) || math.Abs(math.Log(blocks/r.Blocks)) <= sameBlocks
}

// referenceVersion goes up when the meaning of stored references changes.
const referenceVersion = 1

type savedReferences struct {
	Version    int              `json:"pool"`
	References []savedReference `json:"references"`
}

type savedReference struct {
	Model   string  `json:"model"`
	Blocks  float64 `json:"blocks,omitempty"`
	Version string  `json:"version,omitempty"`
	Learned int64   `json:"learned"`
	Step    fit     `json:"step"`
	Prefill fit     `json:"prefill"`
}

// EncodeReferences returns the stored form of a pool's references; nil where there is nothing to
// keep.
func EncodeReferences(all []Reference) []byte {
	out := savedReferences{Version: referenceVersion}
	for i := range all {
		r := &all[i]
		if r.Usual == nil || len(r.Model) > longestModel || len(out.References) == MostReferences {
			continue
		}
		one := savedReference{r.Model, r.Blocks, r.Usual.Version, r.Usual.Learned, r.Usual.step.of, r.Usual.prefill.of}
		if one.sound() {
			out.References = append(out.References, one)
		}
	}
	if len(out.References) == 0 {
		return nil
	}
	data, _ := json.Marshal(out)
	return data
}

// DecodeReferences returns the references of a stored form, and the end of the newest window in
// them in Unix nanoseconds; false where it is another form.
func DecodeReferences(data []byte) (all []Reference, newest int64, sound bool) {
	var in savedReferences
	if len(data) == 0 || decodeStrictly(data, &in) != nil || in.Version != referenceVersion || len(in.References) > MostReferences {
		return nil, 0, false
	}
	for i := range in.References {
		one := &in.References[i]
		one.Step.Shares, one.Prefill.Shares = newStepFit().Shares, newPrefillFit().Shares
		if !one.sound() {
			return nil, 0, false
		}
		all = append(all, Reference{one.Model, one.Blocks, newModel(&one.Step, &one.Prefill, one.Version, one.Learned)})
		newest = max(newest, one.Learned)
	}
	return all, newest, len(all) > 0
}

func (r *savedReference) sound() bool {
	return soundVersion(r.Version) && r.Learned > 0 && r.Blocks >= 0 && !math.IsInf(r.Blocks, 0) && r.Step.sound() && r.Step.Ready() && r.Prefill.sound()
}

func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
