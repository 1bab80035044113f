package vllmprocessor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// hostWith is a host with one extension.
type hostWith struct {
	id        component.ID
	extension component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h.extension}
}

var stateID = component.MustNewIDWithName("file_storage", "state")

// files is a host with the contrib distribution's file storage in a folder.
func files(t *testing.T, folder string) hostWith {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = folder
	settings := extensiontest.NewNopSettings(factory.Type())
	settings.ID = stateID
	extension, err := factory.Create(context.Background(), settings, config)
	require.NoError(t, err)
	require.NoError(t, extension.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })
	return hostWith{stateID, extension}
}

// kept is a configuration with an objective on the first token and a storage.
func kept() *Config {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9))
	config.Storage = &stateID
	return config
}

const (
	budgetLeft  = "error_budget_remaining{bound=lower,model_name=m,objective=ttft}"
	burnHour    = "burn_rate{bound=lower,model_name=m,objective=ttft,window=1h}"
	coveredHour = "coverage{model_name=m,objective=ttft,window=1h}"
)

// shows passes a body of a server through and waits half a minute before that.
func (i *instance) shows(name string, engines map[string]*engineLog, seconds ...float64) emittedObjectives {
	i.t.Helper()
	i.at = i.at.Add(30 * time.Second)
	for _, e := range engines {
		e.firstTokenTook(i.at.Add(-time.Second), seconds...)
	}
	return i.take(body(name, "m", i.at, []string{firstToken}, engines))
}

func TestARestartOfTheCollectorContinuesTheBudgetButNotTheSums(t *testing.T) {
	folder := t.TempDir()
	engines := map[string]*engineLog{"0": {born: noon}}
	before := newInstance(t, kept(), &archive.Shared{})
	before.begin(files(t, folder))
	before.shows("one:8000", engines)
	// 4 requests, 1 of them too slow: burnt 25 % of 10 %.
	before.shows("one:8000", engines, 1, 1)
	got := before.shows("one:8000", engines, 1, 3)
	assert.InDelta(t, 1-2.5, got.values[budgetLeft], 1e-9)
	before.end()

	after := newInstance(t, kept(), &archive.Shared{})
	after.at = before.at.Add(10 * time.Minute)
	after.begin(files(t, folder))
	// While the collector was down 3 requests were served; when is not known.
	after.begins(after.shows("one:8000", engines, 9, 9, 9), 0.9, 2.5)
	began := after.at
	got = after.shows("one:8000", engines, 1)
	assert.InDelta(t, 1-2.0, got.values[budgetLeft], 1e-9, "1 of 5")
	assert.InDelta(t, 2.0, got.values[burnHour], 1e-9)
	assert.InDelta(t, 90.0/3600, got.values[coveredHour], 0.5/60, "three steps of 30 s were seen")
	assert.Equal(t, 1.0, got.values[valid], "a sum begins with the process that reports it")
	assert.Equal(t, began, got.starts[valid])
	after.end()
}

func TestPipelinesOfOneProcessorShareTheStorage(t *testing.T) {
	folder := t.TempDir()
	one, two, both := map[string]*engineLog{"0": {born: noon}}, map[string]*engineLog{"0": {born: noon}}, map[string]*engineLog{"0": {born: noon}}
	host, shared := files(t, folder), &archive.Shared{}
	// A second client would wait for the lock of the first and fail.
	left, right := newInstance(t, kept(), shared), newInstance(t, kept(), shared)
	left.begin(host)
	right.begin(host)
	for n := range 4 {
		seconds := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}
		if n == 3 {
			seconds = append(seconds, 3)
		}
		left.shows("left:8000", one, seconds...)
		right.shows("right:8000", two, 1, 1, 1, 3)
		both["0"].firstTokenTook(left.at.Add(-time.Second), 1, 3)
		left.take(body("both:8000", "m", left.at, []string{firstToken}, both))
		right.take(body("both:8000", "m", right.at, []string{firstToken}, both))
	}
	left.end()
	right.end()

	again := newInstance(t, kept(), &archive.Shared{})
	again.at = left.at
	again.begin(files(t, folder))
	again.shows("left:8000", one)
	again.at = again.at.Add(-30 * time.Second)
	again.shows("right:8000", two)
	again.at = again.at.Add(-30 * time.Second)
	again.shows("both:8000", both)
	for name, want := range map[string]struct {
		engines map[string]*engineLog
		left    float64
	}{"left:8000": {one, 1 - (1.0/28)/0.1}, "right:8000": {two, 1 - 2.5}, "both:8000": {both, 1 - 5}} {
		again.at = left.at.Add(30 * time.Second)
		assert.InDelta(t, want.left, again.shows(name, want.engines).values[budgetLeft], 1e-9, name)
	}
	again.end()
}

