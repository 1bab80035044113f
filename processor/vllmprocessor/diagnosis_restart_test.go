package vllmprocessor

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// troubles are what a server under steady load begins to do, by the condition that is reported.
var troubles = map[string]func(l *load){
	"healthy":  func(*load) {},
	"degraded": func(l *load) { l.slower() },
	"stalled":  func(l *load) { l.stalled = true },
	"failing":  func(l *load) { l.own = map[string]float64{"vllm.healthy": 0} },
	"idle":     func(l *load) { l.rate = 0 },
}

// The collector restarts while an engine is in some condition: it ends as it should, or is killed a
// minute after the last save. The new one reports the same condition, severity and cause with the
// first scrape, and with each further one. Its log says once that harm goes on, at the level info.
func TestARestartOfTheCollectorContinuesTheDiagnosis(t *testing.T) {
	for condition, begin := range troubles {
		for _, killed := range []bool{false, true} {
			t.Run(condition, func(t *testing.T) {
				folder := t.TempDir()
				server := steady("one:8000", noon)
				first := newInstance(t, remembering(), &archive.Shared{})
				store := &memory{}
				if killed {
					first.begin(hostWith{stateID, store})
				} else {
					first.begin(files(t, folder))
				}
				first.watch(server, 12*time.Minute)
				begin(server)
				first.watch(server, 12*time.Minute)
				if killed {
					first.diagnosis().Archive.Save(t.Context())
					first.diagnosis().Diagnoses.Save(t.Context())
				}
				before := first.watch(server, time.Minute)
				require.Equal(t, 1.0, before["condition="+condition], "%v", before)
				after := newInstance(t, remembering(), &archive.Shared{})
				after.at = server.at
				if killed {
					t.Cleanup(first.end)
					after.begin(hostWith{stateID, &memory{data: maps.Clone(store.data)}})
				} else {
					first.end()
					after.begin(files(t, folder))
				}
				defer after.end()
				server.at = server.at.Add(2 * time.Minute)
				for n := range 40 {
					got := after.diagnoses(server)
					require.Equal(t, before["severity"], got["severity"], "scrape %d: %v", n, got)
					for name, value := range before {
						if value == 1 && (strings.HasPrefix(name, "condition=") || strings.HasPrefix(name, "cause=")) {
							assert.Equal(t, 1.0, got[name], "scrape %d: %s", n, name)
						}
					}
				}
				lines := after.changes()
				if before["severity"] < 2 {
					assert.Empty(t, lines)
					return
				}
				require.Len(t, lines, 1)
				assert.True(t, strings.HasPrefix(lines[0].Message, "diagnosis: as before the collector restarted: "), lines[0].Message)
				assert.Equal(t, zapcore.InfoLevel, lines[0].Level)
				fields := lines[0].ContextMap()
				assert.Equal(t, condition, fields["condition"])
				assert.Equal(t, condition, fields["previous_condition"])
				assert.NotContains(t, fields, "evidence")
			})
		}
	}
}

// An engine that recovers while the collector is away is healthy after the windows that this takes
// without a restart.
func TestAnEngineThatRecoversDuringARestart(t *testing.T) {
	minutes := map[bool]float64{}
	for _, restarts := range []bool{false, true} {
		folder := t.TempDir()
		server := steady("one:8000", noon)
		p := newInstance(t, remembering(), &archive.Shared{})
		p.begin(files(t, folder))
		p.watch(server, 12*time.Minute)
		require.Equal(t, 1.0, p.watch(server.slower(), 12*time.Minute)["condition=degraded"])
		if restarts {
			p.end()
			server.at = server.at.Add(time.Minute)
			p = newInstance(t, remembering(), &archive.Shared{})
			p.begin(files(t, folder))
		}
		server.firstToken = 0.1
		for p.diagnoses(server)["condition=healthy"] != 1 {
			minutes[restarts] += 0.25
			require.Less(t, minutes[restarts], 15.0)
		}
		p.end()
	}
	t.Logf("minutes until healthy, by whether the collector restarted: %v", minutes)
	assert.LessOrEqual(t, minutes[true], minutes[false]+0.25)
}

// A server that restarts while the collector does is judged again.
func TestAServerThatRestartsWithTheCollectorIsJudgedAnew(t *testing.T) {
	folder := t.TempDir()
	server := steady("one:8000", noon)
	before := newInstance(t, remembering(), &archive.Shared{})
	before.begin(files(t, folder))
	before.watch(server, 12*time.Minute)
	require.Equal(t, 1.0, before.watch(server.slower(), 12*time.Minute)["condition=degraded"])
	before.end()
	server.requests, server.firstTokens, server.gaps, server.firstToken = 0, 0, 0, 0.1
	server.at = server.at.Add(time.Minute)
	after := newInstance(t, remembering(), &archive.Shared{})
	after.begin(files(t, folder))
	defer after.end()
	assert.Equal(t, 1.0, after.diagnoses(server)["condition=unknown"])
	assert.Equal(t, 1.0, after.watch(server, 5*time.Minute)["condition=healthy"])
	assert.Empty(t, after.changes())
}

