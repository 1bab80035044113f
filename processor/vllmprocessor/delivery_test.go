package vllmprocessor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// fickle is a consumer that refuses on demand.
type fickle struct {
	refuses bool
	// during is called while it consumes.
	during func()
	last   pmetric.Metrics
	mu     sync.Mutex
}

// refuse sets whether it refuses, for a consumer that is called by another goroutine.
func (f *fickle) refuse(refuses bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = refuses
}

func (f *fickle) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (f *fickle) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	if f.during != nil {
		f.during()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = metrics
	if f.refuses {
		return errors.New("no")
	}
	return nil
}

// sender sends batches of stories through the processor as a pipeline does.
type sender struct {
	*vllmProcessor
	t        *testing.T
	pipeline processor.Metrics
	next     *fickle
	own      *componenttest.Telemetry
}

func newSender(t *testing.T, config string) *sender {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	s := &sender{t: t, next: &fickle{}, own: telemetry}
	settings := metadatatest.NewSettings(telemetry)
	s.vllmProcessor = create(t, configured(t, config), settings)
	var err error
	s.pipeline, err = s.component(t.Context(), settings, s.next)
	require.NoError(t, err)
	require.NoError(t, s.pipeline.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, s.pipeline.Shutdown(t.Context()))
		require.NoError(t, telemetry.Shutdown(context.WithoutCancel(t.Context())))
	})
	return s
}

// send sends one batch and returns what was derived from it.
func (s *sender) send(text string, refused bool) map[string]float64 {
	s.t.Helper()
	call := readStory(s.t, text).calls[0]
	s.now = func() time.Time { return call.at }
	s.next.refuses = refused
	err := s.pipeline.ConsumeMetrics(s.t.Context(), call.input)
	require.Equal(s.t, refused, err != nil)
	return points(s.t, takeAdded(s.next.last))
}

// Two engines with a cache: a ratio and two rates for each, and the ratio over both.
func cacheBody(at, n int) string {
	return fmt.Sprintf("at %d\n", at) + exact + cacheEngine(0, n) + cacheEngine(1, n)
}

// exact is a version that counts each lookup in the prefix cache once.
const exact = "attribute service.version=0.27.0\n"

func cacheEngine(engine, n int) string {
	return fmt.Sprintf("counter vllm.prefix_cache.hits{%d} %d\ncounter vllm.prefix_cache.queries{%d} %d\ncounter vllm.generation_tokens{%d} %d\n",
		engine, n, engine, 2*n, engine, n)
}

const noDiagnosis = "diagnosis: {enabled: false}"

func TestABatchThatIsSentAgainBringsTheSameAgain(t *testing.T) {
	for name, config := range map[string]string{
		"derived": noDiagnosis, "with a diagnosis": "",
		"with objectives": "objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]",
	} {
		for _, refused := range []bool{true, false} {
			t.Run(fmt.Sprint(name, refused), func(t *testing.T) {
				s := newSender(t, config)
				body := func(at, n int) string {
					return cacheBody(at, n) + fmt.Sprintf("gauge vllm.num_requests.running{0} 1\nhistogram vllm.time_to_first_token{0} 1:%d inf:0 sum:%d\n", n, n)
				}
				s.send(body(0, 0), false)
				s.send(body(15, 30), false)
				first := s.send(body(30, 60), refused)
				require.GreaterOrEqual(t, len(first), 5)
				assert.Equal(t, first, s.send(body(30, 60), refused))
				assert.Equal(t, first, s.send(body(30, 60), false))
				later := s.send(body(45, 90), false)
				assert.Len(t, later, len(first))
				assert.Equal(t, first, s.send(body(30, 60), false), "also when later ones have arrived")
			})
		}
	}
}

func TestAPartThatIsSentAgainBringsItsPartAgain(t *testing.T) {
	s := newSender(t, noDiagnosis)
	part := func(engine, at, n int) string { return fmt.Sprintf("at %d\n", at) + exact + cacheEngine(engine, n) }
	s.send(cacheBody(0, 0), false)
	s.send(cacheBody(15, 30), false)
	first := s.send(part(0, 30, 60), true)
	assert.Len(t, first, 2, "of one engine, not over both")
	second := s.send(part(1, 30, 60), true)
	assert.Len(t, second, 3)
	assert.Equal(t, first, s.send(part(0, 30, 60), false))
	assert.Equal(t, second, s.send(part(1, 30, 60), false))
}

