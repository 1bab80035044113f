package content

// bound is the end of an interval that a value is.
type bound string

const (
	lower bound = "lower"
	upper bound = "upper"
)

const (
	perObjective = "k8s_cluster_name, k8s_namespace_name, job, model_name, objective"
	// The same model can be there in several namespaces.
	objectiveLegend = "{{objective}} {{model_name}} {{job}} {{k8s_namespace_name}} {{k8s_cluster_name}}"
)

// objectiveMatchers are the choices of the board of objectives.
const objectiveMatchers = engineMatchers + `,objective=~"$objective"`

func objectiveOf(metric string, more ...string) string {
	return selector(metric, objectiveMatchers, more)
}

// promises are the objectives that a board chooses.
type promises struct{ matchers string }

var (
	ofServers    = promises{engineMatchers}
	ofObjectives = promises{objectiveMatchers}
)

// sampled are how far apart the values of long windows are: to read each one of a thousand servers takes a
// minute. What a server counts between the last of them and its end is missed, met or not.
var sampled = map[string]string{"30m": ":1m", "1h": ":2m", "6h": ":10m", "1d": ":5m", "30d": ":10m"}

func (p promises) events(metric, window string) string {
	return "sum by (" + perObjective + ") (increase(" + selector(metric, p.matchers, nil) + "[" + window + sampled[window] + "]))"
}

func (p promises) target() string {
	return "max by (" + perObjective + ") (" + selector("vllm_slo_target_ratio", p.matchers, nil) + ")"
}

// attained is the share of the events of all servers that met an objective. What cannot be
// decided is bad at the lower end and good at the upper end.
func (p promises) attained(window string, end bound) string {
	good := p.events("vllm_slo_good_total", window)
	if end == upper {
		good = "(" + good + " + " + p.events("vllm_slo_undecided_total", window) + ")"
	}
	return good + " / (" + p.events("vllm_slo_valid_total", window) + " > 0)"
}

// burn is how many times faster than allowed the error budget was used. Its lower end is
// what is certain: it comes from the upper end of what was attained.
func (p promises) burn(window string, end bound) string {
	return "(1 - " + p.attained(window, opposite(end)) + ") / (1 - " + p.target() + ")"
}

// budget is the share of the error budget of a window that is left.
func (p promises) budget(window string, end bound) string {
	return "1 - (" + p.burn(window, opposite(end)) + ")"
}

func opposite(end bound) bound {
	if end == lower {
		return upper
	}
	return lower
}

// objectives answers whether the promises are kept, and for how long they can be.
func objectives() Board {
	return Board{
		UID: "vllm-objectives", Title: "vLLM objectives", Set: "stable",
		Question:    "Are the objectives met, and how much error budget is left?",
		Annotations: changes(),
		Variables: append(serverVariables(),
			// Values of the whole chosen time are offered, so that one is there while the server is down.
			choice("objective", "Objective", engineOf("vllm_slo_target_ratio"), "objective"),
		),
		Rows: []Row{
			{Title: "Health", Needs: "objectives in the processor vllm", Panels: budgetPanels()},
			{Title: "Attainment", Needs: "objectives in the processor vllm", Panels: attainmentPanels()},
			{Title: "Burn rate", Needs: "objectives in the processor vllm", Panels: burnPanels()},
			{Title: "Coverage", Needs: "objectives in the processor vllm", Panels: coveragePanels()},
		},
	}
}

const fromSums = "Computed from the sums over all chosen servers, so it outlives a pod. "

func budgetPanels() []Panel {
	return sized(24, 5,
		Panel{
			Title: "Error budget left", Kind: Stat, Unit: "1", Thresholds: []Threshold{{-1000, Red}, {0, Orange}, {0.25, Green}},
			About: fromSums + "Of the last 30 days, or of the time that was observed. What cannot be decided counts as bad. A new server is not in it for up to 20 minutes.",
			// Soon after the start there are no two values of the long window.
			Queries: now("("+ofObjectives.budget("30d", lower)+") or ("+ofObjectives.budget("1h", lower)+")", objectiveLegend),
		},
		Panel{
			Title: "Burn rate of the last hour", Kind: Stat, Unit: Multiple, Thresholds: []Threshold{{0, Green}, {6, Orange}, {14.4, Red}},
			About:   fromSums + "1 uses the budget up exactly at the end of its window. It cannot exceed 1 / (1 - target): with a target of 90 % it is at most 10.",
			Queries: now(ofObjectives.burn("1h", lower), objectiveLegend),
		},
		Panel{
			Title: "Objectives", Kind: Table, Unit: "1", Width: 24, Height: 8,
			About: "What the configuration of the processor requires, and the share that was certainly met in the last 5 minutes and the last day. No share: no traffic, or less than 10 minutes of it.",
			Queries: []Query{
				{Expr: "max by (metric, " + perObjective + ") (" + objectiveOf("vllm_slo_threshold_seconds") + ")", Instant: true},
				{Expr: ofObjectives.target(), Instant: true},
				{Expr: ofObjectives.attained("5m", lower), Instant: true},
				{Expr: ofObjectives.attained("1d", lower), Instant: true},
			},
			Columns: []Column{
				{Label: "objective", Title: "Objective"},
				{Label: "metric", Title: "Latency", Width: 220},
				{Label: "model_name", Title: "Model"},
				{Label: "job", Title: "Service"},
				{Label: "k8s_namespace_name", Title: "Namespace"},
				{Label: "k8s_cluster_name", Title: "Cluster"},
				{Label: ValueColumn, Title: "Threshold", Unit: "s"},
				{Label: ValueColumn, Query: 1, Title: "Target"},
				{Label: ValueColumn, Query: 2, Title: "Met, 5 min"},
				{Label: ValueColumn, Query: 3, Title: "Met, 1 day"},
			},
		},
	)
}

