package signal

import (
	"bytes"
	"encoding/json"
)

// baselineVersion goes up when the meaning or the order of the signals, or the shape of a
// baseline, changes: what another version has learned is not comparable. Signals that were
// added at the end are learned anew; at first there were leastSignals.
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
	data, err := json.Marshal(saved{baselineVersion, int(Count), b})
	if err != nil {
		return nil
	}
	return data
}

// DecodeBaseline returns the baseline of a stored form; false where it is none that can be used.
func DecodeBaseline(data []byte) (*Baseline, bool) {
	s := saved{Baseline: NewBaseline()}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&s) != nil || s.Version != baselineVersion || s.Signals < leastSignals || s.Signals > int(Count) {
		return nil, false
	}
	if b := s.Baseline; b != nil && b.sound() && b.Windows > 0 && b.Learned > 0 {
		return b, true
	}
	return nil, false
}
