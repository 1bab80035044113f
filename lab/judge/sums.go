package judge

// sums has the sums of the same requests in each run, and without a queue, by the nominal
// run.
type sums struct {
	in    []sum
	alone sum
}

func newSums(runs int) sums { return sums{in: make([]sum, runs)} }

// add takes a request: what became of it in each run, and what it takes alone, if known.
func (g *sums) add(in []*seen, alone *seen) {
	for i, s := range in {
		g.in[i].add(s)
	}
	if alone != nil {
		g.alone.add(alone)
	}
}

// minute has the requests of one minute: all of them, and those of each engine.
//
// The engine is that of the actual run: the diagnosis of an engine is about the requests
// that it has, and without a fault another one might have had them.
type minute struct {
	sums
	engines []sums
}

func (m *minute) add(in []*seen, alone *seen) {
	m.sums.add(in, alone)
	for len(m.engines) <= in[actual].engine {
		m.engines = append(m.engines, newSums(len(in)))
	}
	m.engines[in[actual].engine].add(in, alone)
}

// effect is the harm to all requests or to those of the worst engine, the larger, without
// what the nominal run has already.
func (m *minute) effect(objectives []objective) float64 {
	out := assess(&m.in[actual], &m.in[nominal], objectives).effect()
	for i := range m.engines {
		g := &m.engines[i]
		out = max(out, assess(&g.in[actual], &g.in[nominal], objectives).effect())
	}
	return out
}