func attainmentPanels() []Panel {
	return sized(24, 9,
		Panel{
			Title: "Attainment", Kind: TimeSeries, Unit: "1", Max: number(1), Repeat: "objective",
			About: fromSums + "Of the worst model that has an objective of this name, over the last 5 minutes, as a band: the true share is within it. The band is a line if the threshold is a bound of the histogram's buckets. The dashed line is the target, the strictest if there are several.",
			Queries: []Query{
				{Expr: "min by (objective) (" + ofObjectives.attained("5m", upper) + ")", Legend: "at most", FillTo: "at least"},
				{Expr: "min by (objective) (" + ofObjectives.attained("5m", lower) + ")", Legend: "at least"},
				{Expr: "max by (objective) (" + ofObjectives.target() + ")", Legend: "target", AsThreshold: true},
			},
			NoValue: "No traffic in these 5 minutes, or no `objectives` in the processor vllm.",
		},
		Panel{
			Title: "Attainment by model", Kind: TimeSeries, Unit: "1", Max: number(1), Height: 9,
			About:   fromSums + "Over the last 5 minutes. What cannot be decided counts as bad.",
			Queries: one(ofObjectives.attained("5m", lower), objectiveLegend),
			NoValue: "No traffic in these 5 minutes, or no `objectives` in the processor vllm.",
		},
		Panel{
			Title: "All objectives together", Kind: TimeSeries, Unit: "1", Max: number(1), Width: 12,
			About:   "The server with the smallest share of requests that met all objectives about ended requests.",
			Queries: one("min by (model_name, bound) ("+engineOf("vllm_slo_joint_attainment_ratio")+")", "{{bound}} {{model_name}}"),
		},
		Panel{
			Title: "Attainment of the worst server", Kind: TimeSeries, Unit: "1", Max: number(1), Width: 12,
			About: "Of each objective, over the window of the processor, at least. The sum over many servers hides a single bad one.",
			Queries: []Query{
				{Expr: "min by (objective, model_name) (" + objectiveOf("vllm_slo_attainment_ratio", `bound="lower"`) + ")", Legend: "{{objective}} {{model_name}}"},
			},
		},
	)
}

func burnPanels() []Panel {
	burn := func(title, long, short, limit, windows string) Panel {
		ofLong, ofShort := ofObjectives.burn(long, lower), ofObjectives.burn(short, lower)
		return Panel{
			Title: title, Kind: TimeSeries, Unit: Multiple, Min: number(0),
			About: fromSums + "The lower of the burn rates over " + windows + ": a page needs both above the line.",
			Queries: []Query{
				{Expr: "(" + ofLong + ") < (" + ofShort + ") or (" + ofShort + ")", Legend: objectiveLegend},
				{Expr: "vector(" + limit + ")", Legend: "page", AsThreshold: true},
			},
			NoValue: "No traffic, or no `objectives` in the processor vllm.",
		}
	}
	return sized(12, 9, burn("Fast burn", "1h", "5m", "14.4", "1 hour and 5 minutes"), burn("Slow burn", "6h", "30m", "6", "6 hours and 30 minutes"))
}

func coveragePanels() []Panel {
	return sized(8, 7,
		chart("Events", "{event}/s", "How many events the shares are made of: with few, a share jumps.",
			"", one("sum by (objective, model_name) ("+rate(objectiveOf("vllm_slo_valid_total"))+")", "{{objective}} {{model_name}}")),
		Panel{
			Title: "Undecided share", Kind: TimeSeries, Unit: "1", Min: number(0),
			About: "Share of the events of the last hour in the bucket with the threshold. It is 0 if the threshold is a bound of the buckets.",
			Queries: one(ofObjectives.events("vllm_slo_undecided_total", "1h")+" / ("+ofObjectives.events("vllm_slo_valid_total", "1h")+" > 0)",
				objectiveLegend),
			NoValue: "No traffic in this hour, or no `objectives` in the processor vllm.",
		},
		percent("Observed share of each window", "How much of each window the processor has seen. A budget of 30 days with a coverage of 0.1 is the budget of three days.",
			"", one("min by (objective, window) ("+objectiveOf("vllm_slo_coverage_ratio")+")", "{{objective}} {{window}}")),
	)
}
