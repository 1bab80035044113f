package soak

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// receiverScope is the scope of what was scraped; other scopes have what is derived from it.
const receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"

// take notes what the backend got.
func (l *ledger) take(r *fleet.Request) {
	for _, p := range parts(r.Metrics) {
		p.repeated = r.Repeated
		l.receive(*p)
	}
}

// parts divides a request by scrapes. Points without a value end a series and are not counted.
func parts(md pmetric.Metrics) map[moment]*part {
	out := map[moment]*part{}
	for _, rm := range md.ResourceMetrics().All() {
		id, _ := rm.Resource().Attributes().Get("service.instance.id")
		for p := range fleet.Points(rm) {
			if p.Scope != receiverScope || p.Ends {
				continue
			}
			m := moment{id.Str(), p.At}
			to := out[m]
			if to == nil {
				to = &part{at: m, tokens: map[int]float64{}, first: map[int]float64{}, last: map[int]float64{}}
				out[m] = to
			}
			to.points++
			switch p.Metric {
			case servedMetric:
				to.ids = append(to.ids, uint64(p.Value))
			case enginesMetric:
				to.last[engineOf(p.Attributes)] = p.Value
			case tokensMetric:
				to.tokens[engineOf(p.Attributes)] = p.Value
			case firstMetric:
				to.first[engineOf(p.Attributes)] = p.Value
			}
		}
	}
	return out
}

// engineOf is the number of the engine of a point; servers that have only one do not write it.
func engineOf(attributes pcommon.Map) int {
	v, ok := attributes.Get("engine")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(v.AsString())
	if err != nil || n < 0 || n >= mostEngines {
		return 0
	}
	return n
}
