package gpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTheSizeOfADevice is the memory of a GPU with all fields, as the README has it.
func TestTheSizeOfADevice(t *testing.T) {
	t.Parallel()
	d := &Device{}
	for i := range int64(1000) {
		var r Reading
		r.Reset("")
		for f := range NumFields {
			r.Add(f, float64(i))
		}
		d.put(at(15*i), &r, minute)
	}
	bytes := 8 * cap(d.times)
	for f := range d.columns {
		bytes += 24 + 8*cap(d.columns[f])
	}
	assert.LessOrEqual(t, bytes, 13<<10)
	assert.Greater(t, bytes, 10<<10)
}
