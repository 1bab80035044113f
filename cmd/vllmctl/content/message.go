package content

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// What an alert says is a template that Prometheus fills in at each evaluation while the alert waits or
// fires. Its queries stand between backquotes, so that package spelling finds them. None of them can fail:
// each aggregates a few series of one server or of one model, and without data it has another text.

// NoGrafana is the part of a template that sets the address of Grafana. Empty leaves boards out.
const NoGrafana = `$grafana := ""`

// subject is what an alert is about.
type subject struct {
	// of and servers are matchers: of the alert's own series, and of the servers that it is about.
	of, servers string
	// state is the prefix of the names of the diagnosis.
	state string
	board string
	// lists is true where several servers can be at fault.
	lists   bool
	numbers []shown
}

// shown is something whose value now is shown beside the usual one. of is an expression of the metric.
type shown struct {
	title, metric, of, format string
	// worst is true where the value is that of the worst engine; optional leaves out the line without a value.
	worst, optional bool
}

// What users of a model and its engines feel now. A wait counts requests that still wait with their wait so far.
var (
	firstToken = shown{"Wait for the first token so far", "vllm_diagnosis_first_token_wait_seconds", "max(%s) >= 0", "humanizeDuration", true, false}
	eachToken  = shown{"Time between tokens", "vllm_inter_token_latency_mean_seconds", "max(%s) >= 0", "humanizeDuration", true, false}
	waiting    = shown{"Requests that wait", "vllm_num_requests_waiting", "sum(max by (instance, engine) (%s))", `printf "%.0f"`, false, false}
	arriving   = shown{"Requests that arrive a second", "vllm_arrival_rate_per_second", "sum(max by (instance, engine) (%s)) >= 0", `printf "%.2g"`, false, true}
	prompts    = shown{"Tokens of a prompt", "vllm_request_prompt_tokens_mean", "max(%s) >= 0", `printf "%.0f"`, true, true}
	missed     = shown{"Missed the objective in 5 minutes", "vllm_slo:error_ratio_lower:rate5m", "max(%s) >= 0", "humanizePercentage", false, false}
)

// subjectOf returns nil for an alert that is not about servers, pools or objectives.
func subjectOf(a *Alert) *subject {
	switch felt := []shown{firstToken, eachToken, waiting, arriving, prompts}; {
	case a.Set != Stable:
		return nil
	case strings.Contains(a.Expr, "vllm_server:severity"), strings.Contains(a.Expr, "vllm_diagnosis_cause{"):
		return &subject{of: matchers(serverModelLabels), servers: "$of }}{{ $reads := " + matchers(serverLabels), state: "vllm_diagnosis", board: "vllm-engine", numbers: felt}
	case strings.Contains(a.Expr, poolSeverity):
		// A pool without a namespace is about the servers of all namespaces.
		const some = "printf `model_name=%q` $labels.model_name -}}\n" +
			"{{ with $labels.k8s_namespace_name }}{{ $servers = printf `%s,k8s_namespace_name=%q` $servers . }}{{ end -}}\n" +
			"{{ with $labels.k8s_cluster_name }}{{ $servers = printf `%s,k8s_cluster_name=%q` $servers . }}{{ end"
		return &subject{of: matchers(poolLabels), servers: some, state: "vllm_pool_diagnosis", board: "vllm-pool", lists: true, numbers: felt}
	case strings.Contains(a.Expr, "vllm_slo:"):
		const some = "printf `k8s_cluster_name=%q,k8s_namespace_name=%q,job=%q,model_name=%q`" +
			" $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name"
		return &subject{of: matchers(objectiveLabels), servers: some, board: "vllm-objectives", lists: true, numbers: []shown{missed, firstToken}}
	}
	return nil
}

// matchers is the part of a template that selects what has the same labels as the alert. Values are quoted,
// whatever is in them; a label that the alert lacks is empty.
func matchers(labels string) string {
	names := strings.Split(labels, ", ")
	return "printf `" + strings.Join(names, "=%q,") + "=%q` $labels." + strings.Join(names, " $labels.")
}

// message is the description of an alert: what happens, condition, cause, numbers, since when, and the board.
func message(a *Alert, s *subject) string {
	// Some groups are evaluated every five minutes, which is as far as a query looks back without a range.
	begin := `last_over_time(ALERTS_FOR_STATE{alertname="` + a.Name + `",%s}[6m])`
	lines := []string{
		`{{ $runbooks := "` + catalog.RunbookBase + `" }}{{ ` + NoGrafana + ` -}}`,
		"{{ $of := " + s.of + " -}}",
		"{{ $servers := " + s.servers + " -}}",
		// What the parts of the message find out for later ones.
		`{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}`,
		"{{ $since := 0.0 }}{{ range query (printf `max(" + begin + ") or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}",
		a.Description,
	}
	if s.state != "" {
		lines = append(lines, s.diagnosis())
	}
	if s.lists {
		lines = append(lines, atFault, others)
	}
	for _, n := range s.numbers {
		lines = append(lines, n.text(s.lists))
	}
	stalled, _ := catalog.ConditionByName("stalled")
	unreachable, _ := catalog.ConditionByName("unreachable")
	// A process that ended has no stack to save.
	next := "{{ if $ended }}" + unreachable.Next[len(unreachable.Next)-1].Text + "{{ else if $hangs }}" + stalled.Next[0].Text + "{{ else }}" + a.Diagnosis[0].Text + "{{ end }}"
	return strings.Join(append(lines, "Reported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.",
		"Next: "+strings.ReplaceAll(next, "`", ""), boardOf(s)), "\n")
}

