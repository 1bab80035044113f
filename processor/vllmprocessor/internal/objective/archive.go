package objective

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// archiveHeader begins an archive: a letter and the version.
var archiveHeader = [2]byte{'A', 1}

// maxKeyLength bounds the key of a state, in bytes.
const maxKeyLength = 4 << 10

// ErrArchive is returned where an archive ends early or is none.
var ErrArchive = errors.New("the saved objectives cannot be read to their end")

// EncodeArchive puts the states of many trackers into one value. The keys are the
// caller's; a state under a key of more than 4 kB is left out.
func EncodeArchive(states map[string][]byte) []byte {
	data := append([]byte(nil), archiveHeader[:]...)
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if len(key) > maxKeyLength || len(states[key]) > MaxStateSize {
			continue
		}
		data = binary.AppendUvarint(data, uint64(len(key)))
		data = append(data, key...)
		data = binary.AppendUvarint(data, uint64(len(states[key])))
		data = append(data, states[key]...)
	}
	return data
}

// DecodeArchive reads what EncodeArchive wrote. Where that is damaged it returns
// what stands before the damage, and ErrArchive. The states point into data; each
// has its own checksum, which Restore looks at.
func DecodeArchive(data []byte) (map[string][]byte, error) {
	states := map[string][]byte{}
	if len(data) < len(archiveHeader) || [2]byte(data[:2]) != archiveHeader {
		return states, ErrArchive
	}
	r := stateReader{data: data[len(archiveHeader):]}
	for len(r.data) > 0 {
		key, state := r.bytes(maxKeyLength), r.bytes(MaxStateSize)
		if r.failed {
			return states, ErrArchive
		}
		states[string(key)] = state
	}
	return states, nil
}
