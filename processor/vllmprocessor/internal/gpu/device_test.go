package gpu

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Times are in seconds after an arbitrary hour.
const (
	second = int64(time.Second)
	minute = 60 * second
	start  = 1_700_000_000 * second
	apart  = 90 * second
)

func at(seconds int64) int64 { return start + seconds*second }

func span(from, to int64) Span { return Span{at(from), at(to)} }

// reading is a reading with some fields.
func reading(device string, values map[Field]float64) Reading {
	var r Reading
	r.Reset(device)
	r.Sharing = Exclusive
	for f, value := range values {
		r.Add(f, value)
	}
	return r
}

// device has the values of one field at some times.
func device(t *testing.T, f Field, points ...[2]float64) *Device {
	t.Helper()
	d := &Device{ID: "GPU-1"}
	for _, p := range points {
		r := reading("GPU-1", map[Field]float64{f: p[1]})
		require.True(t, d.put(at(int64(p[0])), &r, minute))
	}
	return d
}

// 60 s of power limits in 120 s are half of the time, whatever the counter began with.
func TestTheShareOfATimeIsItsIncrease(t *testing.T) {
	t.Parallel()
	d := device(t, PowerTime, [2]float64{0, 1000}, [2]float64{30, 1000}, [2]float64{60, 1015}, [2]float64{90, 1045}, [2]float64{120, 1060})
	was, is, known := d.Limited(ByPower, span(0, 30), span(30, 120), apart)
	require.True(t, known)
	assert.InDelta(t, 0, was, 1e-12)
	assert.InDelta(t, 60.0/90, is, 1e-12)
	share, whole := d.LimitedThroughout(ByPower, span(0, 120), at(60), apart)
	assert.True(t, whole)
	assert.InDelta(t, 0.5, share, 1e-12)
	_, whole = d.LimitedThroughout(ByHeat, span(0, 120), at(60), apart)
	assert.False(t, whole, "a counter that was never there rules nothing out")
}

// A counter was there throughout only with a reading before the span, without a gap or a reset,
// and to its end.
func TestThroughoutMeansThroughout(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		points [][2]float64
		whole  bool
	}{
		"all of it":              {[][2]float64{{-10, 5}, {50, 5}, {110, 5}, {170, 5}, {230, 5}}, true},
		"begins after its start": {[][2]float64{{10, 5}, {50, 5}, {110, 5}, {170, 5}, {230, 5}}, false},
		"ends too early":         {[][2]float64{{-10, 5}, {50, 5}, {110, 5}, {140, 5}}, false},
		"ends just before":       {[][2]float64{{-10, 5}, {50, 5}, {110, 5}, {160, 5}}, true},
		"a gap":                  {[][2]float64{{-10, 5}, {50, 5}, {150, 5}, {230, 5}}, false},
		"a reset":                {[][2]float64{{-10, 5}, {50, 5}, {110, 0}, {170, 0}, {230, 0}}, false},
		"nothing":                {nil, false},
	} {
		d := device(t, ThermalTime, test.points...)
		_, whole := d.LimitedThroughout(ByHeat, span(0, 240), at(120), apart)
		assert.Equal(t, test.whole, whole, name)
	}
}

// What a counter shows after a reset can be of a time long before, and over a gap it is not known
// when it was: neither counts.
func TestResetsAndGapsCountNothing(t *testing.T) {
	t.Parallel()
	d := device(t, MemoryErrors, [2]float64{0, 7}, [2]float64{30, 7}, [2]float64{60, 900}, [2]float64{90, 3}, [2]float64{120, 4})
	number, rate := d.Rate(MemoryErrors, span(0, 120), apart)
	assert.InDelta(t, 893+1, number, 1e-9)
	assert.InDelta(t, 894.0/90, rate, 1e-9, "the time of the reset is not seen")
	d = device(t, MemoryErrors, [2]float64{0, 7}, [2]float64{30, 7}, [2]float64{180, 50})
	number, _ = d.Rate(MemoryErrors, span(0, 180), apart)
	assert.True(t, math.IsNaN(number), "30 s of 180 are not half")
}

