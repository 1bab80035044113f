package content

import "fmt"

// burnAlert is an alert on two windows. The long one says that the budget is really used, the
// short one that it still is. Pages go by what is certain. The burn rate cannot exceed
// 1 / (1 - target): where not even an outage reaches the factor, a share of missed events is enough.
func burnAlert(p parameters, factor, long, short, events string) string {
	certain := func(window string) string {
		return fmt.Sprintf("vllm_slo:error_ratio_lower:rate%s > clamp_max(%s * (1 - vllm_slo:target:last1h), %s)",
			window, p.number(factor), p.number("errorRatioAlways"))
	}
	// One request may be hundreds of events, of an objective about tokens for example. Where the
	// requests are not known, the events alone count.
	return fmt.Sprintf("%s and %s and vllm_slo:valid:rate%s * %[4]d >= %[5]s unless on (%[6]s) vllm_slo:requests:rate%[3]s * %[4]d < %[5]s",
		certain(long), certain(short), short, seconds[short], p.number(events), modelLabels)
}

// observed is for windows of days, which are mostly empty after an installation: ten
// bad minutes of a first hour are no trend.
func observed(p parameters, window string) string {
	return " and vllm_slo:coverage:" + window + " >= " + p.number("coverage")
}

// seconds are the lengths of the short windows.
var seconds = map[string]int{"5m": 300, "30m": 1800, "2h": 7200, "6h": 21600}

func sloGroup(p parameters) Group {
	return Group{
		Name: "vllm-slo", Set: Stable,
		Records: sloRecords(),
		Alerts: []Alert{
			{
				Name: "VLLMBudgetBurnFast", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:    burnAlert(p, "burnFast", "1h", "5m", "eventsFast"),
				Summary: "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that 2 % of the month's budget go in an hour",
			},
			{
				Name: "VLLMBudgetBurnMedium", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:    burnAlert(p, "burnMedium", "6h", "30m", "eventsMedium"),
				Summary: "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that 5 % of the month's budget go in six hours",
			},
		},
	}
}

func sloLongGroup(p parameters) Group {
	return Group{
		Name: "vllm-slo-long", Set: Stable, Interval: longInterval,
		Records: sloLongRecords(),
		Alerts: []Alert{
			{
				Name: "VLLMBudgetBurnSlow", Severity: Ticket,
				Expr:    burnAlert(p, "burnSlow", "1d", "2h", "eventsSlow") + observed(p, "1d"),
				Summary: "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that 10 % of the month's budget go in a day",
			},
			{
				Name: "VLLMBudgetBurnLeak", Severity: Ticket,
				Expr:    burnAlert(p, "burnLeak", "3d", "6h", "eventsLeak") + observed(p, "3d"),
				Summary: "The objective {{ $labels.objective }} of " + model("all models") + " will use up its budget before the month ends",
			},
			{
				Name: "VLLMBudgetExhausted", Severity: Ticket,
				Expr:    "vllm_slo:budget_remaining_upper:30d <= 0" + observed(p, "30d"),
				Summary: "The error budget of the objective {{ $labels.objective }} of " + model("all models") + " is used up",
			},
		},
	}
}
