package scale

import (
	"slices"
	"time"
)

const (
	sampleEvery   = time.Second
	progressEvery = 15 * time.Second
)

// sample is what a process has used so far.
type sample struct {
	// At is seconds after the beginning of the run.
	At     float64 `json:"at"`
	Member int     `json:"member"`
	Life   int     `json:"life"`
	// CPU is the processor time since the start of the process in seconds, Resident and Peak the
	// resident memory in bytes, now and at most.
	CPU      float64 `json:"cpu"`
	Resident float64 `json:"resident"`
	Peak     float64 `json:"peak"`
}

// look samples all members now and then.
func (r *run) look() {
	if time.Since(r.sampled) < sampleEvery {
		return
	}
	progress := int(time.Since(r.began)/progressEvery) != int(r.sampled.Sub(r.began)/progressEvery)
	r.sampled = time.Now()
	for _, m := range r.members {
		r.sample(m)
	}
	if progress {
		taken := r.backend.Taken()
		r.say("the backend has %d requests with %d MB", taken.Requests, taken.Bytes>>20)
	}
}

// sample reads what a member has used.
func (r *run) sample(m *member) {
	if m.process == nil {
		return
	}
	used, err := m.process.Use()
	if err != nil {
		return // It has ended.
	}
	r.samples = append(r.samples, sample{
		At: time.Since(r.began).Seconds(), Member: m.number, Life: m.life.number,
		CPU: used.CPU.Seconds(), Resident: float64(used.Resident), Peak: float64(used.Peak),
	})
}

// usage is what a member has used in a part of the run.
type usage struct {
	Action string `json:"action"`
	Member int    `json:"member"`
	// Targets is the most targets that a process of it had in this part.
	Targets int `json:"targets"`
	// Cores is the processor time of a second in seconds, MostCores that of the busiest ten
	// seconds.
	Cores     float64 `json:"cores"`
	MostCores float64 `json:"most_cores"`
	// Resident is the median of the resident memory in bytes, Peak the most.
	Resident float64 `json:"resident"`
	Peak     float64 `json:"peak"`
}

// busiest is the time over which the greatest use of the processor is taken.
const busiest = 10.0

// used sums up the samples of a member between two times.
func used(samples []sample, member int, from, to float64) (u usage, ok bool) {
	u.Member = member
	var resident []float64
	type step struct{ at, cpu float64 }
	var steps []step
	sum, last := 0.0, sample{}
	for _, s := range samples {
		if s.Member != member || s.At < from || s.At > to {
			continue
		}
		if s.Life == last.Life && last.At > 0 {
			sum += s.CPU - last.CPU
		} else if len(resident) > 0 {
			sum += s.CPU // A new process.
		}
		last = s
		steps = append(steps, step{s.At, sum})
		resident = append(resident, s.Resident)
		u.Peak = max(u.Peak, s.Resident)
	}
	if len(steps) < 2 {
		return u, false
	}
	if wall := steps[len(steps)-1].at - steps[0].at; wall > 0 {
		u.Cores = sum / wall
	}
	from0 := 0
	for i := range steps {
		for steps[i].at-steps[from0].at > busiest {
			from0++
		}
		if wall := steps[i].at - steps[from0].at; wall >= busiest/2 {
			u.MostCores = max(u.MostCores, (steps[i].cpu-steps[from0].cpu)/wall)
		}
	}
	slices.Sort(resident)
	u.Resident = resident[len(resident)/2]
	return u, true
}
