package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// ended counts the calls of a keeper.
type ended struct{ begun, ended int }

func (k *ended) Begin(kind Kept, _ []input.Attribute) []byte {
	if kind == Baseline {
		k.begun++
	}
	return nil
}

func (k *ended) End(kind Kept, _ []input.Attribute, _ []byte) {
	if kind == Baseline {
		k.ended++
	}
}

// A keeper that gets the start of an engine gets its end, also
// where nothing was learned of it.
func TestAKeeperGetsEachEnd(t *testing.T) {
	t.Parallel()
	k := &ended{}
	s := &State{Keeper: k}
	s.engines = append(s.engines, &engine{baseline: s.beginBaseline(nil, 1)})
	s.End()
	assert.Equal(t, ended{begun: 1, ended: 1}, *k)
}

// A baseline that was stored before the clock was set back learns on from now.
func TestABaselineOfTheFutureCountsAsLearnedNow(t *testing.T) {
	t.Parallel()
	s := &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r := newRig(t)
	r.state.Keeper = s
	r.minutes(12, answers(1), serves("0"))
	engine := r.engine("0").attributes
	r.state.End()
	b := (&State{Keeper: s}).beginBaseline(engine, r.at-int64(24*time.Hour))
	assert.Equal(t, r.at-int64(24*time.Hour), b.Learned)
	assert.Equal(t, r.at-int64(24*time.Hour), b.SlowLearned)
}