// AMD's firmware counts samples: 30 of 200 are 15 %.
func TestResidencyIsAShareOfSamples(t *testing.T) {
	t.Parallel()
	d := &Device{}
	for i, v := range [][2]float64{{0, 0}, {0, 100}, {10, 200}, {30, 300}} {
		r := reading("", map[Field]float64{ThermalResidency: v[0], ResidencyReference: v[1]})
		d.put(at(int64(30*i)), &r, minute)
	}
	was, is, known := d.Limited(ByHeat, span(0, 30), span(30, 90), apart)
	require.True(t, known)
	assert.Zero(t, was)
	assert.InDelta(t, 0.15, is, 1e-12)
}

// Without counters the share of the readings with a reason counts, where there are three.
func TestReasonsAreSharesOfReadings(t *testing.T) {
	t.Parallel()
	d := device(t, ThermalActive, [2]float64{0, 0}, [2]float64{30, 0}, [2]float64{60, 0}, [2]float64{90, 1}, [2]float64{120, 0}, [2]float64{150, 1}, [2]float64{180, 1})
	was, is, known := d.Limited(ByHeat, span(-30, 60), span(60, 180), apart)
	require.True(t, known)
	assert.Zero(t, was)
	assert.InDelta(t, 0.75, is, 1e-12)
	_, _, known = d.Limited(ByHeat, span(-30, 60), span(120, 180), apart)
	assert.False(t, known)
	_, whole := d.LimitedThroughout(ByHeat, span(0, 180), at(90), apart)
	assert.False(t, whole, "readings between two readings are not known")
}

// An idle GPU lowers its clock, which says nothing.
func TestOnlyTheClockAtWorkCounts(t *testing.T) {
	t.Parallel()
	d := &Device{}
	for i, v := range []map[Field]float64{
		{Clock: 300e6, Utilization: 0, IdleActive: 1},
		{Clock: 1900e6, Utilization: 0.9},
		{Clock: 1700e6, Utilization: 1},
		{Clock: 300e6, Utilization: 0.1},
		{Clock: 300e6, Utilization: 1, IdleActive: 1},
		{Clock: 1500e6, IdleActive: 0},
		{Clock: 300e6},
	} {
		r := reading("", v)
		d.put(at(int64(30*i)), &r, minute)
	}
	assert.InDelta(t, 1700e6, d.BusyClock(span(-1, 180)), 1)
	assert.True(t, math.IsNaN(d.BusyClock(span(-1, 60))), "two readings are too few")
}

// A code stays for ever: only its change to one of the memory is an event.
func TestOnlyAChangeOfTheXIDIsAnEvent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		codes []float64
		want  int
	}{
		"the first value":        {[]float64{48, 48, 48}, 0},
		"none":                   {[]float64{0, 0, 0}, 0},
		"a change":               {[]float64{0, 48, 48}, 1},
		"to a code of no memory": {[]float64{0, 13, 13}, 0},
		"and on to one":          {[]float64{0, 13, 94}, 1},
		"twice":                  {[]float64{0, 63, 95}, 2},
		"back to none":           {[]float64{95, 0, 0}, 0},
	} {
		d := &Device{}
		for i, code := range test.codes {
			r := reading("", map[Field]float64{XID: code})
			d.put(at(int64(30*i)), &r, minute)
		}
		assert.Equal(t, test.want, d.MemoryEvents(span(0, 60), apart), name)
	}
	d := device(t, XID, [2]float64{0, 0}, [2]float64{200, 48})
	assert.Zero(t, d.MemoryEvents(span(0, 200), apart), "it is not known when")
}

// A sum of two links cannot be compared with one of eighteen.
func TestSumsOfOtherPartsAreNotCompared(t *testing.T) {
	t.Parallel()
	d := &Device{}
	for i, parts := range []int{1, 1, 3, 3} {
		var r Reading
		r.Reset("")
		for range parts {
			r.Add(LinkErrors, 100)
		}
		d.put(at(int64(30*i)), &r, minute)
	}
	number, _ := d.Rate(LinkErrors, span(0, 90), apart)
	assert.True(t, math.IsNaN(number))
	number, _ = d.Rate(LinkErrors, span(60, 90), apart)
	assert.Zero(t, number)
}