func TestAResourceThatComesBackContinues(t *testing.T) {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.9))
	p := run(t, config)
	engines := map[string]*engineLog{"0": {born: noon}}
	p.shows("one:8000", engines)
	p.shows("one:8000", engines, 1, 3)
	require.Equal(t, 1, p.objectives().Trackers.Used())
	// It is silent for an hour; another one keeps the processor awake.
	other := map[string]*engineLog{"0": {born: noon}}
	for range 120 {
		p.shows("other:8000", other)
	}
	require.Equal(t, 1, p.objectives().Trackers.Used(), "that of the other")
	p.shows("one:8000", engines)
	got := p.shows("one:8000", engines, 1, 1)
	assert.InDelta(t, 1-2.5, got.values[budgetLeft], 1e-9, "1 of 4")
	assert.Equal(t, 2.0, got.values[valid])
}

func TestWhereTwoPipelinesSeeAServerTheOlderStateIsSaved(t *testing.T) {
	store, shared := &memory{}, &archive.Shared{}
	first, second := newInstance(t, kept(), shared), newInstance(t, kept(), shared)
	first.begin(hostWith{stateID, store})
	second.begin(hostWith{stateID, store})
	engines := map[string]*engineLog{"0": {born: noon}}
	saved := func() (valid float64) {
		first.objectives().Archive.Save(context.Background())
		saved, err := archive.Decode(store.data[budgetsKey])
		require.NoError(t, err)
		require.Len(t, saved, 1)
		o := promise("ttft", firstToken, 2500*time.Millisecond, 0.9)
		for _, state := range saved {
			tracker := objective.NewTracker(&o, objective.Windows{Burn: []time.Duration{time.Hour, 6 * time.Hour}, Budget: 720 * time.Hour}, 0)
			require.Equal(t, objective.RestoredAll, tracker.Restore(state, first.at.UnixNano()))
			valid = tracker.Budget(first.at.UnixNano()).Valid
		}
		return valid
	}
	first.shows("one:8000", engines)
	first.shows("one:8000", engines, 1)
	// The other pipeline begins when the first has counted already.
	for range 2 {
		first.shows("one:8000", engines, 1)
		second.at = first.at
		second.take(body("one:8000", "m", first.at, []string{firstToken}, engines))
	}
	assert.Equal(t, 3.0, saved())
	// When the first sees it no more, what the other has is better than nothing.
	first.at = first.at.Add(10 * time.Minute)
	first.take(body("else:8000", "m", first.at, nil, engines))
	require.Zero(t, first.objectives().Trackers.Used())
	second.shows("one:8000", engines, 1, 1)
	assert.Equal(t, 3.0, saved())
	second.shows("one:8000", engines, 1, 1)
	assert.Equal(t, 5.0, saved())
	second.end()
	first.end()
}

func TestWhatCannotBeReadStartsAnew(t *testing.T) {
	good := archive.Encode(map[string][]byte{"key": []byte("no state")})
	for name, data := range map[string][]byte{
		"another program's": []byte("{\"offset\": 12}"), "empty": {}, "cut short": good[:len(good)-3], "state": good,
	} {
		t.Run(name, func(t *testing.T) {
			store := &memory{data: map[string][]byte{budgetsKey: data}}
			p := newInstance(t, kept(), &archive.Shared{})
			p.begin(hostWith{stateID, store})
			logged := p.sentences(zapcore.WarnLevel)
			require.Len(t, logged, 1)
			assert.Contains(t, logged[0], "damaged; 0 of their states could be read")
			engines := map[string]*engineLog{"0": {born: noon}}
			p.shows("one:8000", engines)
			assert.InDelta(t, 1.0, p.shows("one:8000", engines, 1).values[budgetLeft], 1e-9)
			p.end()
			saved, err := archive.Decode(store.data[budgetsKey])
			require.NoError(t, err)
			assert.Len(t, saved, 1, "what was damaged is replaced")
		})
	}
}

func TestAStorageThatFailsToReadIsNoReasonNotToStart(t *testing.T) {
	p := newInstance(t, kept(), &archive.Shared{})
	p.begin(hostWith{stateID, &memory{failRead: true}})
	require.Len(t, p.sentences(zapcore.WarnLevel), 1)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "budgets and burn rates start again")
	p.end()
}

