package archive

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
)

// header begins the stored value: a letter, and the form of the entries that follow.
//
// An entry is a key and a state, each with its length before it. The first entry has
// an empty key, and its state is the version of the form and a checksum of all that
// follows. Versions of this project that wrote form 1 had no such entry. They can read
// form 2: to them the first entry is a state that they cannot use.
var header = [2]byte{'A', 1}

// form is the version of the form, with the checksum.
const form = 2

// polynomial is Castagnoli's, for which processors have an instruction.
var polynomial = crc32.MakeTable(crc32.Castagnoli)

const (
	// maxKey bounds the key of a state, in bytes.
	maxKey = 4 << 10
	// MaxSize bounds a state, in bytes. The largest is that of an objective; one with
	// a budget window and two burn windows takes about 6 kB when all its slots are
	// filled.
	MaxSize = 64 << 10
)

// ErrDamaged is returned where the stored value ends early, has changed since it was
// written, has an unknown form, or was written by something else.
var ErrDamaged = errors.New("the saved states cannot be read to their end")

// Encode puts states into one value. It leaves out a state that is larger than MaxSize
// and one whose key is empty or longer than 4 kB.
func Encode(states map[string][]byte) []byte {
	sum := [5]byte{form}
	data := appendEntry(append([]byte(nil), header[:]...), "", sum[:])
	begin := len(data)
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if key != "" && len(key) <= maxKey && len(states[key]) <= MaxSize {
			data = appendEntry(data, key, states[key])
		}
	}
	binary.LittleEndian.PutUint32(data[begin-4:], crc32.Checksum(data[begin:], polynomial))
	return data
}

func appendEntry(data []byte, key string, state []byte) []byte {
	data = binary.AppendUvarint(data, uint64(len(key)))
	data = append(data, key...)
	data = binary.AppendUvarint(data, uint64(len(state)))
	return append(data, state...)
}

// Decode reads what Encode wrote, now and in earlier versions. Where the value is
// damaged it returns ErrDamaged, and of form 1, which has no checksum, also the states
// before the damage. The states point into data. Decode does not look into them.
func Decode(data []byte) (map[string][]byte, error) {
	states := map[string][]byte{}
	if len(data) < len(header) || [2]byte(data[:2]) != header {
		return states, ErrDamaged
	}
	data = data[len(header):]
	for first := true; len(data) > 0; first = false {
		key, state, rest, whole := nextEntry(data)
		switch {
		case !whole:
			return states, ErrDamaged
		case len(key) > 0:
			states[string(key)] = state
		case !first || !matches(state, rest):
			return states, ErrDamaged
		}
		data = rest
	}
	return states, nil
}

// matches reports whether a first entry has this form and the checksum of what
// follows.
func matches(sum, rest []byte) bool {
	return len(sum) == 5 && sum[0] == form && binary.LittleEndian.Uint32(sum[1:]) == crc32.Checksum(rest, polynomial)
}

// ofThisForm reports whether a value begins as one of this version. If it cannot be read, it has
// changed since it was written, and no other version can read it.
func ofThisForm(data []byte) bool {
	if len(data) < len(header) || [2]byte(data[:2]) != header {
		return false
	}
	key, state, _, whole := nextEntry(data[len(header):])
	return whole && len(key) == 0 && len(state) == 5 && state[0] == form
}

func nextEntry(data []byte) (key, state, rest []byte, whole bool) {
	if key, rest, whole = next(data, maxKey); !whole {
		return nil, nil, nil, false
	}
	state, rest, whole = next(rest, MaxSize)
	return key, state, rest, whole
}

// next takes one string of at most so many bytes off data.
func next(data []byte, most uint64) (taken, rest []byte, whole bool) {
	length, read := binary.Uvarint(data)
	if read <= 0 || length > most || length > uint64(len(data)-read) {
		return nil, nil, false
	}
	return data[read : read+int(length)], data[read+int(length):], true
}
