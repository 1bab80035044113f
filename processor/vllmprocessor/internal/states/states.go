// Package states puts the states that a processor keeps over a restart into one
// value of a storage, and takes them out again. What is in a state is for the
// package that it comes from.
package states

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// header begins the states: a letter and the version.
var header = [2]byte{'A', 1}

const (
	// maxKey bounds the key of a state, in bytes.
	maxKey = 4 << 10
	// MaxSize bounds a state, in bytes. The largest is that of an objective; one with
	// a budget window and two burn windows takes about 6 kB when all its slots are
	// filled.
	MaxSize = 64 << 10
)

// ErrDamaged is returned where states end early or are none.
var ErrDamaged = errors.New("the saved states cannot be read to their end")

// Encode puts states into one value. The keys are the caller's; a state that is
// larger than MaxSize, or has a key of more than 4 kB, is left out.
func Encode(states map[string][]byte) []byte {
	data := append([]byte(nil), header[:]...)
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if len(key) > maxKey || len(states[key]) > MaxSize {
			continue
		}
		data = binary.AppendUvarint(data, uint64(len(key)))
		data = append(data, key...)
		data = binary.AppendUvarint(data, uint64(len(states[key])))
		data = append(data, states[key]...)
	}
	return data
}

// Decode reads what Encode wrote. Where that is damaged it returns what stands
// before the damage, and ErrDamaged. The states point into data; whether one is
// sound is for its package to say.
func Decode(data []byte) (map[string][]byte, error) {
	states := map[string][]byte{}
	if len(data) < len(header) || [2]byte(data[:2]) != header {
		return states, ErrDamaged
	}
	for data = data[len(header):]; len(data) > 0; {
		key, more, whole := next(data, maxKey)
		if !whole {
			return states, ErrDamaged
		}
		state, rest, whole := next(more, MaxSize)
		if !whole {
			return states, ErrDamaged
		}
		states[string(key)], data = state, rest
	}
	return states, nil
}

// next takes one string of at most so many bytes off data.
func next(data []byte, most uint64) (taken, rest []byte, whole bool) {
	length, read := binary.Uvarint(data)
	if read <= 0 || length > most || length > uint64(len(data)-read) {
		return nil, nil, false
	}
	return data[read : read+int(length)], data[read+int(length):], true
}
