package judge

// join brings together what became of each request in all runs of a server, and adds up the
// requests that all runs have, by the minute in which they arrived in the first one.
type join struct {
	runs    int
	open    map[key]*joined
	minutes []minute
	// alone is what a request takes on the idle nominal server.
	alone func(*seen) seen
	// until bounds the arrivals that count; 0 for all.
	until float64
	// most is how many requests are kept in open, dropped how many were not for that.
	most, dropped int
}

// mostOpen is how many requests are kept that some run does not have yet. A closed loop whose
// server is slow falls behind the nominal one for as long as the fault lasts: 64 clients by
// 13,000 requests in 40 minutes.
const mostOpen = 1_000_000

// joined is what is known of one request; nil where a run has not ended it.
type joined struct{ in []*seen }

// The first runs of a join. Where nothing was injected they are the same.
const (
	actual  = 0
	nominal = 1
)

func newJoin(runs int, alone func(*seen) seen) *join {
	return &join{runs: runs, open: map[key]*joined{}, alone: alone, most: mostOpen}
}

// add takes what became of a request in a run.
func (j *join) add(run int, s *seen) {
	if j.runs == 1 {
		j.count([]*seen{s})
		return
	}
	o := j.open[s.key]
	if o == nil {
		if len(j.open) >= j.most {
			j.dropped++
			return
		}
		o = &joined{make([]*seen, j.runs)}
		j.open[s.key] = o
	}
	o.in[run] = s
	for _, one := range o.in {
		if one == nil {
			return
		}
	}
	delete(j.open, s.key)
	j.count(o.in)
}

// count adds a request that all runs have. One that was refused is not served anywhere.
func (j *join) count(in []*seen) {
	for _, s := range in {
		if s.refused {
			return
		}
	}
	if j.until > 0 && in[actual].arrived >= j.until {
		return
	}
	n := int(in[actual].arrived / minuteSeconds)
	for len(j.minutes) <= n {
		j.minutes = append(j.minutes, minute{sums: newSums(j.runs)})
	}
	var alone *seen
	if j.alone != nil {
		one := j.alone(in[min(nominal, j.runs-1)])
		alone = &one
	}
	j.minutes[n].add(in, alone)
}

// forget drops requests that can never be in all runs: those that some run neither has, as
// its has reports, nor had before now.
func (j *join) forget(has []func(key) bool, before float64) {
	for k, o := range j.open {
		for run, s := range o.in {
			if s == nil && o.arrived() < before && !has[run](k) {
				delete(j.open, k)
				break
			}
		}
	}
}

// forgetProcesses drops requests of the processes before the present one: what they had under
// way has ended in all runs.
func (j *join) forgetProcesses(present int) {
	for k := range j.open {
		if k.epoch < present {
			delete(j.open, k)
		}
	}
}

func (o *joined) arrived() float64 {
	for _, s := range o.in {
		if s != nil {
			return s.arrived
		}
	}
	return 0
}

// at returns a minute, which is empty where no request counts.
func (j *join) at(n int) *minute {
	if n < len(j.minutes) {
		return &j.minutes[n]
	}
	return &minute{sums: newSums(j.runs)}
}

// minuteSeconds is the length of a minute.
const minuteSeconds = 60.0
