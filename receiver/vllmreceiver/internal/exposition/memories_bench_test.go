package exposition

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The question of BenchmarkMemories: what does each level of memory bring over the
// other, and over none? A remembering is one answer, as the state of one target.
type remembering interface {
	read(body []byte) *Layout
}

// rememberings are the answers. Each returns a function that makes the targets of
// one receiver.
var rememberings = []struct {
	name string
	make func() func() remembering
}{
	{"none", func() func() remembering {
		return func() remembering { return none{} }
	}},
	{"blocks only", func() func() remembering {
		memory := NewMemory(1_000_000)
		return func() remembering { return &blocksOnly{r: NewReader(memory)} }
	}},
	{"layouts only", func() func() remembering {
		memory := NewMemory(1_000_000)
		return func() remembering { return &layoutsOnly{r: NewReader(memory)} }
	}},
	{"whole bodies", func() func() remembering {
		memory := NewMemory(1_000_000)
		return func() remembering { return &wholeBodies{r: NewReader(memory)} }
	}},
	{"both, each target its own", func() func() remembering {
		return func() remembering { return &readerOnly{NewReader(NewMemory(1_000_000))} }
	}},
	{"both, shared", func() func() remembering {
		memory := NewMemory(1_000_000)
		return func() remembering { return &readerOnly{NewReader(memory)} }
	}},
}

// none reads each body with a new memory.
type none struct{}

func (none) read(body []byte) *Layout { return NewReader(NewMemory(0)).Read(body, DialectText).Layout }

// readerOnly is the package as it is.
type readerOnly struct{ r *Reader }

func (t *readerOnly) read(body []byte) *Layout {
	defer t.r.Done()
	return t.r.Read(body, DialectText).Layout
}

// blocksOnly replays known blocks and assembles the layout each time.
type blocksOnly struct{ r *Reader }

func (t *blocksOnly) read(body []byte) *Layout {
	collectBlocks(t.r, body)
	made := assemble(t.r.blocks, DialectText)
	t.r.recent[0] = made
	t.r.freeScratch()
	return &made.layout
}

// layoutsOnly parses every line and finds the layout by its blocks.
type layoutsOnly struct{ r *Reader }

func (t *layoutsOnly) read(body []byte) *Layout {
	recent := t.r.recent
	clear(t.r.recent[:])
	t.r.memory.blocks = index[block]{}
	collectBlocks(t.r, body)
	t.r.recent = recent
	layout := &t.r.layout(DialectText).layout
	t.r.freeScratch()
	return layout
}

// collectBlocks does what Read does before it asks for the layout.
func collectBlocks(r *Reader, body []byte) {
	if r.work == nil {
		r.work = r.memory.borrow()
	}
	r.walk(body, DialectText)
	if r.parsing != nil {
		r.merge(body, DialectText)
		return
	}
	r.values, r.matched = r.matched, r.values
	r.blocks = r.blocks[:0]
	for i := range r.pieces {
		r.blocks = append(r.blocks, r.pieces[i].block)
	}
}

// wholeBodies has one level: a body is one block, and its layout belongs to it.
type wholeBodies struct{ r *Reader }

func (t *wholeBodies) read(body []byte) *Layout {
	r := t.r
	if r.work == nil {
		r.work = r.memory.borrow()
	}
	r.matched = r.matched[:0]
	if last := r.recent[0]; last != nil && r.match(last.blocks[0], body, 0) == len(body) {
		return &last.layout
	}
	p := parsingPool.Get().(*parsing)
	for pos := 0; pos < len(body); {
		p.raws, pos = scanBlock(p.raws, body, pos, DialectText)
	}
	hash := sumOf(r.memory.seed, p.raws, body, 0, len(body), DialectText)
	for _, known := range r.memory.find(hash) {
		if r.match(known, body, 0) == len(body) {
			p.release()
			r.recent[0] = r.memory.layout([]*block{known}, DialectText)
			return &r.recent[0].layout
		}
		r.matched = r.matched[:0]
	}
	p.lex(body, 0, DialectText)
	p.text.flush(body, p.raws)
	whole := r.memory.share(newBlock(r.memory.seed, p.raws, body, 0, len(body), DialectText))
	p.release()
	r.recent[0] = r.memory.layout([]*block{whole}, DialectText)
	return &r.recent[0].layout
}

