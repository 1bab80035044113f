package vllmreceiver

import (
	"fmt"
	"maps"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// apart returns the discovered targets with an identity for each. Those that share one get their
// address as the instance; one that has the instance of another target even then is left out.
func (d *targetDiscovery) apart(wanted []discover.Target) []discover.Target {
	cfg := d.receiver.shared.config
	named := map[string][]string{}
	for key, instance := range d.keys {
		named[key] = []string{instance}
	}
	keys := make([]string, len(wanted))
	for i, t := range wanted {
		keys[i] = scrape.KeyOf(cfg, t.URL, nil, t.Attributes)
		named[keys[i]] = append(named[keys[i]], scrape.InstanceID(t.URL))
	}
	taken := map[string]string{}
	maps.Copy(taken, d.keys)
	out := make([]discover.Target, 0, len(wanted))
	same, example := 0, ""
	for i, t := range wanted {
		key := keys[i]
		if twins := named[key]; len(twins) > 1 {
			same++
			if same == 1 {
				example = fmt.Sprintf("%s and %s", twins[0], twins[1])
			}
			t.Attributes = maps.Clone(t.Attributes)
			t.Attributes[scrape.InstanceAttribute] = scrape.InstanceID(t.URL)
			key = scrape.KeyOf(cfg, t.URL, nil, t.Attributes)
		}
		if _, twin := taken[key]; !twin {
			taken[key] = scrape.InstanceID(t.URL)
			out = append(out, t)
		}
	}
	if same != d.same && same > 0 {
		d.receiver.shared.settings.Logger.Warn("Several targets have one service.instance.id, for example "+example+
			". Their addresses are used instead, and of targets with one address only the first is scraped; "+
			"give each its own label instance, or remove that label", zap.Int("targets", same), zap.Int("left_out", len(wanted)-len(out)))
	}
	d.same = same
	return out
}