// A batch in many parts that were all taken: a part comes again because another
// consumer before this processor refused it.
func TestEachOfManyPartsThatIsSentAgainBringsItsPartAgain(t *testing.T) {
	s := newSender(t, noDiagnosis)
	const engines = 6
	whole := func(at, n int) string {
		text := fmt.Sprintf("at %d\n", at) + exact
		for engine := range engines {
			text += cacheEngine(engine, n)
		}
		return text
	}
	s.send(whole(0, 0), false)
	s.send(whole(15, 30), false)
	var first []map[string]float64
	for engine := range engines {
		first = append(first, s.send("at 30\n"+exact+cacheEngine(engine, 60), false))
		assert.GreaterOrEqual(t, len(first[engine]), 2)
	}
	for engine := range engines {
		assert.Equal(t, first[engine], s.send("at 30\n"+exact+cacheEngine(engine, 60), false))
	}
}

func TestPartsThatAreSentAgainAsOneBringAllAgain(t *testing.T) {
	s := newSender(t, noDiagnosis)
	part := func(engine, at, n int) string { return fmt.Sprintf("at %d\n", at) + exact + cacheEngine(engine, n) }
	s.send(cacheBody(0, 0), false)
	s.send(cacheBody(15, 30), false)
	whole := s.send(part(0, 30, 60), true)
	maps.Copy(whole, s.send(part(1, 30, 60), true))
	require.Len(t, whole, 5)
	assert.Equal(t, whole, s.send(cacheBody(30, 60), false))
}

// The cache is not asked any more, so its ratios end. The ends are sent with each
// batch until one was taken, and then no more.
func TestEndsAreSentUntilOneIsTaken(t *testing.T) {
	s := newSender(t, "{window: 30s, diagnosis: {enabled: false}}")
	still := func(at int) string { return cacheBody(at, 30) }
	s.send(cacheBody(0, 0), false)
	s.send(cacheBody(15, 30), false)
	ends := func(emitted map[string]float64) (n int) {
		for key, value := range emitted {
			if math.IsNaN(value) {
				assert.Contains(t, key, "prefix_cache")
				n++
			}
		}
		return n
	}
	assert.Zero(t, ends(s.send(still(30), false)))
	assert.Equal(t, 3, ends(s.send(still(45), true)))
	assert.Equal(t, 3, ends(s.send(still(60), true)))
	assert.Equal(t, 3, ends(s.send(still(75), false)))
	assert.Zero(t, ends(s.send(still(90), false)))
	assert.Equal(t, 3, ends(s.send(still(45), false)), "the same batch has the same ends")
	assert.Zero(t, ends(s.send(still(105), false)))
}

// The server is gone, and its last ends were refused. Without a batch to send them with
// they are counted as dropped when the server is forgotten; those that were taken are not.
func TestEndsOfAServerThatIsForgottenAreCounted(t *testing.T) {
	for refused, want := range map[bool]int64{true: 5, false: 0} {
		s := newSender(t, noDiagnosis)
		s.send(cacheBody(0, 0), false)
		s.send(cacheBody(15, 30), false)
		gone := "at 30\n" + exact + strings.ReplaceAll(cacheEngine(0, 0)+cacheEngine(1, 0), " 0\n", " gone\n")
		require.Len(t, s.send(gone, refused), 5)
		s.send("at 400\nserver another\n"+cacheEngine(0, 0), false)
		if want == 0 {
			_, err := s.own.GetMetric("otelcol_processor_vllm_dropped_ends")
			require.Error(t, err, "none was dropped")
			continue
		}
		metadatatest.AssertEqualProcessorVllmDroppedEnds(t, s.own, []metricdata.DataPoint[int64]{{Value: want}}, metricdatatest.IgnoreTimestamp())
	}
}

func TestAnEndThatWasTakenWithTheSameBatchIsNotSentAgain(t *testing.T) {
	s := newSender(t, "{window: 30s, diagnosis: {enabled: false}}")
	s.send(cacheBody(0, 0), false)
	s.send(cacheBody(15, 30), false)
	s.send(cacheBody(30, 30), false)
	first := s.send(cacheBody(45, 30), true)
	assert.Equal(t, fmt.Sprint(first), fmt.Sprint(s.send(cacheBody(45, 30), false)))
	for _, value := range s.send(cacheBody(60, 30), false) {
		assert.False(t, math.IsNaN(value))
	}
}

