// Package content is the model of what the project ships besides programs: alerts,
// recording rules, dashboards and the runbooks of alerts. It holds plain data. Builders
// turn it into files: lab/cmd/contentgen writes them below content/ and docs/.
//
// Expressions are PromQL in the suffixed spelling, which is what Prometheus stores by
// default: vllm_time_to_first_token_seconds_bucket, k8s_namespace_name. Package spelling
// translates them into the other spellings. So each name in an expression must be in the
// catalogue, be the name of a recording rule, or be listed as the name of another program.
package content

import "time"

//go:generate go run ../../../lab/cmd/contentgen -root ../../..

// Group is a group of rules that are evaluated together, the records first, in their order.
type Group struct {
	Name string
	// Set is "stable" for the names of this project, "wire" for vLLM's own names.
	Set      string
	Interval time.Duration // 0: the server's default.
	Records  []Record
	Alerts   []Alert
}

// Record is a recording rule.
type Record struct {
	// Name follows level:metric:operation.
	Name string
	// Meaning is one sentence for the documentation.
	Meaning string
	Expr    string
	// Unit is the UCUM unit of the result.
	Unit string
}

// Severity is how urgent an alert is.
type Severity string

// The severities of alerts.
const (
	// Page means that users are harmed now, and a person must act at once.
	Page Severity = "page"
	// Ticket means that a person must act within days.
	Ticket Severity = "ticket"
)

// Alert is an alerting rule with all that there is about it: its runbook, the monitor for Datadog,
// and the stories that show it. Gaps names what is missing.
type Alert struct {
	// Name is CamelCase and begins with VLLM: VLLMPoolNotServing.
	Name     string
	Severity Severity
	Expr     string
	// For is how long the expression must hold before the alert fires.
	For time.Duration
	// KeepFiringFor is how long the alert stays after the expression stopped to hold.
	KeepFiringFor time.Duration
	// Summary is one line that names what is affected, as a template of Prometheus.
	Summary string
	// Description is what happens to users and what to do first, as a template. GroupsWith adds condition,
	// cause, numbers and since when where the alert is about servers, pools or objectives.
	Description string

	// Set is "stable" for the names of this project, "wire" for vLLM's own names.
	Set string

	// What follows is the runbook, in Markdown.

	// Meaning describes when the alert fires; Impact what users notice.
	Meaning, Impact string
	// Diagnosis are the steps to find the reason, in order.
	Diagnosis []Step
	// Mitigation are the actions, in order, each with what it does and what it costs.
	Mitigation []string
	// LooksTheSame describes other situations with the same symptoms.
	LooksTheSame string
	// NotConclude describes conclusions that the alert does not support.
	NotConclude string
	// CannotFire describes when the alert stays silent although it should fire.
	CannotFire string

	// Monitor is the counterpart for Datadog; NoMonitor is the reason why there is none.
	Monitor   *Monitor
	NoMonitor string
	// FiresIn has the stories in which it must fire, each with the servers that it must name; nil
	// where it names none, or all that the story harms. A story is a scenario of
	// examples/scenarios, or one of lab/test/content.
	FiresIn map[string][]string
	// ShownBy is the test that shows it instead of a story.
	ShownBy string
}

// Monitor is an alert for Datadog. Its query is not PromQL and cannot be translated from it; it has
// the names, tags and types that examples/backends/datadog.yaml sends.
type Monitor struct {
	// Query is the monitor's query. PARAMETER stands for the value of Parameter.
	Query string
	// Parameter is the parameter that the query compares with; empty if the query has a number.
	Parameter string
	// Text says what happens, with Datadog's template variables.
	Text string
	// FiresWithoutData is true where missing data is what it is about. Other monitors resolve: the
	// series of a server that ends are no data.
	FiresWithoutData bool
	// Differs is how the monitor differs from the alert; empty if it does not.
	Differs string
}

// Step is one step of a diagnosis.
type Step struct {
	Text string
	// Query is PromQL to paste, in the suffixed spelling; empty if there is none.
	Query string
	// Board and Panel name the panel that shows it; empty if there is none.
	Board, Panel string
}

// Board is a dashboard. It answers one question.
type Board struct {
	// UID is the stable identifier and the name of the file: "vllm-overview".
	UID, Title string
	// Question is what the board answers, as one sentence.
	Question  string
	Variables []Variable
	// Annotations are events that are marked in all pictures over time.
	Annotations []Annotation
	Rows        []Row
	// Set is "stable" for the names of this project, "wire" for vLLM's own names.
	Set string
}