// The order in which readings arrive makes no difference.
func TestReadingsArePlacedByTheirTime(t *testing.T) {
	t.Parallel()
	points := [][2]float64{{0, 1}, {30, 2}, {60, 4}, {90, 8}, {120, 16}}
	in := device(t, PowerTime, points...)
	for _, order := range [][]int{{4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}} {
		d := &Device{ID: "GPU-1"}
		for _, i := range order {
			r := reading("GPU-1", map[Field]float64{PowerTime: points[i][1]})
			require.True(t, d.put(at(int64(points[i][0])), &r, minute))
		}
		assert.Equal(t, in.times, d.times)
		assert.Equal(t, in.columns[PowerTime], d.columns[PowerTime])
	}
}

// A GPU keeps 16 windows of at most four readings, whatever arrives.
func TestADeviceIsBounded(t *testing.T) {
	t.Parallel()
	d := &Device{}
	for i := range int64(10_000) {
		r := reading("", map[Field]float64{Power: float64(i)})
		d.put(at(i), &r, minute)
	}
	assert.LessOrEqual(t, len(d.times), 64)
	assert.InDelta(t, 9999, d.NewestOf(Power, 0), 0)
	r := reading("", map[Field]float64{Power: 1})
	assert.False(t, d.put(at(0), &r, minute), "older than what is kept")
}

// 300 J more at twice the time: the energy of a span is on the line between the readings.
func TestEnergyIsThatOfTheSpan(t *testing.T) {
	t.Parallel()
	d := device(t, Energy, [2]float64{0, 5000}, [2]float64{40, 9000}, [2]float64{80, 21000})
	// From 20 s, 7000 J, to 60 s, 15,000 J.
	assert.InDelta(t, 8000, d.EnergyOf(span(20, 60), apart), 1e-9)
	assert.True(t, math.IsNaN(d.EnergyOf(span(60, 100), apart)), "its end is not known")
	assert.True(t, math.IsNaN(d.EnergyOf(span(-20, 60), apart)), "its start is not known")
	d = device(t, Energy, [2]float64{0, 5000}, [2]float64{40, 100}, [2]float64{80, 200})
	assert.True(t, math.IsNaN(d.EnergyOf(span(20, 60), apart)), "a reset")
}

// A power of 100 W that rises to 300 W within 40 s, and stays: a mean of 200 in these, and of 250 in
// all.
func TestTheMeanIsThatOfTheSpan(t *testing.T) {
	t.Parallel()
	d := device(t, Power, [2]float64{0, 100}, [2]float64{40, 300}, [2]float64{80, 300})
	assert.InDelta(t, 200, d.MeanOf(Power, span(0, 40), apart), 1e-9)
	assert.InDelta(t, 250, d.MeanOf(Power, span(0, 80), apart), 1e-9)
	assert.True(t, math.IsNaN(d.MeanOf(Power, span(0, 90), apart)))
	assert.True(t, math.IsNaN(d.MeanOf(Utilization, span(0, 80), apart)))
	d = device(t, Power, [2]float64{0, 100}, [2]float64{100, 300})
	assert.True(t, math.IsNaN(d.MeanOf(Power, span(0, 100), apart)), "a gap")
}

// fleet is a store with servers.
func fleet(servers map[string]Owner) *Store {
	s := NewStore(time.Minute)
	s.seen.Store(true)
	for key, owner := range servers {
		s.Place(key, owner)
	}
	return s
}

// sends passes readings of one GPU of a workload, and returns what became of them.
func (s *Store) sends(w Workload, seconds int64, readings ...Reading) (matched bool, report Report) {
	m := make([]bool, 1)
	report = s.Observe([]Batch{{Workload: w, Time: at(seconds), Readings: readings}}, at(seconds), m)
	return m[0], report
}

func (s *Store) devicesOf(key string) (ids []string, joined Joined) {
	s.Of(key, func(j *Joined) {
		joined = *j
		for _, d := range j.Devices {
			ids = append(ids, d.ID)
		}
	})
	return ids, joined
}