// each lists the values of a label in what a query finds, as the text says; nothing has the text otherwise.
func each(query, arguments, label, text, otherwise string) string {
	return "{{ range $i, $x := query (printf `" + query + "` " + arguments + ") | sortByLabel \"" + label + "\" }}{{ if $i }}, {{ end }}" + text +
		"{{ else }}" + otherwise + "{{ end }}"
}

// What a query of the state of engines or of a pool finds.
const (
	// Where a server answers nothing or only errors, its metrics cannot show why, and no diagnosis could.
	aCondition = "{{ .Labels.condition }}{{ $pages = printf \"%s %s%s.md\" $pages $runbooks .Labels.condition }}" +
		`{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{ end }}` +
		`{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{ end }}`
	aCause  = "{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{ end }}"
	primary = `count by (cause, detail) (%s_cause{%%s,role="primary"} == 1)`
	orWhy   = `{{ or $why "not known" }}`
	// badEngines leaves out the engines of a server that are well.
	badEngines = "count by (condition) (vllm_diagnosis_condition{%s} == 1 and on (engine) vllm_diagnosis_severity{%s} >= 2)"
)

// diagnosis names the condition, the cause with its detail, and the pages of the cause, or else of the condition.
func (s *subject) diagnosis() string {
	worst, of, unknown := badEngines, "$of $of",
		each("count by (outcome) (vllm_scrape_failure{%s} == 1)", "$reads", "outcome", `{{ if not $i }}the scrape fails: {{ end }}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{ end }}`, orWhy)
	if s.lists {
		worst, of, unknown = "count by (condition) ("+s.state+"_condition{%s} == 1)", "$of", orWhy
	}
	return "Condition: " + each(worst, of, "condition", aCondition, "not reported now") + ". Cause: " +
		each(fmt.Sprintf(primary, s.state), "$of", "cause",
			`{{ if not $i }}{{ $pages = "" }}{{ end }}`+aCause+`{{ $pages = printf "%s %s%s.md" $pages $runbooks .Labels.cause }}`, unknown) +
		"{{ with $pages }}. What to do:{{ . }}{{ end }}"
}

// atFault lists the servers that harm users, the worst first; others says how many it leaves out.
const (
	harming = "max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%s}) >= 2"
	others  = "{{ range query (printf `count(" + harming + ") - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}"
)

var atFault = "{{ range query (printf `sort_desc(topk(5, " + harming + "))` $servers) -}}\n" +
	"{{ $s := printf `%s,instance=%q` $servers .Labels.instance -}}\n" +
	`{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{ end }}: ` +
	each(badEngines, "$s $s", "condition", aCondition, "condition not reported now") + ", cause " +
	each(fmt.Sprintf(primary, "vllm_diagnosis"), "$s", "cause", aCause, orWhy) +
	// A page of the pool mutes that of the replica.
	"{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{ end }}\n" +
	"{{ else }}No server with these labels harms its users now.\n{{ end -}}"

// text is the line of a number. Where a message lists servers, the number is that of those which harm users now,
// also the usual one: in a pool, servers that serve look better than usual while another hangs.
func (n shown) text(lists bool) string {
	series, of := n.metric+"{%s}", "$servers"
	switch {
	case n == missed:
		of = "$of"
	case lists:
		series, of = series+" and on ("+serverModelLabels+") vllm_diagnosis_severity{%s} @ end() >= 2", "$servers $servers"
		if n.worst {
			n.title += ", worst of these servers"
		}
	}
	well, ofWell := series, of
	if n != missed {
		// An earlier incident is not usual. Without a day of data it could be most of what there is.
		well, ofWell = series+" unless on ("+serverModelLabels+") vllm_diagnosis_severity{%s} >= 2", of+" $servers"
	}
	expr, show := fmt.Sprintf(n.of, series), "{{ . | first | value | "+n.format+" }}"
	now := show + " now"
	switch n.metric {
	case waiting.metric:
		expr = "max_over_time((" + expr + ")[1m:1s])" // The gauge of a moment can be 0 between two batches.
		// The gauge of an engine that hangs can stay at 0, whatever waits in front of it.
		now = "{{ if or (. | first | value) (not (or $hangs $late)) }}" + now + "{{ else }}none that gauges show{{ end }}"
	case firstToken.metric:
		now += "{{ $late = gt (. | first | value) 5.0 }}"
	}
	usual := "{{ with query (printf `quantile_over_time(0.5, (" + fmt.Sprintf(n.of, well) + ")[1d:5m] @ %.3f)` " + ofWell + " $since) }}usual " + show +
		"{{ else }}no usual value yet{{ end }}"
	if n.optional {
		return "{{ with query (printf `" + expr + "` " + of + ") }}" + n.title + ": " + show + " now, " + usual + "\n{{ end -}}"
	}
	return n.title + ": {{ with query (printf `" + expr + "` " + of + ") }}" + now + `{{ else }}not measured{{ or $hangs " now" }}{{ end }}, ` + usual
}

// boardOf is the address of the board, with its variables; nothing without an address of Grafana.
func boardOf(s *subject) string {
	variables := []string{"cluster k8s_cluster_name", "namespace k8s_namespace_name", "model model_name"}
	switch s.board {
	case "vllm-engine":
		variables = append(variables, "job job", "pod k8s_pod_name", "instance instance")
	case "vllm-objectives":
		variables = append(variables, "job job", "objective objective")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{{- if $grafana }}\nBoard: {{ $grafana }}/d/%s?from=now-6h&to=now", s.board)
	for _, v := range variables {
		name, label, _ := strings.Cut(v, " ")
		fmt.Fprintf(&b, "{{ with $labels.%s }}&var-%s={{ urlquery . }}{{ end }}", label, name)
	}
	return b.String() + "{{ end }}"
}