func TestAStateOfAnotherThresholdIsNotContinued(t *testing.T) {
	store := &memory{}
	engines := map[string]*engineLog{"0": {born: noon}}
	before := newInstance(t, kept(), &archive.Shared{})
	before.begin(hostWith{stateID, store})
	before.shows("one:8000", engines)
	before.shows("one:8000", engines, 3)
	before.end()

	config := kept()
	config.Objectives[0].Threshold = objective.Duration(5 * time.Second)
	after := newInstance(t, config, &archive.Shared{})
	after.at = before.at
	after.begin(hostWith{stateID, store})
	after.shows("one:8000", engines)
	got := after.shows("one:8000", engines, 1)
	assert.InDelta(t, 1.0, got.values[budgetLeft], 1e-9)
	assert.Equal(t, []string{`objective "ttft": the objective has another threshold than when its state was saved, so its budget starts again`},
		after.sentences(zapcore.WarnLevel))
	after.end()
}

func TestAWriteThatFailsLosesNothing(t *testing.T) {
	store := &memory{failWrite: true}
	p := newInstance(t, kept(), &archive.Shared{})
	p.begin(hostWith{stateID, store})
	engines := map[string]*engineLog{"0": {born: noon}}
	p.shows("one:8000", engines)
	p.shows("one:8000", engines, 1, 3)
	for range 5 {
		p.at = p.at.Add(time.Minute)
		p.objectives().Archive.Save(context.Background())
	}
	require.Len(t, p.sentences(zapcore.WarnLevel), 1)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "cannot save the objectives")
	p.at = p.at.Add(10 * time.Minute)
	p.objectives().Archive.Save(context.Background())
	assert.Len(t, p.sentences(zapcore.WarnLevel), 2, "it is logged again after a while")
	assert.Equal(t, int64(6), p.counted("otelcol_processor_vllm_failed_saves", ""))
	store.set(false)
	p.end()
	assert.True(t, store.closed)
	saved, err := archive.Decode(store.data[budgetsKey])
	require.NoError(t, err)
	assert.Len(t, saved, 1)
}

func TestAStorageThatIsNoneStopsTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		host component.Host
		want string
	}{
		"missing": {componenttest.NewNopHost(), "storage: there is no extension file_storage/state; define it under extensions and list it in service::extensions"},
		"other":   {hostWith{stateID, nopComponent{}}, "storage: the extension file_storage/state stores nothing; write the name of a storage extension"},
		"locked":  {hostWith{stateID, &memory{failOpen: true}}, "storage: the extension file_storage/state cannot be used: locked"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, kept(), &archive.Shared{})
			require.ErrorContains(t, p.vllmProcessor.start(context.Background(), test.host), test.want)
			p.end()
		})
	}
}

func TestObjectivesShutDownWithoutStart(t *testing.T) {
	newInstance(t, kept(), &archive.Shared{}).end()
}

// storedStates are the states of the objectives in a storage.
func storedStates(t *testing.T, store *memory) map[string][]byte {
	t.Helper()
	all, err := archive.Decode(store.data[budgetsKey])
	require.NoError(t, err)
	return all
}

type nopComponent struct{}

func (nopComponent) Start(context.Context, component.Host) error { return nil }
func (nopComponent) Shutdown(context.Context) error              { return nil }

// memory is a storage that can fail on demand. It keeps the contract of the
// real ones: a component gets one client.
type memory struct {
	nopComponent
	mu                            sync.Mutex
	data                          map[string][]byte
	failOpen, failRead, failWrite bool
	closed                        bool
	clients                       int
}

func (m *memory) set(fail bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failWrite = fail
}

func (m *memory) GetClient(_ context.Context, kind component.Kind, id component.ID, _ string) (storage.Client, error) {
	if m.failOpen || kind != component.KindProcessor || id.Type() != metadata.Type {
		return nil, errors.New("locked")
	}
	m.clients++
	return m, nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failRead {
		return nil, errors.New("no disk")
	}
	return m.data[key], nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failWrite {
		return storage.ErrStorageFull
	}
	if m.data == nil {
		m.data = map[string][]byte{}
	}
	m.data[key] = value
	return nil
}

func (m *memory) Delete(context.Context, string) error               { return errors.ErrUnsupported }
func (m *memory) Batch(context.Context, ...*storage.Operation) error { return errors.ErrUnsupported }

func (m *memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