func TestGPUsBelongToTheirPod(t *testing.T) {
	t.Parallel()
	pod := func(uid, namespace, name, container string) Owner {
		return Owner{PodUID: uid, Namespace: namespace, Pod: name, Container: container}
	}
	for name, test := range map[string]struct {
		server, gpu Owner
		want        bool
	}{
		"the UID":                          {pod("u", "", "", ""), pod("u", "", "", ""), true},
		"the UID, whatever the name":       {pod("u", "a", "b", ""), pod("u", "x", "y", ""), true},
		"another UID, the same name":       {pod("u", "a", "b", ""), pod("v", "a", "b", ""), false},
		"the name, without a UID":          {pod("", "a", "b", ""), pod("u", "a", "b", ""), true},
		"the name, where the GPU has none": {pod("u", "a", "b", ""), pod("", "a", "b", "c"), true},
		"another namespace":                {pod("", "a", "b", ""), pod("", "x", "b", ""), false},
		"another container":                {pod("u", "a", "b", "c"), pod("u", "a", "b", "d"), false},
		"the same container":               {pod("u", "a", "b", "c"), pod("", "a", "b", "c"), true},
		"another cluster":                  {Owner{Cluster: "1", Namespace: "a", Pod: "b"}, Owner{Cluster: "2", Namespace: "a", Pod: "b"}, false},
		"the host":                         {Owner{Host: "h"}, Owner{Host: "h"}, true},
		"the node":                         {Owner{Node: "h"}, Owner{Host: "h"}, true},
		"another host":                     {Owner{Host: "h"}, Owner{Host: "i"}, false},
		"a pod of the host":                {Owner{Host: "h"}, Owner{Host: "h", Pod: "b"}, false},
		"nothing":                          {Owner{}, Owner{}, false},
	} {
		s := fleet(map[string]Owner{"server": test.server, "other": {Pod: "other", Namespace: "other", PodUID: "other", Host: "other"}})
		matched, report := s.sends(Workload{Key: "w", Exporter: "e", Owner: test.gpu}, 0, reading("GPU-1", nil))
		assert.Equal(t, test.want, matched, name)
		ids, joined := s.devicesOf("server")
		if test.want {
			assert.Equal(t, []string{"GPU-1"}, ids, name)
			assert.Equal(t, 1, joined.Servers, name)
			assert.False(t, joined.Ambiguous, name)
			assert.Equal(t, 1, report[Used], name)
			continue
		}
		assert.Empty(t, ids, name)
		assert.Equal(t, 1, report[Unmatched], name)
		assert.Zero(t, s.Devices(), "nothing is kept of %s", name)
	}
}

// Two servers of a pod share its GPUs. Two servers of a host have no GPU that is certainly theirs.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {PodUID: "u"}, "b": {PodUID: "u"}})
	s.sends(Workload{Key: "w", Owner: Owner{PodUID: "u"}}, 0, reading("GPU-1", nil))
	for _, key := range []string{"a", "b"} {
		ids, joined := s.devicesOf(key)
		assert.Equal(t, []string{"GPU-1"}, ids)
		assert.Equal(t, 2, joined.Servers)
	}
	s.Remove("a")
	_, joined := s.devicesOf("b")
	assert.Equal(t, 1, joined.Servers)

	s = fleet(map[string]Owner{"a": {Host: "h"}})
	s.sends(Workload{Key: "w", Owner: Owner{Host: "h"}}, 0, reading("GPU-1", nil))
	_, joined = s.devicesOf("a")
	assert.True(t, joined.Host)
	s.Place("b", Owner{Host: "h"})
	ids, joined := s.devicesOf("a")
	assert.True(t, joined.Ambiguous)
	assert.Empty(t, ids)
	_, report := s.sends(Workload{Key: "w", Owner: Owner{Host: "h"}}, 30, reading("GPU-1", nil))
	assert.Equal(t, 1, report[SeveralServers])
}

// An exporter that reports pods reports idle GPUs without one. They are not those of a server.
func TestIdleGPUsOfANodeAreNobodys(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {Host: "h", PodUID: "u"}})
	matched := make([]bool, 2)
	report := s.Observe([]Batch{
		{Workload: Workload{Key: "node", Exporter: "e", Owner: Owner{Host: "h"}}, Time: at(0), Readings: []Reading{reading("GPU-2", nil)}},
		{Workload: Workload{Key: "w", Exporter: "e", Owner: Owner{Host: "h", PodUID: "u"}}, Time: at(0), Readings: []Reading{reading("GPU-1", nil)}},
	}, at(0), matched)
	assert.Equal(t, []bool{false, true}, matched)
	assert.Equal(t, 1, report[Unmatched])
	ids, joined := s.devicesOf("a")
	assert.Equal(t, []string{"GPU-1"}, ids)
	assert.False(t, joined.Ambiguous)
}

