package content

import "fmt"

// burnAlert is an alert on two windows. The long one says that the budget is really used, the
// short one that it still is. Alerts go by what is certain.
func burnAlert(p parameters, factor, long, short, events string) string {
	return fmt.Sprintf("%s and %s and %s", misses(p, factor, long, "> "), misses(p, factor, short, "> "), busy(p, short, events))
}

// pageBurn is burnAlert, which stays while the short window misses half as much, and ends when users are served
// again: two minutes of the last five miss less than that. The short window alone would forget an outage only after
// its whole length. What is known of two minutes counts for five, so that it does not begin again between two scrapes.
func pageBurn(p parameters, name, factor, long, short, events string) string {
	return fmt.Sprintf("%s and (%s and %s or %s and on (%s) %s) unless last_over_time(vllm_slo:error_ratio_lower:rate2m[5m]) < 0.5 * %s",
		misses(p, factor, long, "> "), misses(p, factor, short, "> "), busy(p, short, events),
		misses(p, factor, short, "> 0.5 * "), objectiveLabels, firing(name), enough(p, factor))
}

// misses compares the share of missed events with what is enough for an alert. The burn rate cannot exceed
// 1 / (1 - target): where not even an outage reaches the factor, a share of missed events is enough.
func misses(p parameters, factor, window, compared string) string {
	return "vllm_slo:error_ratio_lower:rate" + window + " " + compared + enough(p, factor)
}

func enough(p parameters, factor string) string {
	return fmt.Sprintf("clamp_max(%s * (1 - vllm_slo:target:last1h), %s)", p.number(factor), p.number("errorRatioAlways"))
}

// busy is a guard: one request may be hundreds of events, of an objective about tokens for example. Where the
// requests are not known, the events alone count.
func busy(p parameters, window, events string) string {
	return fmt.Sprintf("vllm_slo:valid:rate%s * %[2]d >= %[3]s unless on (%[4]s) vllm_slo:requests:rate%[1]s * %[2]d < %[3]s",
		window, seconds[window], p.number(events), modelLabels)
}

// burnMonitor compares the lower of the certain burn rates over two windows, so it exceeds a factor
// only where both do. IN and a comma cannot be in one filter.
func burnMonitor(factor, long, short, longText, shortText string) *Monitor {
	return &Monitor{
		Parameter: factor,
		Query: "max(last_5m):min:vllm.slo.burn_rate{bound:lower AND window IN (" + long + "," + short + ")}" +
			" by {service.instance.id,model_name,objective} > PARAMETER",
		Text: "{{[service.instance.id].name}} misses the objective {{objective.name}} of {{model_name.name}} so often that its error budget is used " +
			"{{value}} times faster than allowed, over " + longText + " and over " + shortText + ".",
		Differs: "It is about each server, and has no guard on traffic.",
	}
}

// observed is for windows of days, which are mostly empty after an installation: ten
// bad minutes of a first hour are no trend.
func observed(p parameters, window string) string {
	return " and vllm_slo:coverage:" + window + " >= " + p.number("coverage")
}

// seconds are the lengths of the short windows.
var seconds = map[string]int{"2m": 120, "5m": 300, "30m": 1800, "2h": 7200, "6h": 21600}

