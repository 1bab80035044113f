package content

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// sloWindows are the windows of the burn rates that are computed from the counters. Longer ones
// are computed from what was recorded.
var sloWindows = []string{"5m", "30m", "1h", "2h", "6h"}

// sloRecords are the error ratios and burn rates over the servers of a model. Numerators and
// denominators are summed before they are divided, so that a budget outlives a pod.
func sloRecords(p parameters) []Record {
	records := []Record{{
		Name:    "vllm_slo:target:last1h",
		Meaning: "The target of an objective in the last hour, the strictest of several.",
		Expr:    "max by (" + objectiveLabels + ") (last_over_time(vllm_slo_target_ratio[1h]))",
		Unit:    "1",
	}}
	for _, part := range []struct{ name, metric, meaning string }{
		{"valid", "vllm_slo_valid_total", "Events of an objective per second, over the servers of a model."},
		{"good", "vllm_slo_good_total", "The events that certainly met the objective."},
		{"undecided", "vllm_slo_undecided_total", "The events that cannot be decided."},
	} {
		for _, window := range append([]string{"2m"}, sloWindows...) {
			records = append(records, Record{
				Name: "vllm_slo:" + part.name + ":rate" + window, Meaning: part.meaning, Unit: "{event}/s",
				Expr: "sum by (" + objectiveLabels + ") (rate(" + part.metric + "[" + window + "]))",
			})
		}
	}
	for _, window := range slices.Sorted(maps.Keys(seconds)) {
		records = append(records, Record{
			Name: "vllm_slo:requests:rate" + window, Unit: "{request}/s",
			Meaning: "First tokens per second, over the servers of a model.",
			Expr:    "sum by (" + modelLabels + ") (rate(vllm_time_to_first_token_seconds_count[" + window + "]))",
		})
	}
	// Whether it is over, where the events are evidence. No burn rate is over so short a time.
	over := ratioRecords("2m", "vllm_slo:good:rate2m", "vllm_slo:undecided:rate2m", "vllm_slo:valid:rate2m")[0]
	over.Expr += " and " + busy(p, "2m", "eventsFast")
	records = append(records, over)
	for _, window := range sloWindows {
		records = append(records, ratioRecords(window,
			"vllm_slo:good:rate"+window, "vllm_slo:undecided:rate"+window, "vllm_slo:valid:rate"+window)...)
	}
	return records
}

// sloLongRecords are the ratios over days. The rates of five minutes were recorded at the same
// times, so that the quotient of their sums is the quotient of the counts.
func sloLongRecords() []Record {
	over := func(part, window string) string {
		return "sum_over_time(vllm_slo:" + part + ":rate5m[" + window + "])"
	}
	var records []Record
	for _, window := range []string{"1d", "3d", "30d"} {
		records = append(records, ratioRecords(window, over("good", window), over("undecided", window), over("valid", window))...)
	}
	const lost = "The share of the error budget of 30 days that is left; negative where more was used."
	return append(records,
		Record{
			Name: "vllm_slo:budget_remaining_upper:30d", Unit: "1",
			Meaning: lost + " The upper bound.",
			Expr:    "1 - vllm_slo:burn_lower:rate30d",
		},
		Record{
			Name: "vllm_slo:budget_remaining_lower:30d", Unit: "1",
			Meaning: lost + " The lower bound.",
			Expr:    "1 - vllm_slo:burn_upper:rate30d",
		},
		coverageRecord("1d", "15m", 96), coverageRecord("3d", "1h", 72), coverageRecord("30d", "1h", 720))
}

// coverageRecord counts in how many steps of a window the objective was recorded.
func coverageRecord(window, step string, steps int) Record {
	return Record{
		Name: "vllm_slo:coverage:" + window, Unit: "1",
		Meaning: "The recorded share of the window.",
		Expr:    fmt.Sprintf("count_over_time(vllm_slo:valid:rate5m[%s:%s]) / %d", window, step, steps),
	}
}

// ratioRecords are the bounds of the error ratio and of the burn rate over a window.
func ratioRecords(window, good, undecided, valid string) []Record {
	record := func(kind, bound, meaning, expr string) Record {
		return Record{Name: fmt.Sprintf("vllm_slo:%s_%s:rate%s", kind, bound, window), Meaning: meaning, Expr: expr, Unit: "1"}
	}
	burn := func(bound string) string {
		return fmt.Sprintf("vllm_slo:error_ratio_%s:rate%s / (1 - vllm_slo:target:last1h > 0)", bound, window)
	}
	return []Record{
		record("error_ratio", "lower", "The share that certainly missed the objective.",
			fmt.Sprintf("clamp_min(1 - (%s + %s) / (%s > 0), 0)", good, undecided, valid)),
		record("error_ratio", "upper", "The same, if all undecided events missed.",
			fmt.Sprintf("clamp_min(1 - %s / (%s > 0), 0)", good, valid)),
		record("burn", "lower", "The burn rate of definite misses.", burn("lower")),
		record("burn", "upper", "The burn rate, if all undecided events missed.", burn("upper")),
	}
}

// gatewayRecords have the right denominator: the picker counts as requests only what it
// scheduled, so that what it refused must be added. Replicas are added up. The numbers of other
// gateways are derived by the processor, over its window; not all of them mark what fails.
func gatewayRecords() (records []Record) {
	for _, window := range []string{"2m", "5m"} {
		requests, derived := "vllm_gateway:requests:rate"+window, "avg_over_time(inference_gateway_request_rate_per_second["+window+"])"
		records = append(records, Record{
			Name: requests, Unit: "{request}/s",
			Meaning: "Requests at the gateway per second, with those that its endpoint picker refused.",
			Expr: "sum by (" + gatewayLabels + ") (rate(inference_gateway_epp_requests_total[" + window + "]) or " +
				`rate(inference_gateway_epp_request_errors_total{error_code!="ModelServerError"}[` + window + "])) or sum by (" + gatewayLabels + ") (" + derived + ")",
		}, Record{
			Name: "vllm_gateway:error_ratio:rate" + window, Unit: "1",
			Meaning: "The share of these requests that failed.",
			Expr: "(sum by (" + gatewayLabels + ") (rate(inference_gateway_epp_request_errors_total[" + window + "])) or " +
				"sum by (" + gatewayLabels + ") (rate(inference_gateway_epp_requests_total[" + window + "])) * 0 or " +
				"sum by (" + gatewayLabels + `) (avg_over_time(inference_gateway_request_error_ratio{model_name!=""}[` + window + "]) * " + derived + ")) / (" +
				requests + " > 0)",
		})
	}
	return records
}

// serversExpected is a recording rule so that it can be changed in one line of the plain files.
func serversExpected(p parameters) Record {
	return Record{
		Name: "vllm_config:servers:expected", Unit: "{server}",
		Meaning: "The least number of servers. Change it to yours.",
		Expr:    "vector(" + p.number("serversExpected") + ")",
	}
}

// longInterval is how often ratios over days are computed.
const longInterval = 5 * time.Minute
