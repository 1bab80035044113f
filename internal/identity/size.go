package identity

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxLevels is how deep the values of an attribute may be nested. No SDK nests them deeper.
const maxLevels = 16

// Unlimited is the size of attributes that are nested too deep.
const Unlimited = math.MaxInt32

// Size returns about how many bytes the attributes have as text. It does not render them, as
// AsString would: this recurses, and the stack of a hostile value ends the collector. So do Equal
// and CopyTo. Attributes that are nested too deep are Unlimited: nothing must read their values.
func Size(attributes pcommon.Map) int { return sizeOfMap(attributes, maxLevels) }

func sizeOfMap(m pcommon.Map, levels int) (bytes int) {
	for name, value := range m.All() {
		if bytes = min(Unlimited, bytes+len(name)+sizeOf(value, levels)); bytes == Unlimited {
			break
		}
	}
	return bytes
}

func sizeOf(value pcommon.Value, levels int) (bytes int) {
	if levels == 0 {
		return Unlimited
	}
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return len(value.Str())
	case pcommon.ValueTypeBytes:
		return value.Bytes().Len()
	case pcommon.ValueTypeMap:
		return sizeOfMap(value.Map(), levels-1)
	case pcommon.ValueTypeSlice:
		for _, part := range value.Slice().All() {
			if bytes = min(Unlimited, bytes+1+sizeOf(part, levels-1)); bytes == Unlimited {
				break
			}
		}
		return bytes
	case pcommon.ValueTypeBool, pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return number
	case pcommon.ValueTypeEmpty:
	}
	return 0
}

// number is about the length of a number.
const number = 8