// fleet is the bodies of many targets over time. The slice that body returns is
// good until the next call.
type fleet struct {
	pages  [2][]byte
	buffer []byte
	// models is true where each target serves a model of its own, else all are
	// replicas. adapters is true where the running LoRA adapters, which are a label,
	// differ from target to target and from scrape to scrape.
	models, adapters bool
}

func newFleet(tb testing.TB, models, adapters bool) *fleet {
	tb.Helper()
	f := &fleet{models: models, adapters: adapters}
	for i, name := range []string{"metrics.txt", "metrics-2.txt"} {
		page, err := os.ReadFile("../../../../testdata/v1-0.20.0/" + name)
		require.NoError(tb, err)
		require.Contains(tb, string(page), `model_name="meta-llama/Llama-3.1-8B-Instruct"`)
		f.pages[i] = page
	}
	return f
}

func (f *fleet) body(target, scrape int) []byte {
	model := "some-organisation/a-model-8b-instruct-0000"
	if f.models {
		model = fmt.Sprintf("some-organisation/a-model-8b-instruct-%04d", target)
	}
	f.buffer = append(f.buffer[:0], bytes.ReplaceAll(f.pages[scrape%2], []byte(`model_name="meta-llama/Llama-3.1-8B-Instruct"`), []byte(`model_name="`+model+`"`))...)
	if f.adapters {
		f.buffer = fmt.Appendf(f.buffer, "# TYPE vllm:lora_requests_info gauge\n"+
			"vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"adapter-%d-%d\",waiting_lora_adapters=\"\"} 1.7e9\n", target, scrape)
	}
	return f.buffer
}

// BenchmarkMemories measures the levels of memory at 1000 targets: the time and the
// allocations of a scrape in the steady state, and what is held between two scrapes.
// The variants run in turns, the best round of each counts, and times are ratios to
// the parsers without memory.
func BenchmarkMemories(b *testing.B) {
	const targets, turns = 1000, 2
	for _, fleetOf := range []struct {
		name             string
		models, adapters bool
	}{
		{"replicas", false, false},
		{"models", true, false},
		{"replicas whose adapters change", false, true},
	} {
		b.Run(fleetOf.name, func(b *testing.B) {
			type result struct {
				time           time.Duration
				allocs, allocB uint64
				held           int64
			}
			results := make([]result, len(rememberings))
			for b.Loop() {
				for i := range results {
					results[i].time = 1<<63 - 1
				}
				for range turns {
					for i, variant := range rememberings {
						f := newFleet(b, fleetOf.models, fleetOf.adapters)
						before := heap()
						newTarget := variant.make()
						all := make([]remembering, targets)
						for n := range all {
							all[n] = newTarget()
							all[n].read(f.body(n, 0))
						}
						held := int64(heap()) - int64(before)
						var spent time.Duration
						var start, end runtime.MemStats
						var allocs, allocB uint64
						for n, target := range all {
							body := slices.Clone(f.body(n, 1))
							runtime.ReadMemStats(&start)
							began := time.Now()
							target.read(body)
							spent += time.Since(began)
							runtime.ReadMemStats(&end)
							allocs += end.Mallocs - start.Mallocs
							allocB += end.TotalAlloc - start.TotalAlloc
						}
						r := &results[i]
						r.time = min(r.time, spent/targets)
						r.allocs, r.allocB, r.held = allocs/targets, allocB/targets, held/targets
						runtime.KeepAlive(all)
					}
				}
			}
			for i, variant := range rememberings {
				r := &results[i]
				b.Logf("%-26s %8.4f of the time without (%v), %6d allocations, %7d bytes allocated, %7d bytes held per target",
					variant.name, float64(r.time)/float64(results[0].time), r.time, r.allocs, r.allocB, r.held)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
