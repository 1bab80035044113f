package vllmprocessor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// flight is a call of the next consumer, which waits for the verdict.
type flight struct {
	text    string
	arrived chan struct{}
	verdict chan error
	done    chan error
}

type flightKey struct{}

// shown is what calls have shown of a series: the seconds with a value and with an end.
type shown struct{ values, ends map[int]bool }

// judgingBackend knows what all calls have shown, and what is live by those that it took.
type judgingBackend struct {
	mu    sync.Mutex
	shown map[string]shown
	// newest is the newest time of a series that was taken, live whether that is a value.
	newest map[string]int
	live   map[string]bool
}

func (*judgingBackend) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (b *judgingBackend) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	at, ended := map[string]int{}, map[string]bool{}
	b.mu.Lock()
	for _, rm := range takeAdded(metrics).ResourceMetrics().All() {
		server, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Gauge().DataPoints().All() {
				engine := "all"
				if value, has := p.Attributes().Get("engine"); has {
					engine = value.AsString()
				}
				series := server.AsString() + " " + engine + " " + m.Name()
				at[series] = int(p.Timestamp().AsTime().Sub(storyBegin).Seconds())
				ended[series] = p.Flags().NoRecordedValue()
				if b.shown[series].values == nil {
					b.shown[series] = shown{map[int]bool{}, map[int]bool{}}
				}
				if ended[series] {
					b.shown[series].ends[at[series]] = true
				} else {
					b.shown[series].values[at[series]] = true
				}
			}
		}
	}
	b.mu.Unlock()
	f := ctx.Value(flightKey{}).(*flight)
	close(f.arrived)
	if err := <-f.verdict; err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for series, seconds := range at {
		if seconds >= b.newest[series] {
			b.newest[series], b.live[series] = seconds, !ended[series]
		}
	}
	return nil
}

// Four senders at once, each with several calls under way, of which most are refused, early or
// late, and some are sent again. In the end exactly what lives is live. Before, no series ends
// that has a value since its engine was away.
func TestNothingIsLostAndNothingEndsThatLives(t *testing.T) {
	const engines, batches = 4, 60
	s := newSender(t, noDiagnosis)
	s.now = func() time.Time { return storyBegin.Add(batches * 15 * time.Second) }
	backend := &judgingBackend{shown: map[string]shown{}, newest: map[string]int{}, live: map[string]bool{}}
	settings := metadatatest.NewSettings(componenttest.NewTelemetry())
	pipeline, err := s.component(t.Context(), settings, backend)
	require.NoError(t, err)

	want := map[string]bool{}
	// away has the seconds in which an engine of a server is not there.
	away := map[string]map[int]bool{}
	var mu sync.Mutex
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	var senders sync.WaitGroup
	for number := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		server := fmt.Sprintf("s-%d", number)
		send := func(text string) *flight {
			f := &flight{text: text, arrived: make(chan struct{}), verdict: make(chan error, 1), done: make(chan error, 1)}
			input := readStory(t, text).calls[0].input
			go func() {
				f.done <- pipeline.ConsumeMetrics(context.WithValue(context.Background(), flightKey{}, f), input)
			}()
			<-f.arrived
			return f
		}
		senders.Go(func() {
			there, gone, late := map[int]bool{0: true, 1: true}, map[int]bool{}, map[int]bool{}
			var flights []*flight
			for i := range batches {
				last := i >= batches-8
				for engine := range engines {
					if gone[engine] = false; !last && random.IntN(4) == 0 {
						gone[engine] = there[engine]
						there[engine] = !there[engine]
					}
				}
				text := fmt.Sprintf("at %d\nserver %s\n", i*15, server) + exact + "gauge vllm.num_requests.running{9,model_name=other} 1\n"
				mu.Lock()
				for engine := range engines {
					key := fmt.Sprint(server, " ", engine)
					if away[key] == nil {
						away[key] = map[int]bool{}
					}
					switch away[key][i*15] = !there[engine]; {
					case there[engine]:
						// Its part of the batch may be missing, but not twice.
						if late[engine] = !last && !late[engine] && random.IntN(4) == 0; late[engine] {
							continue
						}
						text += cacheEngine(engine, i*30)
					case gone[engine]:
						text += strings.ReplaceAll(cacheEngine(engine, 0), " 0\n", " gone\n")
					}
				}
				mu.Unlock()
				flights = append(flights, send(text))
				for len(flights) > 0 && (last || len(flights) > random.IntN(4)) {
					at := random.IntN(len(flights))
					f := flights[at]
					flights = slices.Delete(flights, at, at+1)
					var verdict error
					if !last && random.IntN(10) < 7 {
						verdict = errors.New("the queue is full")
					}
					f.verdict <- verdict
					<-f.done
					if verdict != nil && random.IntN(3) == 0 {
						flights = append(flights, send(f.text))
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for engine := range engines {
				if there[engine] {
					want[fmt.Sprint(server, " ", engine, " vllm.generation_throughput")] = true
					want[fmt.Sprint(server, " ", engine, " vllm.prefix_cache.hit_ratio")] = true
				}
			}
		})
	}
	senders.Wait()
	for series, shown := range backend.shown {
		engine := strings.Join(strings.Split(series, " ")[:2], " ")
		for end := range shown.ends {
			assert.False(t, shown.values[end], "%s ends and has a value at %d s", series, end)
			// Back to the value before: its engine was away since then.
			for at := end; at >= 0 && away[engine] != nil && !away[engine][at]; at -= 15 {
				if !assert.False(t, shown.values[at], "%s ends at %d s and lives", series, end) {
					break
				}
			}
		}
	}
	maps.DeleteFunc(backend.live, func(series string, live bool) bool {
		return !live || strings.Contains(series, " all ")
	})
	assert.Equal(t, want, backend.live)
}
