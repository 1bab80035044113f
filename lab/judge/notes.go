package judge

import (
	"fmt"
	"math"
)

// notes are sentences about what a story cannot show because of its requests. The lines are
// filled.
func (p *player) notes() []string {
	var out []string
	for i, one := range p.servers {
		if n := one.truth.join.dropped; n > 0 {
			out = append(out, fmt.Sprintf("server %d: %d requests were not compared, because it fell more than %d requests "+
				"behind what it would have served without the injections; minutes without enough requests are not judged", i, n, mostOpen))
		}
		if _, requests, _ := p.counted(i, 0, math.Inf(1)); requests == 0 {
			out = append(out, fmt.Sprintf("server %d: no minute is judged, because no request counts: "+
				"none arrives before the end of the story, or none is in all runs that are compared", i))
		}
	}
	for i := range p.story.Injections {
		in := &p.story.Injections[i]
		if in.Effect == 0 {
			continue
		}
		minutes, requests, judged := p.counted(soughtOn(in), in.At+in.Over, in.End())
		// With fewer requests in all, nothing was sought and a note says so.
		if requests >= leastInAMean && 2*judged < minutes {
			out = append(out, fmt.Sprintf("effect of %s: %d of %d minutes in which it is in force have fewer than %d requests and are not judged; "+
				"more requests must arrive", in.Parameter, minutes-judged, minutes, leastInAMean))
		}
	}
	return out
}

// counted returns how many minutes of a server are between two times, also in part, the
// requests that count in them, and how many of the minutes are judged.
func (p *player) counted(server int, from, until float64) (minutes, requests, judged int) {
	for i := range p.out.Lines {
		line := &p.out.Lines[i]
		at := float64(line.Minute) * minuteSeconds
		if line.Server != server || at+minuteSeconds <= from || at >= until {
			continue
		}
		minutes++
		requests += line.Requests
		if line.Requests >= leastInAMean {
			judged++
		}
	}
	return minutes, requests, judged
}

// note says where a search did not find what was asked for.
func (r *found) note(in *Injection) string {
	switch ratio := r.got / in.Effect; {
	case r.few:
		return fmt.Sprintf("the value of %s was not sought: %d requests arrive while it is in force, and %d are needed; %.6g was taken",
			in.Parameter, r.requests, leastInAMean, r.value)
	case r.got == 0:
		return fmt.Sprintf("no value of %s was found that does harm; the last that was tried, %.6g, was taken", in.Parameter, r.value)
	case ratio < 1/sparse || ratio > sparse:
		return fmt.Sprintf("no value of %s was found whose harm is %g times the bar; the nearest is %.6g, whose harm is %.3g times the bar",
			in.Parameter, in.Effect, r.value, r.got)
	}
	return ""
}