// A diagnosis is as old as a server that is silent may be. It is given to no server that comes back
// while the collector runs.
func TestADiagnosisIsForASilenceThatIsShort(t *testing.T) {
	for away, want := range map[time.Duration]string{4 * time.Minute: "condition=degraded", 6 * time.Minute: "condition=unknown"} {
		folder := t.TempDir()
		server := steady("one:8000", noon)
		before := newInstance(t, remembering(), &archive.Shared{})
		before.begin(files(t, folder))
		before.watch(server, 12*time.Minute)
		before.watch(server.slower(), 12*time.Minute)
		before.end()
		server.at = server.at.Add(away)
		after := newInstance(t, remembering(), &archive.Shared{})
		after.at = server.at
		after.begin(files(t, folder))
		assert.Equal(t, 1.0, after.diagnoses(server)[want], away)
		gone := server.scrape()
		markEnds(gone)
		after.at = server.at
		_, err := after.process(t.Context(), gone)
		require.NoError(t, err)
		assert.NotContains(t, after.diagnoses(server), "condition=degraded", "it has left and come back")
		after.end()
	}
}

// What is stored of diagnoses may be damaged, or of another version. Then the engines are judged again from the start.
func TestDiagnosesThatCannotBeReadAreJudgedAnew(t *testing.T) {
	good := archive.Encode(map[string][]byte{"key": []byte("no state")})
	for name, data := range map[string][]byte{
		"another program's": []byte("{\"offset\": 12}"), "empty": {}, "cut short": good[:len(good)-3], "no diagnosis": good,
		"another form": archive.Encode(map[string][]byte{"key": []byte(`{"diagnosis":7,"at":1772366407000000000,"verdict":{"condition":3}}`)}),
	} {
		t.Run(name, func(t *testing.T) {
			store := &memory{data: map[string][]byte{"diagnoses.1": data}}
			p := newInstance(t, remembering(), &archive.Shared{})
			p.begin(hostWith{stateID, store})
			logged := p.sentences(zapcore.WarnLevel)
			require.Len(t, logged, 1)
			assert.Contains(t, logged[0], "the saved diagnoses are damaged; 0 of them could be read")
			require.Equal(t, 1.0, p.watch(steady("one:8000", noon), 8*time.Minute)["condition=healthy"])
			p.end()
			saved, err := archive.Decode(store.data["diagnoses.1"])
			require.NoError(t, err)
			require.Len(t, saved, 1, "what was damaged is replaced")
			for _, state := range saved {
				assert.Less(t, len(state), 1000, "as the README says")
			}
		})
	}
}

// An engine that becomes slow right after the collector has restarted is judged by what was usual
// before, with the times of steps at its load.
func TestSlownessRightAfterARestartIsSeen(t *testing.T) {
	folder := t.TempDir()
	server := steady("one:8000", noon)
	before := newInstance(t, remembering(), &archive.Shared{})
	before.begin(files(t, folder))
	require.Equal(t, 1.0, before.watch(server, 12*time.Minute)["condition=healthy"])
	before.end()

	server.at = server.at.Add(time.Minute)
	server.gap = 0.06
	after := newInstance(t, remembering(), &archive.Shared{})
	after.begin(files(t, folder))
	reported := after.watch(server, 5*time.Minute)
	assert.Equal(t, 1.0, reported["condition=degraded"], "%v", reported)
	assert.Equal(t, 1.0, reported["cause=slow_steps"], "%v", reported)
	require.NotEmpty(t, after.changes())
	assert.Equal(t, "baseline", after.changes()[0].ContextMap()["reference"])
	after.end()

	fresh := newInstance(t, remembering(), &archive.Shared{})
	fresh.begin(files(t, t.TempDir()))
	unknowing := steady("one:8000", noon)
	unknowing.gap = 0.06
	assert.Equal(t, 1.0, fresh.watch(unknowing, 5*time.Minute)["condition=healthy"], "60 ms is usual where nothing else is known")
	fresh.end()
}

// The collector restarts at any time of a story of troubles, which it reports as one that does not
// restart. While the engine does what it did for eight windows before, each severity is the same. What
// begins after it is found within five windows of the other one.
func TestARestartAtAnyTimeReportsTheSame(t *testing.T) {
	names := slices.Sorted(maps.Keys(troubles))
	const windows = 4 // A window has four scrapes.
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 17))
		var story []string
		for range 3 {
			story = append(story, slices.Repeat([]string{names[random.IntN(len(names))]}, 12+random.IntN(40))...)
		}
		begin, gap := random.IntN(len(story)), random.IntN(16)
		var severities [2][]float64
		for i := range severities {
			folder, server := t.TempDir(), steady("one:8000", noon)
			p := newInstance(t, remembering(), &archive.Shared{})
			p.begin(files(t, folder))
			p.watch(server, 12*time.Minute)
			for n, name := range story {
				server.rate, server.firstToken, server.stalled, server.own, server.waiting = 1, 0.1, false, nil, 0
				troubles[name](server)
				if i == 1 && n == begin {
					p.end()
					p = newInstance(t, remembering(), &archive.Shared{})
					p.begin(files(t, folder))
				}
				if i == 1 && n >= begin && n < begin+gap {
					server.scrape()
					severities[i] = append(severities[i], -1)
					continue
				}
				severities[i] = append(severities[i], max(p.diagnoses(server)["severity"], 1)) // Notices may differ.
			}
			p.end()
		}
		for n := begin + gap; n < len(story); n++ {
			same := begin >= 8*windows && !slices.ContainsFunc(story[max(begin-8*windows, 0):n], func(name string) bool { return name != story[n] })
			near := severities[0][max(n-5*windows, 0):min(n+5*windows+1, len(story))]
			if same {
				near = severities[0][n : n+1]
			}
			require.Contains(t, near, severities[1][n], "seed %d: %s at %d, away from %d for %d\n%v\n%v", seed, story[n], n, begin, gap, severities[0], severities[1])
		}
	}
}
