package gpu

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Who invents exporters or GPUs of one server takes neither room of other servers nor that of
// GPUs that are kept, and what is kept of it is bounded.
func TestOneServerCannotTakeTheRoomOfOthers(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {PodUID: "a"}, "b": {PodUID: "b"}})
	s.sends(Workload{Key: "honest", Exporter: "e", Owner: Owner{PodUID: "a"}}, 0, reading("GPU-1", nil))
	var all Report
	for i := range 1000 {
		readings := make([]Reading, 100)
		for j := range readings {
			readings[j] = reading(strconv.Itoa(i)+"-"+strconv.Itoa(j), nil)
		}
		name := strconv.Itoa(i)
		matched, report := s.sends(Workload{Key: name, Exporter: name, Owner: Owner{PodUID: "a"}}, 0, readings...)
		assert.True(t, matched, "it is about a server here")
		for o := range report {
			all[o] += report[o]
		}
	}
	assert.Equal(t, 128, s.Devices())
	assert.LessOrEqual(t, len(s.workloads), 16)
	assert.Equal(t, 100_000-127, all[DeviceLimit])
	ids, _ := s.devicesOf("a")
	assert.Equal(t, "GPU-1", ids[0])
	_, report := s.sends(Workload{Key: "honest", Exporter: "e", Owner: Owner{PodUID: "a"}}, 30, reading("GPU-1", nil))
	assert.Equal(t, 1, report[Used])
	_, report = s.sends(Workload{Key: "b", Exporter: "e", Owner: Owner{PodUID: "b"}}, 30, reading("GPU-2", nil))
	assert.Equal(t, 1, report[Used])
	s.Expire(at(30 + 16*60 + 1))
	assert.Empty(t, s.workloads)
	assert.Zero(t, s.Devices())
}

// A time beyond what Unix nanoseconds of 64 bits with a sign can say is one of the future. As an
// old one it would make all true readings late, for as long as they arrive.
func TestATimeBeyondAllTimesIsOfTheFuture(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {PodUID: "u"}})
	w := Workload{Key: "w", Exporter: "e", Owner: Owner{PodUID: "u"}}
	for _, of := range []uint64{math.MaxInt64 + 1, math.MaxUint64} {
		b := []Batch{{Workload: w, Time: int64(of), Readings: []Reading{reading("GPU-1", nil)}}}
		report := s.Observe(b, at(0), make([]bool, 1))
		assert.Equal(t, 1, report[FutureTime])
	}
	_, report := s.sends(w, 0, reading("GPU-1", nil))
	assert.Equal(t, 1, report[Used])
}

// Exporters with times of the future are forgotten as others are, and where there are too many
// the GPUs of a host are not taken for those of its server: the exporter can be one that
// reports pods.
func TestTooManyExportersProveNothing(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {Host: "h", PodUID: "u"}})
	for i := range mostExporters {
		b := []Batch{{
			Workload: Workload{Key: "k", Exporter: strconv.Itoa(i), Owner: Owner{PodUID: "other"}},
			Time:     math.MaxInt64, Readings: []Reading{reading("GPU-9", nil)},
		}}
		s.Observe(b, at(0), make([]bool, 1))
	}
	pod := Workload{Key: "pod", Exporter: "node", Owner: Owner{PodUID: "u"}}
	idle := Workload{Key: "idle", Exporter: "node", Owner: Owner{Host: "h"}}
	s.sends(pod, 0, reading("GPU-1", nil))
	matched, report := s.sends(idle, 0, reading("GPU-2", nil))
	assert.False(t, matched)
	assert.Equal(t, 1, report[Unmatched])
	ids, _ := s.devicesOf("a")
	assert.Equal(t, []string{"GPU-1"}, ids)
	s.Expire(at(16*60 + 1))
	assert.Empty(t, s.attributed)
}

// A counter whose newest value belongs to the first seconds of an excess rules nothing out.
func TestLessThanTheBeginIsNotThroughout(t *testing.T) {
	t.Parallel()
	d := device(t, PowerTime, [2]float64{-10, 5}, [2]float64{5, 5})
	_, whole := d.LimitedThroughout(ByPower, span(0, 80), at(40), apart)
	assert.False(t, whole)
	d = device(t, PowerTime, [2]float64{-10, 5}, [2]float64{5, 5}, [2]float64{41, 5})
	_, whole = d.LimitedThroughout(ByPower, span(0, 80), at(40), apart)
	assert.True(t, whole)
}

// Of two containers with GPUs in a pod, only one can be the server's. Where it is not known which,
// neither GPU is evidence; once the other container has none any more, it is.
func TestTheGPUsOfAnotherContainer(t *testing.T) {
	t.Parallel()
	for container, want := range map[string][]string{"": nil, "vllm": {"GPU-1"}} {
		s := fleet(map[string]Owner{"a": {PodUID: "u", Container: container}})
		send := func(seconds int64, device, in string) {
			s.sends(Workload{Key: in, Exporter: "e", Owner: Owner{PodUID: "u", Container: in}}, seconds, reading(device, nil))
		}
		send(0, "GPU-1", "vllm")
		ids, joined := s.devicesOf("a")
		assert.Equal(t, []string{"GPU-1"}, ids)
		assert.False(t, joined.Ambiguous)
		send(0, "GPU-2", "embedder")
		ids, joined = s.devicesOf("a")
		assert.Equal(t, want, ids)
		assert.Equal(t, container == "", joined.Ambiguous)
		send(90, "GPU-1", "vllm")
		_, joined = s.devicesOf("a")
		assert.Equal(t, container == "", joined.Ambiguous)
		send(91, "GPU-1", "vllm")
		_, joined = s.devicesOf("a")
		assert.False(t, joined.Ambiguous)
	}
}

// Many servers can have one host name, such as "localhost". Two are enough to know that it is
// ambiguous, so the others cost nothing.
//
//nolint:paralleltest // Allocations are counted.
func TestManyServersOfAHostCostNoMoreThanTwo(t *testing.T) {
	owners := map[string]Owner{}
	for i := range 10_000 {
		owners[strconv.Itoa(i)] = Owner{Host: "localhost"}
	}
	s := fleet(owners)
	w := &Workload{Key: "node", Exporter: "e", Owner: Owner{Host: "localhost", Node: "node"}}
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() { s.match(w, at(0)) }), 8.0, "growing a list of 10,000 takes more")
	_, outcome := s.match(w, at(0))
	assert.Equal(t, SeveralServers, outcome)
}
