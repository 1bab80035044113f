package content

const (
	burnImpact       = "The users of the model miss what was promised to them: the share of late or slow requests is many times what the objective allows."
	burnCannot       = "There are no `objectives` in the processor, or fewer events or fewer requests in the short window than the guard asks for. The processor is older than `vllm.slo.target`: without a target there is no limit to compare with. Requests that the histogram misses do not count: cancelled ones, and all of them while no server answers. `VLLMPoolNotServing` and `VLLMServerNotServing` are for outages. What is undecided does not count as missed: choose a threshold that is a bound of the histogram."
	burnLooks        = "A few requests on a quiet night: with ten events two are enough. Look at the number of events first."
	burnNot          = "Do not conclude which server is at fault: the sums are over all servers of the model."
	burnUnreachable  = " The burn rate cannot exceed 1 / (1 - target). Where not even an outage reaches the factor, 90 % missed events are enough."
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
		{Text: "Read the cause that the diagnosis reports; its page has the next steps.", Query: `vllm_diagnosis_cause{role="primary"} == 1`, Board: "vllm-overview", Panel: "Causes now"},
	}
}

var burnMitigation = []string{
	"Follow the page of the cause that the diagnosis reports.",
	"Shed load that is less important at the gateway. It harms those users, and the others get their first token in time.",
	"Add servers if requests wait and all servers are busy. A new server needs minutes to load its model.",
}

var sloWords = map[string]runbook{
	"VLLMBudgetBurnFast": {
		description: "{{ $value | humanizePercentage }} of the events of the last hour certainly missed the objective, and the last five minutes are as bad.",
		meaning:     "Over an hour and over five minutes, the share of events that certainly missed the objective is more than 14.4 times what the target allows. At this rate 2 % of the budget of 30 days is gone in an hour." + burnUnreachable + " A total outage at a target of 99 % pages after 8.6 minutes, at 95 % after 43, at 90 % after 54.",
		impact:      burnImpact, diagnosis: burnSteps("5m"), mitigation: burnMitigation,
		looksTheSame: burnLooks, notConclude: burnNot, cannotFire: burnCannot,
	},
	"VLLMBudgetBurnMedium": {
		description: "{{ $value | humanizePercentage }} of the events of the last six hours certainly missed the objective, and the last half hour is as bad.",
		meaning:     "Over six hours and over 30 minutes, the share of events that certainly missed the objective is more than 6 times what the target allows. At this rate 5 % of the budget of 30 days is gone in six hours." + burnUnreachable,
		impact:      burnImpact, diagnosis: burnSteps("30m"), mitigation: burnMitigation,
		looksTheSame: burnLooks, notConclude: burnNot, cannotFire: burnCannot,
	},
	"VLLMBudgetBurnSlow": {
		description: "{{ $value | humanizePercentage }} of the events of the last day certainly missed the objective, and the last two hours are as bad.",
		meaning:     "Over a day and over two hours, the share of events that certainly missed the objective is more than 3 times what the target allows. At this rate 10 % of the budget of 30 days is gone in a day." + burnUnreachable,
		impact:      "Some users miss what was promised to them, for hours.", diagnosis: burnSteps("2h"), mitigation: burnMitigation,
		looksTheSame: "The peak of each day. Compare with the same hours of last week.", notConclude: burnNot,
		cannotFire: burnCannot + " A quarter of the day must have been recorded.",
	},
	"VLLMBudgetBurnLeak": {
		description: "{{ $value | humanizePercentage }} of the events of the last three days certainly missed the objective, and the last six hours are as bad.",
		meaning:     "Over three days and over six hours, the share of events that certainly missed the objective is more than the target allows. If it goes on, the budget does not last for the month.",
		impact:      "Few users notice, but the promise will not be kept.", diagnosis: burnSteps("6h"),
		mitigation: []string{
			"Plan more capacity, or less load per server.",
			"Change the objective if users are content: a target that is always missed hides real trouble.",
		},
		looksTheSame: "A threshold that no longer fits the model, the prompts or the hardware.", notConclude: burnNot,
		cannotFire: burnCannot + " A quarter of the three days must have been recorded.",
	},
	"VLLMBudgetExhausted": {
		description: "More events of the last 30 days certainly missed the objective than the target allows.",
		meaning:     "The error budget of 30 days is used up, counting only what certainly missed, and at least a quarter of the 30 days was recorded.",
		impact:      "The promise of this month is broken. There is no room for risk until bad days leave the window.",
		diagnosis: []Step{
			{Text: "See how much is left, and when it was used. The panel shows the lower end, where all that is undecided counts as missed.", Query: "vllm_slo:budget_remaining_upper:30d", Board: "vllm-objectives", Panel: "Budget left, at least"},
			{Text: "See how much of the month was recorded.", Query: "vllm_slo:coverage:30d", Board: "vllm-objectives", Panel: "Coverage of the least observed server"},
			{Text: "See whether it is still being used.", Query: "vllm_slo:burn_lower:rate6h", Board: "vllm-objectives", Panel: "Slow burn"},
		},
		mitigation: []string{
			"Stop risky changes of this model until the budget is positive again.",
			"Find the days that used most of it, and remove their cause.",
		},
		looksTheSame: "A new threshold or target: the processor starts anew, but the recorded month does not.",
		notConclude:  "Do not conclude that users are harmed now: it may have been three weeks ago.",
		cannotFire:   "Less than a quarter of 30 days was recorded, the Prometheus server keeps less than 30 days, or the objective has no target.",
	},
}