func TestASeriesThatIsBackHasNoEndThatIsLate(t *testing.T) {
	s := newSender(t, "{window: 30s, diagnosis: {enabled: false}}")
	s.send(cacheBody(0, 0), false)
	s.send(cacheBody(15, 30), false)
	s.send(cacheBody(30, 30), false)
	s.send(cacheBody(45, 30), true)
	for key, value := range s.send(cacheBody(60, 60), false) {
		assert.False(t, math.IsNaN(value), key)
	}
	for key, value := range s.send(cacheBody(75, 90), false) {
		assert.False(t, math.IsNaN(value), key)
	}
}

// The consumer refuses for so long that the state of what has ended is forgotten. What
// comes back then lives, and none of its series ends in the same batch.
func TestAnEndThatWasRefusedIsNotSentOnceItsSeriesIsBackUnderAnotherNumber(t *testing.T) {
	s := newSender(t, "{window: 30s, max_staleness: 60s, diagnosis: {enabled: false}, "+
		"objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]}")
	body := func(at, engines int) string {
		text := fmt.Sprintf("at %d\n%sgauge vllm.num_requests.running{9,model_name=other} 1\n", at, exact)
		for engine := range engines {
			text += cacheEngine(engine, at) + fmt.Sprintf("histogram vllm.time_to_first_token{%d} 1:%d inf:0 sum:%d\n", engine, at, at)
		}
		return text
	}
	ends := func(all map[string]float64) (n int) {
		for _, value := range all {
			if math.IsNaN(value) {
				n++
			}
		}
		return n
	}
	at := 0
	for ; at < 60; at += 15 {
		s.send(body(at, 2), false)
	}
	refused := 0
	for ; at < 300; at += 15 {
		refused = ends(s.send(body(at, 0), true))
	}
	require.Greater(t, refused, 10)
	for i := range 4 {
		got := s.send(body(at+15*i, 2), true)
		if i > 1 {
			assert.Zero(t, ends(got), "%v", got)
		}
	}
}

// The server gets another version in place. Its series end under the attributes
// that it had.
func TestEndsOfAServerThatWasUpdatedAreSentUnderItsOldAttributes(t *testing.T) {
	s := newSender(t, noDiagnosis)
	version := func(v, text string) string {
		return strings.ReplaceAll(text, "service.version=0.27.0", "service.version="+v)
	}
	s.send(version("0.27.1", cacheBody(0, 0)), false)
	s.send(version("0.27.1", cacheBody(15, 30)), false)
	// The ends of what was read, and what is read, in one payload.
	gone := version("0.27.1", "at 30\n"+exact+strings.ReplaceAll(cacheEngine(0, 0), " 0\n", " gone\n")+strings.ReplaceAll(cacheEngine(1, 0), " 0\n", " gone\n"))
	both := gone + "server vllm-0:8000\nattribute service.version=0.27.2\n" + cacheEngine(0, 60) + cacheEngine(1, 60)
	call := readStory(t, both).calls[0]
	s.now = func() time.Time { return call.at }
	s.next.refuses = true
	require.Error(t, s.pipeline.ConsumeMetrics(t.Context(), call.input))
	byVersion := func() map[string][2]int {
		all := map[string][2]int{}
		for _, rm := range takeAdded(s.next.last).ResourceMetrics().All() {
			v, _ := rm.Resource().Attributes().Get("service.version")
			n := all[v.AsString()]
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						n[1]++
					} else {
						n[0]++
					}
				}
			}
			all[v.AsString()] = n
		}
		return all
	}
	want := map[string][2]int{"0.27.1": {0, 5}, "0.27.2": {5, 0}}
	assert.Equal(t, want, byVersion())
	send := func(at, n int) {
		call := readStory(t, version("0.27.2", cacheBody(at, n))).calls[0]
		s.now = func() time.Time { return call.at }
		require.NoError(t, s.pipeline.ConsumeMetrics(t.Context(), call.input))
	}
	s.next.refuses = false
	send(45, 90)
	assert.Equal(t, want, byVersion())
	send(60, 120)
	assert.Equal(t, map[string][2]int{"0.27.2": {5, 0}}, byVersion())
}