func sloGroup(p parameters) Group {
	return Group{
		Name: "vllm-slo", Set: Stable,
		Records: sloRecords(p),
		Alerts: []Alert{
			{
				Name: "VLLMBudgetBurnFast", Severity: Page,
				Expr:         pageBurn(p, "VLLMBudgetBurnFast", "burnFast", "1h", "5m", "eventsFast"),
				Summary:      "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that an hour uses 2 % of the month's error budget",
				Description:  "{{ $value | humanizePercentage }} of the events of the last hour certainly missed the objective.",
				Meaning:      "Over 1h and 5m, the share of definite misses is more than 14.4 times what the target allows. At this rate 2 % of the budget of 30 days is gone in an hour." + burnEnds + burnUnreachable,
				Impact:       burnImpact,
				Diagnosis:    burnSteps("5m"),
				Mitigation:   burnMitigation,
				LooksTheSame: burnLooks,
				NotConclude:  burnNot,
				CannotFire:   burnCannot,
				Monitor:      burnMonitor("burnFast", "1h", "5m", "1 h", "5 min"),
				ShownBy:      "TestAlertsOnFastBurns",
			},
			{
				Name: "VLLMBudgetBurnMedium", Severity: Page,
				Expr:         pageBurn(p, "VLLMBudgetBurnMedium", "burnMedium", "6h", "30m", "eventsMedium"),
				Summary:      "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that six hours use 5 % of the month's error budget",
				Description:  "{{ $value | humanizePercentage }} of the events of the last six hours certainly missed the objective.",
				Meaning:      "Over 6h and 30m, the share of definite misses is more than 6 times what the target allows. At this rate 5 % of the budget of 30 days is gone in six hours." + burnEnds + burnUnreachable,
				Impact:       burnImpact,
				Diagnosis:    burnSteps("30m"),
				Mitigation:   burnMitigation,
				LooksTheSame: burnLooks,
				NotConclude:  burnNot,
				CannotFire:   burnCannot,
				Monitor:      burnMonitor("burnMedium", "6h", "30m", "6 h", "30 min"),
				ShownBy:      "TestAlertsOnFastBurns",
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
				Expr:         burnAlert(p, "burnSlow", "1d", "2h", "eventsSlow") + observed(p, "1d"),
				Summary:      "The objective {{ $labels.objective }} of " + model("all models") + " is missed so often that a day uses 10 % of the month's error budget",
				Description:  "{{ $value | humanizePercentage }} of the events of the last day certainly missed the objective, and the last two hours are as bad.",
				Meaning:      "Over 1d and 2h, the share of definite misses is more than 3 times what the target allows. At this rate 10 % of the budget of 30 days is gone in a day." + burnUnreachable,
				Impact:       "Some users miss what was promised to them, for hours.",
				Diagnosis:    burnSteps("2h"),
				Mitigation:   burnMitigation,
				LooksTheSame: "The peak of each day: compare with the same hours of last week.",
				NotConclude:  burnNot,
				CannotFire:   burnCannot + " A quarter of the day must have been recorded.",
				Monitor:      burnMonitor("burnSlow", "1d", "2h", "1 day", "2 h"),
				ShownBy:      "TestAlertsOnSlowBurns",
			},
			{
				Name: "VLLMBudgetBurnLeak", Severity: Ticket,
				Expr:        burnAlert(p, "burnLeak", "3d", "6h", "eventsLeak") + observed(p, "3d"),
				Summary:     "The objective {{ $labels.objective }} of " + model("all models") + " will use up its error budget within the month",
				Description: "{{ $value | humanizePercentage }} of the events of the last three days certainly missed the objective, and the last six hours are as bad.",
				Meaning:     "Over 3d and 6h, the share of definite misses is more than the target allows. The budget will not last for the month.",
				Impact:      "Few users notice, but the promise will not be kept.",
				Diagnosis:   burnSteps("6h"),
				Mitigation: []string{
					"Plan more capacity, or less load per server.",
					"Change the objective if users are content: a target that is always missed hides real trouble.",
				},
				LooksTheSame: "A threshold that no longer fits the model, the prompts or the hardware.",
				NotConclude:  burnNot,
				CannotFire:   burnCannot + " A quarter of the three days must have been recorded.",
				Monitor:      burnMonitor("burnLeak", "3d", "6h", "3 days", "6 h"),
				ShownBy:      "TestAlertsOnSlowBurns",
			},
			{
				Name: "VLLMBudgetExhausted", Severity: Ticket,
				Expr:        "vllm_slo:budget_remaining_upper:30d <= 0" + observed(p, "30d"),
				Summary:     "The error budget of the objective {{ $labels.objective }} of " + model("all models") + " is used up",
				Description: "More events of the last 30 days certainly missed the objective than the target allows.",
				Meaning:     "Definite misses have used up the error budget of 30 days. At least a quarter of the 30 days was recorded.",
				Impact:      "The promise of this month is broken, and there is no room for risk until bad days leave the window.",
				Diagnosis: []Step{
					{Text: "See how much is left, and when it was used. The panel shows the lower bound.", Query: "vllm_slo:budget_remaining_upper:30d", Board: "vllm-objectives", Panel: "Error budget left"},
					{Text: "See how much of the month was recorded.", Query: "vllm_slo:coverage:30d", Board: "vllm-objectives", Panel: "Observed share of each window"},
					{Text: "See whether it is still being used.", Query: "vllm_slo:burn_lower:rate6h", Board: "vllm-objectives", Panel: "Slow burn"},
				},
				Mitigation: []string{
					"Stop risky changes of this model until the budget is positive again.",
					"Find the days that used most of it, and remove their cause.",
				},
				LooksTheSame: "A new threshold or target: the processor counts from zero, but the recorded month does not.",
				NotConclude:  "Users may be well now: the misses may be weeks old.",
				CannotFire:   "Less than a quarter of 30 days was recorded, Prometheus keeps less than 30 days, or the objective has no target.",
				NoMonitor:    "Use an alert on the error budget of the SLO.",
				ShownBy:      "TestAlertsOnSlowBurns",
			},
		},
	}
}

const (
	burnImpact       = "Many more requests of the model are late or slow than the objective allows."
	burnCannot       = "The processor has no `objectives`, or the short window has too few events or requests. Cancelled requests and undecided events do not count as missed. For outages see `VLLMPoolNotServing` and `VLLMServerNotServing`."
	burnLooks        = "A few requests on a quiet night: with ten events two are enough."
	burnEnds         = " It is resolved when two minutes with ten events and ten requests miss less than half of that."
	burnNot          = "It does not show which server is at fault: the sums are over all servers of the model."
	burnUnreachable  = " If a low target makes the factor unreachable, 90 % missed events are enough."
	burnQueryServers = "sum by (instance, model_name, objective) (rate(vllm_slo_good_total[5m])) / (sum by (instance, model_name, objective) (rate(vllm_slo_valid_total[5m])) > 0)"
)

func burnSteps(short string) []Step {
	panel := "Slow burn"
	if short == "5m" {
		panel = "Fast burn"
	}
	return []Step{
		{Text: "See how fast the budget is used now, and whether it gets worse.", Query: "vllm_slo:burn_lower:rate" + short, Board: "vllm-objectives", Panel: panel},
		{Text: "See how many events there are.", Query: "vllm_slo:valid:rate" + short, Board: "vllm-objectives", Panel: "Events"},
		{Text: "See which server misses the objective.", Query: burnQueryServers, Board: "vllm-objectives", Panel: "Attainment of the worst server"},
		{Text: "Read the cause that the diagnosis reports; its page has the next steps.", Query: `vllm_diagnosis_cause{role="primary"} == 1`, Board: "vllm-overview", Panel: "Causes"},
	}
}

var burnMitigation = []string{
	"Follow the page of the cause that the diagnosis reports.",
	"Refuse less important requests at the gateway, so that the others get their first token in time.",
	"Add servers if requests wait and all servers are busy. A new server needs minutes to load its model.",
}
