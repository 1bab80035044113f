package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// form is the version of what is stored, which the keys in the storage end with: of the values, and of the
// states in them. It changes when a release before could not read one of them.
//
// A value is a checksum of all that follows, and entries, each a key and a state with their lengths
// before them.
const form = 1

// polynomial is Castagnoli's, for which processors have an instruction.
var polynomial = crc32.MakeTable(crc32.Castagnoli)

const (
	// checksum is its size in bytes.
	checksum = 4
	// maxKey bounds the key of a state, in bytes.
	maxKey = 4 << 10
	// MaxSize bounds a state, in bytes. The largest is that of an objective; one with
	// a budget window and two burn windows takes about 6 kB when all its slots are
	// filled.
	MaxSize = 64 << 10
)

// ErrDamaged is returned where the stored value ends early, has changed since it was
// written, or was written by something else.
var ErrDamaged = errors.New("the saved states cannot be read to their end")

// Encode puts states into one value. It leaves out a state that is larger than MaxSize
// and one whose key is empty or longer than 4 kB.
func Encode(states map[string][]byte) []byte {
	data := make([]byte, checksum)
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if key != "" && len(key) <= maxKey && len(states[key]) <= MaxSize {
			data = append(binary.AppendUvarint(data, uint64(len(key))), key...)
			data = append(binary.AppendUvarint(data, uint64(len(states[key]))), states[key]...)
		}
	}
	binary.LittleEndian.PutUint32(data, crc32.Checksum(data[checksum:], polynomial))
	return data
}

// Decode reads what Encode wrote. The states point into data. Decode does not look into them.
func Decode(data []byte) (map[string][]byte, error) {
	if len(data) < checksum || binary.LittleEndian.Uint32(data) != crc32.Checksum(data[checksum:], polynomial) {
		return nil, ErrDamaged
	}
	states := map[string][]byte{}
	for data = data[checksum:]; len(data) > 0; {
		var entry [2][]byte
		for i, most := range [...]uint64{maxKey, MaxSize} {
			length, read := binary.Uvarint(data)
			if read <= 0 || length > most || length > uint64(len(data)-read) {
				return nil, ErrDamaged
			}
			entry[i], data = data[read:][:length], data[read:][length:]
		}
		if len(entry[0]) == 0 {
			return nil, ErrDamaged
		}
		states[string(entry[0])] = entry[1]
	}
	return states, nil
}

// KeyOf returns the key of a state: of a server, of some attributes of it, and of what
// the state is for. It is the same after a restart. It is a hash, because the identity
// of a server can be long.
func KeyOf(server string, attributes []input.Attribute, name string) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", name, server, attributes))
	return string(hash[:])
}