func TestNoLockIsHeldWhileTheNextConsumerRuns(t *testing.T) {
	s := newSender(t, "pool: {}")
	s.send(cacheBody(0, 0), false)
	within := false
	s.next.during = func() {
		s.next.during = nil
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Another batch of the same server, a scrape of the collector's own metrics and
			// a save.
			assert.NoError(t, s.pipeline.ConsumeMetrics(t.Context(), readStory(t, cacheBody(30, 60)).calls[0].input))
			s.snapshot()
			s.pools().Collect(t.Context(), nil)
		}()
		select {
		case <-done:
			within = true
		case <-time.After(20 * time.Second):
		}
	}
	s.send(cacheBody(15, 30), false)
	assert.True(t, within)
}

// A server whose batches take long holds up no other.
func TestAServerThatIsAtWorkHoldsUpNoOther(t *testing.T) {
	s := newSender(t, "")
	s.send(cacheBody(0, 0), false)
	r := s.resources[keyOf(t, cacheBody(0, 0))]
	require.NotNil(t, r)
	r.mu.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 { // ten minutes, in which others are looked through
			text := strings.Replace(cacheBody(15*i, 30*i), "\n", "\nserver another\n", 1)
			assert.NoError(t, s.pipeline.ConsumeMetrics(t.Context(), readStory(t, text).calls[0].input))
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		assert.Fail(t, "it waits")
	}
	r.mu.Unlock()
	<-done
}

// keyOf is the identity of the first resource of a batch.
func keyOf(t *testing.T, text string) string {
	t.Helper()
	return identityOf(readStory(t, text).calls[0].input)
}

// Batches of one server and of several, resends and refusals all at once, for the
// race detector; each batch gets the same each time.
func TestBatchesAndResendsAtTheSameTime(t *testing.T) {
	s := newSender(t, "pool: {}")
	s.now = func() time.Time { return storyBegin }
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 20 {
				text := strings.Replace(cacheBody(i*15, i*30), "\n", fmt.Sprintf("\nserver s-%d\n", worker%3), 1)
				if err := s.pipeline.ConsumeMetrics(context.Background(), readStory(t, text).calls[0].input); err != nil {
					assert.NoError(t, s.pipeline.ConsumeMetrics(context.Background(), readStory(t, text).calls[0].input))
				}
			}
		})
	}
	group.Go(func() {
		for range 20 {
			s.pools().Collect(context.Background(), nil)
			s.snapshot()
		}
	})
	group.Wait()
}

// A consumer refuses for ten minutes while engines come and go. Each of 600 servers may keep
// 64 KiB of the ends. The others are counted.
func TestEndsThatNoConsumerTakesAreBounded(t *testing.T) {
	race.SkipSequential(t)
	s := newSender(t, "{max_staleness: 2h, diagnosis: {enabled: false}}")
	others := "at 0\n"
	for server := range 600 {
		others += fmt.Sprintf("server s-%d\n", server) + cacheEngine(0, 0)
	}
	s.send(others, false)
	const engines, batches = 80, 40
	ended := map[string]bool{}
	for i := range batches {
		text := fmt.Sprintf("at %d\n", i*15) + exact
		for engine := range engines {
			text += cacheEngine(i/2*engines+engine, i%2*10)
		}
		for key, value := range s.send(text, true) {
			if math.IsNaN(value) {
				ended[key[strings.LastIndex(key, " ")+1:]] = true // without server and time
			}
		}
	}
	kept := 0
	var sizer pmetric.ProtoMarshaler
	s.next.refuses = false
	require.NoError(t, s.pipeline.ConsumeMetrics(t.Context(), readStory(t, fmt.Sprintf("at %d\n", batches*15)+exact+cacheEngine(0, 0)).calls[0].input))
	added := takeAdded(s.next.last)
	assert.LessOrEqual(t, sizer.MetricsSize(added), 64<<10)
	for key, value := range points(t, added) {
		if math.IsNaN(value) {
			kept++
			ended[key[strings.LastIndex(key, " ")+1:]] = true
		}
	}
	assert.Greater(t, kept, 400)
	dropped, err := s.own.GetMetric("otelcol_processor_vllm_dropped_ends")
	require.NoError(t, err)
	lost := dropped.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	assert.Equal(t, len(ended), kept+int(lost), "each is kept or counted")
}

func identityOf(metrics pmetric.Metrics) string {
	return identity.Of(metrics.ResourceMetrics().At(0).Resource().Attributes())
}
