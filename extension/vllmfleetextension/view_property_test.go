package vllmfleetextension

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// randomEngine has any state that a processor can tell. Most of a fleet is well most of the time.
func randomEngine(r *rand.Rand, server, processor, rank int, now time.Time, trouble float64) fleet.Engine {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	condition := "healthy"
	if r.Float64() < trouble {
		condition = one("idle", "degraded", "critical", "starting", "failing", "stalled", "stalled", "unreachable", "unreachable")
	}
	return says(fmt.Sprint(server), condition, func(e *fleet.Engine) {
		e.Key = fmt.Sprint(server, processor, rank)
		e.Model, e.Pod = one("m", "m", "m", "n"), fmt.Sprint("pod-", server%7)
		e.Since = now.Add(-time.Duration(r.IntN(300)) * time.Second)
		e.Read, e.Resumed = r.IntN(12) > 0, r.IntN(12) == 0
		if r.IntN(10) == 0 {
			e.Failure = one("", "timeout")
		}
		e.Interval = time.Duration(r.IntN(3)) * 5 * time.Second
		e.At = now.Add(-time.Duration(r.IntN(12)) * time.Second)
		if e.Arrived = e.At; r.IntN(8) == 0 {
			e.Arrived = now.Add(-time.Hour)
		}
	})
}

// plain is what the rules say of a server, in the order of the issue and without the code of the view.
type plain struct {
	heard, lost, read             bool // heard of now; not readable now; read before
	mayRefuse, mustRefuse, mayDie bool
	model                         string
}

func judge(engines []fleet.Engine, now time.Time) (p plain) {
	p.lost, p.mayDie = true, true
	certain := func(e *fleet.Engine) bool { return e.Read && !e.Resumed }
	var gone, stands bool
	for i := range engines {
		e := &engines[i]
		two := 2 * e.Interval
		if two == 0 {
			two = 2 * time.Minute // The window is a minute.
		}
		if e.Read && (now.Sub(e.Arrived) > two || now.Sub(e.At) > two+30*time.Second) { // Of one never read there are no data.
			p.mayDie = false
			continue
		}
		if !p.heard {
			p.model = e.Model
		}
		p.heard = true
		p.lost = p.lost && e.Read && (e.Failure != "" || e.Condition == "unreachable")
		p.read = p.read || e.Read
		stands = stands || certain(e) && (e.Condition == "stalled" || e.Condition == "failing")
		gone = gone || certain(e) && e.Condition == "unreachable" && e.Failure != "" && now.Sub(e.Since) >= two
		p.mayDie = p.mayDie && certain(e) && e.Condition == "stalled"
	}
	p.lost = p.lost && p.read
	p.mayRefuse, p.mustRefuse = stands || gone && p.lost, stands
	return p
}

// Whatever processors tell, in whatever order, probes keep the rules: only what is certain takes a server out, at most a share
// of a pool is out, places do not move, none stays free, and a collector that has lost most servers takes none out for that.
func TestProbesKeepTheRules(t *testing.T) {
	const share = 30
	refusals, deaths, limits := 0, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 42))
		now, before, servers, trouble := noon, map[string]bool{}, 1+r.IntN(25), r.Float64()
		told := map[int][][]fleet.Engine{} // by server: of each processor
		for step := range 15 {
			now = now.Add(time.Duration(r.IntN(4)) * time.Second)
			for server := range servers {
				if r.IntN(20) == 0 {
					delete(told, server)
				}
				if told[server] == nil || r.IntN(4) == 0 {
					told[server] = make([][]fleet.Engine, 2)
					for processor := range told[server] {
						for rank := range r.IntN(3) {
							told[server][processor] = append(told[server][processor], randomEngine(r, server, processor, rank, now, trouble))
						}
					}
				}
			}
			known, of := map[string]*fleet.Snapshot{"a": {Window: time.Minute}, "b": {Window: time.Minute}}, map[string]plain{}
			pool, all, allLost, poolLost := map[string]int{}, 0, 0, map[string][2]int{}
			for server := range servers {
				if both := told[server]; len(both) == 0 || len(both[0])+len(both[1]) == 0 {
					continue
				}
				known["a"].Engines = append(known["a"].Engines, told[server][0]...)
				known["b"].Engines = append(known["b"].Engines, told[server][1]...)
				p := judge(append(append([]fleet.Engine{}, told[server][0]...), told[server][1]...), now)
				of[fmt.Sprint("resource of ", server)] = p
				if !p.heard {
					continue
				}
				pool[p.model]++
				if counts := poolLost[p.model]; p.lost {
					all, allLost, poolLost[p.model] = all+1, allLost+1, [2]int{counts[0] + 1, counts[1] + 1}
				} else if p.read {
					all, poolLost[p.model] = all+1, [2]int{counts[0] + 1, counts[1]}
				}
			}
			v := newView(now, known, share/100.0, before)
			refused := map[string]int{}
			for _, s := range v.servers {
				p, where := of[s.key], fmt.Sprintf("seed %d, step %d, %s: %+v", seed, step, s.key, of[s.key])
				if s.refused {
					require.True(t, p.mayRefuse, where)
					refused[p.model]++
					refusals++
					if !p.mustRefuse {
						require.LessOrEqual(t, 2*allLost, all, where)
						require.LessOrEqual(t, 2*poolLost[p.model][1], poolLost[p.model][0], where)
					}
				}
				if s.dead {
					require.True(t, p.mayDie && s.refused, where)
					deaths++
				}
			}
			for model, n := range refused {
				require.LessOrEqual(t, n*100, max(100, share*pool[model]), "seed %d, step %d, %d of %d", seed, step, n, pool[model])
			}
			for _, s := range v.servers {
				if p := of[s.key]; p.mustRefuse && !s.refused {
					limits++
					require.Greater(t, 100*(refused[p.model]+1), max(100, share*pool[p.model]), "seed %d, step %d: a place is free", seed, step)
					if before[s.key] { // Only one that was refused as well can have its place.
						for _, other := range v.servers {
							require.False(t, other.refused && of[other.key].model == p.model && !before[other.key], "seed %d, step %d: the place has moved", seed, step)
						}
					}
				}
				for _, name := range []string{s.engines[0].Server, s.engines[0].Pod} {
					if got := v.probe(name, true); !got.Serve {
						require.True(t, of["resource of "+got.Server].mayDie, "seed %d, step %d, %s", seed, step, name)
					}
				}
			}
			before = v.refusedServers()
		}
	}
	require.Greater(t, min(refusals, deaths, limits), 100, "it did see what it is about")
}