// Partitions and shared GPUs are ambiguous, until they are not.
func TestSharedGPUsAreAmbiguous(t *testing.T) {
	t.Parallel()
	for _, sharing := range []Sharing{Shared, Partitioned} {
		s := fleet(map[string]Owner{"a": {PodUID: "u"}})
		w := Workload{Key: "w", Owner: Owner{PodUID: "u"}}
		shared := reading("GPU-1", map[Field]float64{PowerTime: 1})
		shared.Sharing = sharing
		matched, report := s.sends(w, 0, shared)
		assert.True(t, matched, "its series belong to the pod")
		assert.Equal(t, 1, report[SharedDevice])
		ids, joined := s.devicesOf("a")
		assert.Empty(t, ids)
		assert.True(t, joined.Ambiguous)
		for i := range int64(5) {
			s.sends(w, 30+30*i, reading("GPU-1", nil))
		}
		ids, joined = s.devicesOf("a")
		assert.Equal(t, []string{"GPU-1"}, ids)
		assert.False(t, joined.Ambiguous)
	}
}

// The GPUs that are kept are bounded, and what is forgotten makes room.
func TestTheStoreIsBounded(t *testing.T) {
	t.Parallel()
	owners := map[string]Owner{}
	for i := range 100 {
		owners[strconv.Itoa(i)] = Owner{PodUID: strconv.Itoa(i)}
	}
	s := fleet(owners)
	var all Report
	for i := range 100 {
		readings := make([]Reading, 200)
		for j := range readings {
			readings[j] = reading(strconv.Itoa(i)+"-"+strconv.Itoa(j), map[Field]float64{Power: 1})
		}
		_, report := s.sends(Workload{Key: strconv.Itoa(i), Exporter: strconv.Itoa(i), Owner: Owner{PodUID: strconv.Itoa(i)}}, 0, readings...)
		for o := range report {
			all[o] += report[o]
		}
	}
	assert.Equal(t, mostDevices, s.Devices())
	assert.Equal(t, mostDevices, all[Used])
	assert.Equal(t, 20_000-mostDevices, all[DeviceLimit])
	s.Expire(at(16*60 + 1))
	assert.Zero(t, s.Devices())
	assert.Empty(t, s.workloads)
	assert.Empty(t, s.attributed)
	for key := range owners {
		s.Remove(key)
	}
	assert.Empty(t, s.at)
	assert.Empty(t, s.servers)
}

// A machine whose clock is ahead cannot make readings of the future.
func TestReadingsOfTheFutureAreNotUsed(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {PodUID: "u"}})
	matched := make([]bool, 1)
	b := []Batch{{Workload: Workload{Key: "w", Owner: Owner{PodUID: "u"}}, Time: at(31), Readings: []Reading{reading("GPU-1", nil)}}}
	report := s.Observe(b, at(0), matched)
	assert.Equal(t, 1, report[FutureTime])
	assert.True(t, matched[0], "its series are passed on")
	ids, _ := s.devicesOf("a")
	assert.Empty(t, ids)
	matched[0] = false
	report = s.Observe(b, at(1), matched)
	assert.Equal(t, 1, report[Used])
}

// A GPU that is read under two addresses is one GPU.
func TestAGPUCountsOnce(t *testing.T) {
	t.Parallel()
	s := fleet(map[string]Owner{"a": {PodUID: "u"}})
	s.sends(Workload{Key: "agent", Owner: Owner{PodUID: "u"}}, 0, reading("GPU-1", map[Field]float64{Power: 1}))
	s.sends(Workload{Key: "shard", Owner: Owner{PodUID: "u"}}, 15, reading("GPU-1", map[Field]float64{Power: 2}))
	s.Of("a", func(j *Joined) {
		require.Len(t, j.Devices, 1)
		assert.InDelta(t, 2, j.Devices[0].NewestOf(Power, 0), 0)
	})
}
