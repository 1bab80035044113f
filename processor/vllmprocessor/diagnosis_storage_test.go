package vllmprocessor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// remembering is a configuration with a diagnosis that keeps its baselines.
func remembering() *Config {
	config := createDefaultConfig().(*Config)
	config.Storage = &stateID
	return config
}

// slower makes first tokens take 0.5 s: five times as long as usual, but well
// within the 2 s that harm where nothing has been learned.
func (l *load) slower() *load {
	l.firstToken = 0.5
	return l
}

// continues reports whether a processor knows from before that 0.1 s is usual.
func (i *instance) continues(l *load) bool {
	i.t.Helper()
	return i.watch(l.slower(), 4*time.Minute)["condition=degraded"] == 1
}

func TestARestartOfTheCollectorContinuesWithTheBaseline(t *testing.T) {
	folder := t.TempDir()
	server := steady("one:8000", noon)
	before := newInstance(t, remembering(), &archive.Shared{})
	before.begin(files(t, folder))
	require.Equal(t, 1.0, before.watch(server, 8*time.Minute)["condition=healthy"])
	before.end()

	server.at = server.at.Add(10 * time.Minute)
	after := newInstance(t, remembering(), &archive.Shared{})
	after.begin(files(t, folder))
	assert.True(t, after.continues(server))
	after.end()

	fresh := newInstance(t, remembering(), &archive.Shared{})
	fresh.begin(files(t, t.TempDir()))
	assert.False(t, fresh.continues(steady("one:8000", noon)), "what is slow is not known without a baseline")
	fresh.end()
}

func TestAServerThatComesBackContinuesWithItsBaseline(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	server, other := steady("one:8000", noon), steady("other:8000", noon)
	p.watch(server, 8*time.Minute)
	other.at = server.at
	p.watch(other, 30*time.Minute)
	require.Len(t, p.resources, 1, "the first is forgotten")
	server.at = other.at
	assert.True(t, p.continues(server))
	p.end()
}

// An engine that leaves a server and comes back is the same engine.
func TestAnEngineThatComesBackContinuesWithItsBaseline(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	server := steady("one:8000", noon)
	p.watch(server, 8*time.Minute)
	gone := server.scrape()
	markEnds(gone)
	p.at = server.at
	_, err := p.process(t.Context(), gone)
	require.NoError(t, err)
	assert.True(t, p.continues(server))
	p.end()
}

func TestABaselineIsForgottenAfterAWeek(t *testing.T) {
	for age, want := range map[time.Duration]bool{6 * 24 * time.Hour: true, 8 * 24 * time.Hour: false} {
		store, server := &memory{}, steady("one:8000", noon)
		before := newInstance(t, remembering(), &archive.Shared{})
		before.begin(hostWith{stateID, store})
		before.watch(server, 8*time.Minute)
		before.end()

		server.at = server.at.Add(age)
		after := newInstance(t, remembering(), &archive.Shared{})
		after.at = server.at
		after.begin(hostWith{stateID, store})
		assert.Equal(t, want, after.continues(server), age)
		after.end()
	}
}

func TestBaselinesThatCannotBeReadAreLearnedAnew(t *testing.T) {
	good := archive.Encode(map[string][]byte{"key": []byte("no state")})
	for name, data := range map[string][]byte{
		"another program's": []byte("{\"offset\": 12}"), "empty": {}, "cut short": good[:len(good)-3], "no baseline": good,
		"another version": archive.Encode(map[string][]byte{"key": []byte(`{"version":99,"signals":24,"baseline":{}}`)}),
		"no numbers":      archive.Encode(map[string][]byte{"key": []byte(`{"version":1,"signals":24,"baseline":null}`)}),
	} {
		t.Run(name, func(t *testing.T) {
			store := &memory{data: map[string][]byte{"baselines.1": data}}
			p := newInstance(t, remembering(), &archive.Shared{})
			p.begin(hostWith{stateID, store})
			logged := p.sentences(zapcore.WarnLevel)
			require.Len(t, logged, 1)
			assert.Contains(t, logged[0], "the saved baselines are damaged; 0 of them could be read")
			require.Equal(t, 1.0, p.watch(steady("one:8000", noon), 8*time.Minute)["condition=healthy"])
			p.end()
			saved, err := archive.Decode(store.data["baselines.1"])
			require.NoError(t, err)
			require.Len(t, saved, 1, "what was damaged is replaced")
			for _, state := range saved {
				assert.Less(t, len(state), 4000, "as the README says, about 3 kB")
				assert.Greater(t, len(state), 1500)
			}
		})
	}
}

func TestAStorageThatFailsIsNoReasonNotToDiagnose(t *testing.T) {
	p := newInstance(t, remembering(), &archive.Shared{})
	p.begin(hostWith{stateID, &memory{failRead: true, failWrite: true}})
	require.Len(t, p.sentences(zapcore.WarnLevel), 2)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[0], "the diagnosis learns again what is usual")
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[1], "all engines are judged again from the start")
	assert.Equal(t, 1.0, p.watch(steady("one:8000", noon), 8*time.Minute)["condition=healthy"])
	p.diagnosis().Archive.Save(context.Background())
	p.diagnosis().Diagnoses.Save(context.Background())
	require.Len(t, p.sentences(zapcore.WarnLevel), 4)
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[2], "cannot save the baselines of the diagnosis")
	assert.Contains(t, p.sentences(zapcore.WarnLevel)[3], "cannot save the diagnoses of engines")
	assert.Equal(t, int64(2), p.counted("otelcol_processor_vllm_failed_saves", ""))
	p.end()
}

func TestBaselinesOfServersThatAreGoneAreBounded(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{Limit: 2})
	p.begin(componenttest.NewNopHost())
	at := noon
	for n := range 3 {
		server := steady(fmt.Sprintf("%d:8000", n), at)
		p.watch(server, 8*time.Minute)
		at = server.at
	}
	last := steady("last:8000", at)
	p.watch(last, 10*time.Minute)
	assert.Equal(t, int64(1), p.counted("otelcol_processor_vllm_dropped_states", ""))
	last.instance, last.began, last.requests, last.firstTokens, last.gaps = "0:8000", false, 0, 0, 0
	assert.False(t, p.continues(last), "the oldest is the one that is forgotten")
	p.end()
}

// Objectives and baselines are in one storage.
func TestObjectivesAndBaselinesShareAStorage(t *testing.T) {
	folder := t.TempDir()
	config := kept()
	config.Diagnosis.Enabled = true
	server := steady("one:8000", noon)
	before := newInstance(t, config, &archive.Shared{})
	before.begin(files(t, folder))
	before.watch(server, 8*time.Minute)
	before.end()
	after := newInstance(t, config, &archive.Shared{})
	after.begin(files(t, folder))
	logged := strings.Join(after.sentences(zapcore.InfoLevel), "\n")
	assert.Contains(t, logged, "objectives continue where they were saved")
	assert.Contains(t, logged, "the diagnosis continues with the saved baselines")
	after.end()
}
