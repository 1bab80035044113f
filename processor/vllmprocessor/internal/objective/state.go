package objective

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"time"
)

// The format of a saved state, all as varints: the metric (length and bytes), the threshold, the end of the newest step, and
// the number of rings. For each ring: its window, the number of its newest slot, and the
// number of slots that are not empty. For each of these: its age in slots, its seen time
// and its three counts. The archive has a checksum of it; its form must change with the format
// and with slotsPerWindow.

// MaxStateSize is the most bytes of a saved state. A full state with a budget window and
// two burn windows takes about 6 kB.
const MaxStateSize = 64 << 10

const maxRings = maxBurnWindows + 1

// Encode returns the windows of the tracker for Restore. The sums since the start are not
// included: they restart from 0.
func (t *Tracker) Encode() []byte {
	data := binary.AppendUvarint(nil, uint64(len(t.metric)))
	data = append(data, t.metric...)
	data = binary.AppendVarint(data, int64(t.threshold))
	data = binary.AppendVarint(data, t.seenUntil)
	data = binary.AppendUvarint(data, uint64(len(t.rings)))
	for i := range t.rings {
		data = t.rings[i].encode(data)
	}
	return data
}

func (r *ring) encode(data []byte) []byte {
	data = binary.AppendVarint(data, r.window)
	data = binary.AppendVarint(data, r.newest)
	filled := uint64(0)
	for i := range r.slots {
		if r.slots[i] != (slot{}) {
			filled++
		}
	}
	data = binary.AppendUvarint(data, filled)
	for age := range int64(ringSlots) {
		s := r.at(r.newest - age)
		if *s == (slot{}) {
			continue
		}
		data = binary.AppendUvarint(data, uint64(age))
		data = binary.AppendVarint(data, s.seen)
		for _, n := range [...]float64{s.Valid, s.Good, s.Undecided} {
			// The low bits of the mantissa of a whole number are 0, so its reverse is short.
			data = binary.AppendUvarint(data, bits.ReverseBytes64(math.Float64bits(n)))
		}
	}
	return data
}

// saved is a state that was read.
type saved struct {
	metric    string
	threshold Duration
	seenUntil int64
	rings     []ring
}

var errDamaged = errors.New("damaged")

// decodeState reads the output of Encode. It rejects negative counts, numbers out of range
// and states larger than the largest possible one.
func decodeState(data []byte) (*saved, error) {
	if len(data) > MaxStateSize {
		return nil, errDamaged
	}
	r := stateReader{data: data}
	s := &saved{metric: string(r.bytes(1 << 10)), threshold: Duration(r.varint(0, math.MaxInt64)), seenUntil: r.varint(0, math.MaxInt64)}
	for range r.uvarint(maxRings) {
		s.rings = append(s.rings, r.ring())
		if r.failed {
			break
		}
	}
	if r.failed || len(r.data) > 0 || len(s.rings) == 0 {
		return nil, errDamaged
	}
	return s, nil
}

// stateReader reads values from the front of data. After the first value that is missing
// or out of range it has failed and returns zeros.
type stateReader struct {
	data   []byte
	failed bool
}

func (r *stateReader) fail() {
	r.failed = true
	r.data = nil
}

func (r *stateReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *stateReader) varint(least, most int64) int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 || v < least || v > most {
		r.fail()
		return least
	}
	r.data = r.data[n:]
	return v
}

func (r *stateReader) bytes(most uint64) []byte {
	n := r.uvarint(most)
	if n > uint64(len(r.data)) {
		r.fail()
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *stateReader) float() float64 {
	return math.Float64frombits(bits.ReverseBytes64(r.uvarint(math.MaxUint64)))
}

func (r *stateReader) ring() ring {
	read := newRing(time.Duration(r.varint(int64(minWindow), int64(maxWindow))))
	read.newest = r.varint(0, math.MaxInt64/read.width-1)
	age := int64(-1)
	for range r.uvarint(ringSlots) {
		next := int64(r.uvarint(ringSlots - 1))
		s := slot{seen: r.varint(0, int64(maxWindow))}
		s.Counts = Counts{Valid: r.float(), Good: r.float(), Undecided: r.float()}
		if r.failed || next <= age || !s.sound() {
			r.fail()
			break
		}
		age = next
		*read.at(read.newest - age) = s
	}
	return read
}
