package vllmfleetextension

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// large is a fleet of so many engines, of which one in a hundred has stalled, with curves of some minutes.
func large(tb testing.TB, n int) *asked {
	tb.Helper()
	a := ask(tb)
	var engines []fleet.Engine
	for i := range n {
		condition := "healthy"
		if i%100 == 0 {
			condition = "stalled"
		}
		engines = append(engines, says(fmt.Sprintf("vllm-%d.vllm.production.svc:8000", i), condition, func(e *fleet.Engine) {
			e.Key = fmt.Sprintf("%016x", i)
			e.Address, e.Cluster, e.Namespace, e.Pod, e.Node = fmt.Sprint("10.0.0.", i, ":8000"), "eu-1", "production", fmt.Sprint("vllm-", i), "node-1"
			e.Model, e.Version = fmt.Sprint("meta-llama/Llama-3.3-70B-Instruct-", i%50), "0.11.0"
			for of := range e.Numbers {
				e.Numbers[of] = float64(i) + 0.123
			}
		}))
	}
	a.set(engines...)
	for range 5 {
		a.record(a.view())
		a.clock = a.clock.Add(tick)
	}
	for n := range engines {
		engines[n].At, engines[n].Arrived = a.clock, a.clock
	}
	return a
}

// All of a large fleet is there.
func TestALargeFleetIsComplete(t *testing.T) {
	a := large(t, 10_000)
	w := a.get("/api/v1/fleet")
	require.Equal(t, http.StatusOK, w.Code)
	var got struct {
		Engines []struct {
			ID    string `json:"id"`
			Serve bool   `json:"serve"`
		} `json:"engines"`
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	ids, refused := map[string]bool{}, 0
	for _, e := range got.Engines {
		if ids[e.ID] = true; !e.Serve {
			refused++
		}
	}
	assert.Len(t, ids, 10_000)
	// Those that have stalled are of the models 0: half of its 200, of which 30 % can be refused.
	assert.Equal(t, 60, refused)
	assert.Less(t, w.Body.Len(), 12<<20)
	assert.Equal(t, "503 stalled", a.probe("/production/vllm-0"))
}

// However many readers do not read, they hold a few versions of a large answer, and others get the last of them.
func TestSlowReadersShareWhatTheyHold(t *testing.T) {
	var b bodies
	rendered := 0
	render := func(*view) ([]byte, error) {
		rendered++
		return fmt.Append(nil, rendered), nil
	}
	at := func(n int) *view { return &view{at: noon.Add(time.Duration(n) * time.Hour)} }
	take := func(v *view) *body {
		one, err := b.take(v, render)
		require.NoError(t, err)
		return one
	}
	first := at(0)
	once := take(first)
	assert.Same(t, once, take(first), "one of a view")
	held := map[*body]int{b.newest: 2}
	for n := range 1000 {
		held[take(at(n+1))]++
	}
	assert.Len(t, held, mostBodies)
	assert.Equal(t, mostBodies, rendered)
	assert.Equal(t, "4", string(take(at(2000)).content), "the newest of those that are held")
	held[b.newest]++
	for one, readers := range held {
		for range readers {
			b.release(one)
		}
	}
	assert.Zero(t, b.held)
	assert.Equal(t, "5", string(take(at(3000)).content), "as soon as they have read")

	// What took long to render is used for longer.
	b = bodies{}
	one, err := b.take(first, func(*view) ([]byte, error) { time.Sleep(20 * time.Millisecond); return nil, nil })
	require.NoError(t, err)
	b.release(one)
	assert.Same(t, one, take(&view{at: first.at.Add(179 * time.Millisecond)}))
}

// A thousand readers of a large document, each a second after the other, who do not read: the memory is that of a few.
func TestTheMemoryOfSlowReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("it renders a large fleet several times")
	}
	a := large(t, 1000)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	size := int64(a.get("/api/v1/fleet").Body.Len())
	before := heap()
	blocked, writing := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	const readers = 200
	for range readers {
		go func() {
			a.handler.ServeHTTP(&stuck{header: http.Header{}, writing: writing, until: blocked}, httptest.NewRequest(http.MethodGet, "/api/v1/fleet", http.NoBody))
			done <- struct{}{}
		}()
		<-writing
		a.clock = a.clock.Add(10 * time.Second)
	}
	held := heap() - before
	close(blocked)
	for range readers {
		<-done
	}
	t.Logf("%d readers of %d bytes hold %d bytes", readers, size, held)
	assert.Less(t, held, 3*mostBodies*size)
}

// stuck does not read.
type stuck struct {
	header  http.Header
	writing chan struct{}
	until   chan struct{}
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write(p []byte) (int, error) {
	s.writing <- struct{}{}
	<-s.until
	return len(p), nil
}

// What answers cost: of a probe for which the processors were asked within the last second, and of all others at the first
// question.
func BenchmarkAnswers(b *testing.B) {
	for _, engines := range []int{100, 1000, 10_000} {
		a := large(b, engines)
		for _, path := range []string{"/probe/vllm-1", "/api/v1/fleet", "/", "/api/v1/engines/0000000000000001"} {
			b.Run(fmt.Sprintf("engines=%d%s", engines, path), func(b *testing.B) {
				a.source.details = map[string]*fleet.Detail{"0000000000000001": stalledWords()}
				b.ReportAllocs()
				bytes := 0
				for b.Loop() {
					if path != "/probe/vllm-1" {
						a.clock = a.clock.Add(time.Hour)
					}
					bytes = a.get(path).Body.Len()
				}
				b.ReportMetric(float64(bytes), "bytes")
			})
		}
		b.Run(fmt.Sprintf("engines=%d/view", engines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.clock = a.clock.Add(fresh)
				a.view()
			}
		})
	}
}
