package truth

import (
	"fmt"
	"slices"
)

// alarms are what the diagnosis must not report of a server that works, whatever its
// metrics say: it stands still, it fails, its requests end in errors.
var alarms = []string{"stalled", "failing", "erroring", "unreachable"}

// FalseAlarms returns what the diagnosis reports of a server although nothing is wrong with
// it.
func FalseAlarms(o *Observed) (all []string) {
	for _, s := range o.Scrapes {
		for _, p := range s.Points {
			reported := p.Attributes["condition"]
			if p.Metric == "vllm.diagnosis.cause" {
				reported = p.Attributes["cause"]
			}
			if (p.Metric == "vllm.diagnosis.condition" || p.Metric == "vllm.diagnosis.cause") && p.Value == 1 && slices.Contains(alarms, reported) {
				all = append(all, fmt.Sprintf("%s at %.0f s: the diagnosis reports %s, detail %q, and nothing is wrong",
					o.Case.Name(), s.At, reported, p.Attributes["detail"]))
			}
		}
	}
	return all
}
