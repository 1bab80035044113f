package pools

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

const (
	// sameRequests is the share by which the rates of requests at a gateway and at the engines may
	// differ. Beyond it they did not see the same requests.
	sameRequests = 0.2
	// noise is the share of the engines' time, and leastNoise the seconds, by which a gateway may seem
	// faster than the engines: both are read at other moments.
	noise, leastNoise = 0.05, 0.01
)

// asked is what a gateway measured of the requests for a model.
type asked struct {
	number  int
	model   string
	times   [derive.NumGateways][derive.NumUntil]derive.Parts
	current bool
	// lasts is the time up to which the times count.
	lasts int64
}

// sameTime is for how many windows of a gateway or an engine its newest times count. Something later is
// compared with what the others do now. Windows are at least as long as the time between two scrapes.
const sameTime = 1.25

func lasts(arrived int64, window float64) int64 { return arrived + int64(sameTime*window*1e9) }

// Delay is what the gateways before a pool add to the time of a request until its first token.
type Delay struct {
	// Gateway is what they add and Engines what the engines need, in seconds. Rate is the requests
	// per second.
	Gateway, Engines, Rate float64
}

// ask reads a model of a gateway. Where it is late in this batch, it keeps its last values.
func (r *replica) ask(v *window.View) {
	g := v.Group()
	a := r.asks(g.Number)
	// The server knows the target by its name.
	if a.model = g.Value("target_model_name"); a.model == "" {
		a.model = g.Value("model_name")
	}
	a.current, a.lasts = true, lasts(r.arrived, v.Elapsed)
	for kind := range derive.NumGateways {
		for until := range derive.NumUntil {
			if is := kind.Times(v, until); is.Reason != derive.Pending {
				a.times[kind][until] = is
			}
		}
	}
}

func (r *replica) asks(number int) *asked {
	for _, a := range r.asked {
		if a.number == number {
			return a
		}
	}
	a := &asked{number: number}
	r.asked = append(r.asked, a)
	return a
}

// compareGateways compares the gateways with the engines of each pool. The requests for a model
// belong to a pool only where no other pool serves it.
func (p *Totals) compareGateways(now int64) {
	clear(p.delays)
	clear(p.serves)
	for _, g := range p.all {
		if g == nil {
			continue
		}
		g.asked, g.shared, g.delay = [derive.NumGateways][derive.NumUntil]derive.Parts{}, false, [derive.NumUntil]float64{math.NaN(), math.NaN()}
		for _, s := range g.servers {
			for _, e := range s {
				if now > e.lasts {
					for _, part := range p.table.times {
						e.parts[part].Reason = derive.Missing
					}
				}
				switch other := p.serves[e.model]; {
				case e.model == "":
				case other != nil && other != g:
					g.shared, other.shared = true, true
				default:
					p.serves[e.model] = g
				}
			}
		}
	}
	for _, r := range p.servers {
		for _, a := range r.asked {
			if g := p.serves[a.model]; g != nil && now <= a.lasts {
				g.ask(a)
			}
		}
	}
	for _, g := range p.all {
		if g == nil || g.shared {
			continue
		}
		for until := range derive.NumUntil {
			p.compareGateway(g, until)
		}
	}
}

func (g *group) ask(a *asked) {
	for kind := range derive.NumGateways {
		for until := range derive.NumUntil {
			if is := &a.times[kind][until]; is.Reason == derive.OK {
				g.asked[kind][until].Numerator += is.Numerator
				g.asked[kind][until].Denominator += is.Denominator
			}
		}
	}
}

// compareGateway sets what the gateways add to a time of a pool's requests; the outermost gateway
// has the longest time.
func (p *Totals) compareGateway(g *group, until derive.Until) {
	engines, has, defective := g.total(p.table.times[until])
	at, reason := engines.Divide()
	if !has || defective || reason != derive.OK {
		return
	}
	for kind := range derive.NumGateways {
		gateway := g.asked[kind][until]
		before, reason := gateway.Divide()
		most := max(gateway.Denominator, engines.Denominator)
		if reason != derive.OK || math.Abs(gateway.Denominator-engines.Denominator) > sameRequests*most || at-before > max(noise*at, leastNoise) {
			continue
		}
		if adds := max(before-at, 0); !(adds <= g.delay[until]) {
			g.delay[until] = adds
		}
	}
	if adds := g.delay[until]; until == derive.FirstToken && !math.IsNaN(adds) {
		p.delays[g.key] = Delay{adds, at, engines.Denominator}
	}
}

// Delays returns what was found at the last evaluation, by the key of a pool. It is valid until the next
// one.
func (p *Totals) Delays() map[string]Delay { return p.delays }

// gatewayDelay is what the gateways add until the first token, and until the end.
func (*Totals) gatewayDelay(g *group, yield func(until string, seconds float64)) {
	for until, adds := range g.delay {
		yield(derive.Until(until).String(), adds)
	}
}