// Annotation is a kind of event. Each series of the result is marked where it begins.
type Annotation struct {
	Name string
	// Expr has a value at the moments of the events only.
	Expr string
	// Text describes an event, with labels as {{label}}.
	Text  string
	Color Color
}

// Variable is a choice at the top of a board: of one value, of several or of all. Later variables depend
// on earlier ones.
type Variable struct {
	Name, Label string
	// Metric and LabelName say where the values come from: label_values(Metric, LabelName).
	// Metric may have matchers with earlier variables: vllm_up{k8s_namespace_name=~"$namespace"}.
	Metric, LabelName string
}

// Row is a row of panels.
type Row struct {
	Title     string
	Collapsed bool
	// Needs is what the panels of the row need, "--enable-lora" for example; it is part of
	// the title.
	Needs  string
	Panels []Panel
}

// Multiple is the Unit of a quotient that is no share: a plain number and not a percentage.
const Multiple = "{multiple}"

// PanelKind is the way that a panel draws.
type PanelKind string

// The kinds of panels that both Grafana and Perses have.
const (
	TimeSeries    PanelKind = "timeseries"
	Stat          PanelKind = "stat"
	Table         PanelKind = "table"
	StateTimeline PanelKind = "state-timeline"
)

// Panel is one picture.
type Panel struct {
	Title string
	Kind  PanelKind
	// Unit is a UCUM unit of the catalogue, or Multiple; builders translate it.
	Unit string
	// About is what the reader should know besides what the catalogue has about the metrics
	// of the queries ("does not see").
	About string
	// NoValue is the text that is shown without data, if the catalogue's "needs" do not say it.
	NoValue string
	Queries []Query
	// Width is of 24 columns; Height in rows of Grafana's grid.
	Width, Height int
	// Thresholds colour values only where they are a judgement.
	Thresholds []Threshold
	// Mappings replace values by words; the last resort for numbers that are codes.
	Mappings []Mapping
	// Stacked draws the series of a TimeSeries on top of each other: they add up to a whole.
	Stacked bool
	// Columns are the columns of a Table, in this order; other labels are not shown. The results of
	// several queries are joined: the labels that all of them have make a row, and each has one
	// series for it.
	Columns []Column
	// Links are other pages about the same thing.
	Links []Link
	// Repeat is the variable of which each chosen value has a panel of its own. Where that is
	// not possible, the values are in the names of the series.
	Repeat string
	// Min and Max are the limits of the axis; nil: automatic.
	Min, Max *float64
}

// Query is one query of a panel.
type Query struct {
	// Expr is PromQL in the suffixed spelling. $__rate_interval and $__range may be used as
	// durations, and variables as $name inside of matchers.
	Expr string
	// Legend is the name of a series, with labels as {{label}}.
	Legend string
	// Instant asks for the newest value only.
	Instant bool
	// FillTo is the Legend of another query: the area down to it is filled.
	FillTo string
	// AsThreshold draws the result as a limit.
	AsThreshold bool
}

// Threshold is a judgement about values from Value on.
type Threshold struct {
	Value float64
	Color Color
}

// Color is a judgement.
type Color string

// The colours. Green to red are severities; Grey is "nothing to judge", Blue is a notice.
const (
	Green  Color = "green"
	Orange Color = "orange"
	Red    Color = "red"
	Grey   Color = "grey"
	Blue   Color = "blue"
)

// Mapping shows a value as a word.
type Mapping struct {
	Value float64
	Text  string
	Color Color
}

// Column is a column of a table.
type Column struct {
	// Label is the label whose values are shown, or ValueColumn.
	Label string
	Title string
	// Query is the number of the query whose values a ValueColumn shows, in Unit; empty is that of the panel.
	Query int
	Unit  string
	// Width is in pixels, where Perses's equal widths would cut something off; 0 is automatic.
	Width int
	// Mappings colour values: numbers, or the texts of a label.
	Mappings []Mapping
	// Runbook makes each value a link to the runbook of that name.
	Runbook bool
	// Board is the UID of the board that each value links to, with the variable of the same
	// label set to it; empty if there is none.
	Board, Variable string
	// Descending orders the rows by this column, the highest value first.
	Descending bool
}

// ValueColumn is the Label of a column that has the values of a query.
const ValueColumn = "Value"

// Link is a link of a panel. Either Board or URL is set.
type Link struct {
	Title string
	// Board is the UID of another board; time and variables are kept.
	Board string
	URL   string
}
