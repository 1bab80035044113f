// Package datadog writes monitors and a dashboard for Datadog. Its queries are not PromQL
// and cannot be translated from it, so they are written by hand: those of monitors with their
// alert, those of the dashboard here.
package datadog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

const (
	dir = "content/datadog/"
	// managed is the tag of all that is from here.
	managed = "managed_by:otelcol-vllm"
)

// Files returns the monitors, the dashboard and the SLO by their paths below the root of the
// repository.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	put := func(name string, value any) error {
		data, err := document(value)
		files[dir+name] = data
		return err
	}
	for _, a := range monitored() {
		made, err := build(&a)
		if err != nil {
			return nil, err
		}
		if err := put("monitors/"+a.Name+".json", made); err != nil {
			return nil, err
		}
	}
	if err := put("dashboard.json", dashboard()); err != nil {
		return nil, err
	}
	return files, put("slo.json", objective())
}

// Parts returns the generated part of the README: which alert has which monitor.
func Parts() map[string]map[string]string {
	var table strings.Builder
	table.WriteString("| Alert | Monitor needs | Difference or reason |\n|---|---|---|\n")
	for _, a := range stableAlerts() {
		if a.Monitor != nil {
			fmt.Fprintf(&table, "| [%[1]s](monitors/%[1]s.json) | %s | %s |\n", a.Name, needs(a.Monitor.Query), a.Monitor.Differs)
			continue
		}
		fmt.Fprintf(&table, "| %s | no monitor | %s |\n", a.Name, a.NoMonitor)
	}
	return map[string]map[string]string{dir + "README.md": {"monitors": table.String()}}
}

// needs says what must be configured besides the example, so that the monitor has data; empty
// if nothing must.
func needs(query string) string {
	for _, need := range []struct{ metric, says string }{
		{"vllm.pool.", "[pools](#pools)"},
		{"vllm.slo.", "[objectives](#objectives)"},
		{"vllm.accelerator.", "[GPUs](#gpus-and-gateways)"},
		{"cause:slow_steps", "[GPUs](#gpus-and-gateways)"},
		{"inference_gateway.", "[a gateway](#gpus-and-gateways)"},
	} {
		if strings.Contains(query, need.metric) {
			return need.says
		}
	}
	return ""
}

// stableAlerts are the alerts that a monitor can be about. The example does not send
// vLLM's own names.
func stableAlerts() (alerts []content.Alert) {
	for _, g := range content.Groups() {
		if g.Set == content.Stable {
			alerts = append(alerts, g.Alerts...)
		}
	}
	return alerts
}

// monitored are the alerts with a monitor.
func monitored() []content.Alert {
	return slices.DeleteFunc(stableAlerts(), func(a content.Alert) bool { return a.Monitor == nil })
}

// document writes JSON as it is imported, with "<" and ">" as they are.
func document(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// What follows is the format of Datadog's API, as far as it is used here.

type monitorFile struct {
	Name     string         `json:"name"`
	Type     string         `json:"type"`
	Query    string         `json:"query"`
	Message  string         `json:"message"`
	Tags     []string       `json:"tags"`
	Priority int            `json:"priority"`
	Options  monitorOptions `json:"options"`
	Assets   []asset        `json:"assets"`
}

type monitorOptions struct {
	Thresholds        thresholds `json:"thresholds"`
	OnMissingData     string     `json:"on_missing_data"`
	RequireFullWindow bool       `json:"require_full_window"`
	IncludeTags       bool       `json:"include_tags"`
}

type thresholds struct {
	Critical float64 `json:"critical"`
}

type asset struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Category string `json:"category"`
}

// What Datadog does without data.
const (
	resolve = "resolve"
	notify  = "show_and_notify_no_data"
)

// build returns the monitor of an alert as the API takes it.
func build(alert *content.Alert) (monitorFile, error) {
	query, err := query(alert)
	if err != nil {
		return monitorFile{}, err
	}
	words := strings.Fields(query)
	critical, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		return monitorFile{}, fmt.Errorf("%s: the query of the monitor does not end with a number: %w", alert.Name, err)
	}
	priority, missing := 3, resolve
	if alert.Severity == content.Page {
		priority = 1
	}
	if alert.Monitor.FiresWithoutData {
		missing = notify
	}
	runbook := alert.RunbookURL()
	return monitorFile{
		Name: alert.Name, Type: "query alert", Query: query, Priority: priority,
		Message: alert.Monitor.Text + "\n\nRunbook: " + runbook,
		Tags:    []string{"severity:" + string(alert.Severity), managed},
		Options: monitorOptions{Thresholds: thresholds{critical}, OnMissingData: missing, IncludeTags: true},
		Assets:  []asset{{"Runbook", runbook, "runbook"}},
	}, nil
}

// query is the query of the monitor with the value of the parameter.
func query(alert *content.Alert) (string, error) {
	m := alert.Monitor
	if m.Parameter == "" {
		return m.Query, nil
	}
	for _, p := range content.Parameters() {
		if p.Name == m.Parameter {
			return strings.Replace(m.Query, "PARAMETER", strconv.FormatFloat(p.Value, 'f', -1, 64), 1), nil
		}
	}
	return "", fmt.Errorf("%s: the monitor compares with %s, which is none of the parameters", alert.Name, m.Parameter)
}

// The SLO is over all servers of the models with an objective. Undecided events count as good,
// as in the alerts: what is used of the budget is certain.
const (
	ofObjective = "{objective:ttft} by {model_name}.as_count()"
	numerator   = "sum:vllm.slo.good" + ofObjective + " + sum:vllm.slo.undecided" + ofObjective
	denominator = "sum:vllm.slo.valid" + ofObjective
)

type sloFile struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Type        string      `json:"type"`
	Query       sloQuery    `json:"query"`
	Thresholds  []sloTarget `json:"thresholds"`
	Tags        []string    `json:"tags"`
}

type sloQuery struct {
	Numerator   string `json:"numerator"`
	Denominator string `json:"denominator"`
}

type sloTarget struct {
	Timeframe string  `json:"timeframe"`
	Target    float64 `json:"target"`
}

func objective() sloFile {
	return sloFile{
		Name: "vLLM objective ttft", Type: "metric",
		Description: "Requests within the threshold of the objective ttft. Write the name of your objective and its target.",
		Query:       sloQuery{numerator, denominator},
		Thresholds:  []sloTarget{{"30d", 95}},
		Tags:        []string{managed},
	}
}
