package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// ended counts the calls of a keeper.
type ended struct{ begun, ended int }

func (k *ended) Begin([]collect.Attribute) []byte { k.begun++; return nil }
func (*ended) BeginServer() []byte                { return nil }

func (*ended) EndServer([]byte) {}

func (k *ended) End([]collect.Attribute, []byte) { k.ended++ }

// A keeper that gets the begin of an engine gets its end, also
// where nothing was learned of it.
func TestAKeeperGetsEachEnd(t *testing.T) {
	t.Parallel()
	k := &ended{}
	s := &State{Keeper: k}
	s.engines = append(s.engines, &engine{baseline: s.beginBaseline(nil, 1)})
	s.End()
	assert.Equal(t, ended{begun: 1, ended: 1}, *k)
}
