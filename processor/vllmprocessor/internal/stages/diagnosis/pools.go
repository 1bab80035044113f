package diagnosis

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pooldiagnosis"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// Pools diagnoses pools of servers from the diagnosis of their engines.
type Pools struct {
	stage  *Stage
	series emit.Memory

	// mu guards pools, which are saved at other times than they are judged. It is taken before
	// the locks of the servers, and before that of the archive.
	mu    sync.Mutex
	pools pooldiagnosis.Pools
}

// NewPools returns the diagnosis of at most so many pools.
func (s *Stage) NewPools(limit int) *Pools {
	s.pools = &Pools{stage: s, pools: pooldiagnosis.Pools{MaxPools: limit, Keeper: poolKeeper{s.Archive, s.Diagnoses}}}
	return s.pools
}

// snapshot passes what is usual in the pools to put.
func (p *Pools) snapshot(put func(key string, state []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools.References(func(attributes []input.Attribute, references []byte) {
		put(archive.KeyOf("", attributes, poolName), references)
	})
}

// snapshotDiagnoses passes the diagnoses of the pools to put.
func (p *Pools) snapshotDiagnoses(put func(key string, state []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools.Diagnoses(func(attributes []input.Attribute, diagnosis []byte) {
		put(archive.KeyOf("", attributes, poolDiagnosisName), diagnosis)
	})
}

// poolKeeper gives the diagnosis of pools what an archive has of them.
type poolKeeper struct{ archive, diagnoses *archive.User }

// The names of the keys of pools.
const (
	poolName          = "pool"
	poolDiagnosisName = "pool diagnosis"
)

// Begin returns what was usual in a pool before.
func (k poolKeeper) Begin(attributes []input.Attribute) []byte {
	key := archive.KeyOf("", attributes, poolName)
	saved, _ := k.archive.Begin(key, key)
	return saved
}

// End keeps what is usual in a pool.
func (k poolKeeper) End(attributes []input.Attribute, references []byte) {
	k.archive.End(archive.KeyOf("", attributes, poolName), references)
}

// Append writes in which condition the pools are, and logs what has changed. each calls
// its visitor for every server that counts; poolOf returns the attributes of the pool of
// an engine. It returns how many servers were left out because there are too many pools.
func (p *Pools) Append(
	ctx context.Context, now time.Time, resource pcommon.Map, out *emit.Output,
	each func(visit func(server *stages.Server)), poolOf func(engine []input.Attribute, server *stages.Server) []input.Attribute,
) (leftOut int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pools.Begin()
	each(func(server *stages.Server) {
		state, has := stages.Of[*state](server)
		if has && !p.pools.Add(&state.engines, func(of []input.Attribute) []input.Attribute { return poolOf(of, server) }) {
			leftOut++
		}
	})
	each(func(server *stages.Server) {
		if state, has := stages.Of[*state](server); has {
			p.pools.Queue(&state.engines)
		}
	})
	values, changes := p.pools.Evaluate(&p.stage.settings, now.UnixNano(), p.stage.enabled)
	p.stage.logChanges(ctx, changes, resource, now)
	out.Append(&p.series, values, now.UnixNano())
	return leftOut
}

// BeginDiagnosis returns the diagnosis of a pool before the collector restarted.
func (k poolKeeper) BeginDiagnosis(attributes []input.Attribute) []byte {
	key := archive.KeyOf("", attributes, poolDiagnosisName)
	saved, _ := k.diagnoses.Begin(key, key)
	return saved
}

// EndDiagnosis forgets the diagnosis of a pool.
func (k poolKeeper) EndDiagnosis(attributes []input.Attribute) {
	k.diagnoses.Forget(archive.KeyOf("", attributes, poolDiagnosisName))
}
