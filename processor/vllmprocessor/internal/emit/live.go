package emit

import (
	"hash/maphash"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Live is the series that have not ended, by the identity that a consumer sees. The
// number of a group is not a part of it, because a group can get another number.
type Live map[identity]struct{}

type identity struct {
	row        *derive.Row
	extra      derive.Extra
	attributes uint64
}

var attributesSeed = maphash.MakeSeed()

func identityOf(s *Series) identity { return identity{s.Row, s.Extra, hashOf(s.Attributes)} }

func hashOf(attributes []input.Attribute) uint64 {
	sum := uint64(len(attributes))
	for i := range attributes {
		sum = sum*31 + maphash.Comparable(attributesSeed, attributes[i])
	}
	return sum
}

// Live returns the series that have not ended.
func (m *Memory) Live() Live {
	live := make(Live, len(m.live))
	for _, s := range m.live {
		live[identityOf(s)] = struct{}{}
	}
	return live
}

// Has reports whether the series of a point has not ended.
func (l Live) Has(p *Point) bool {
	_, has := l[identityOf(p.Series)]
	return has
}
