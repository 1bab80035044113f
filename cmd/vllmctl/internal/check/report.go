package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// Report is the result of a check, and the document of --json.
type Report struct {
	// Version is the version of this format.
	Version int `json:"version"`
	// Status is the exit status of the command.
	Status int `json:"status"`
	// Problems is how many findings are problems.
	Problems int `json:"problems"`
	// Warnings is how many findings are warnings.
	Warnings int `json:"warnings"`
	// Infos is how many findings are infos.
	Infos int `json:"infos"`
	// Seconds is how long the check took.
	Seconds float64 `json:"seconds"`
	// Targets are the servers, in the order of the command line or of the configuration.
	Targets []Target `json:"targets"`
	// Findings are about the configuration, its exporters, queues and permissions.
	Findings []Finding `json:"findings"`
	// Passes are what was found in order about the configuration.
	Passes []Pass `json:"passes,omitempty"`
	// Sent is what each exporter will send, with `--config`.
	Sent []Sent `json:"sent,omitempty"`
	// Paste is a configuration of the collector in YAML, for those targets that answered with
	// metrics of vLLM or of a gateway.
	Paste string `json:"configuration,omitempty"`

	// pasted is the number of targets in Paste.
	pasted int
	// configured is true for a check of a configuration with the receiver vllm.
	configured bool
}

// Target is one server.
type Target struct {
	// Name is host and port, and the path if it is not /metrics.
	Name string `json:"name"`
	// Receiver is the receiver that the target belongs to; absent without a configuration.
	Receiver string `json:"receiver,omitempty"`
	// Outcome is "ok", the kind of failure of the first scrape, or "failed" or "not_asked" where
	// no request was sent.
	Outcome string `json:"outcome"`
	// Version is the version that the server reports; absent without one.
	Version string `json:"server_version,omitempty"`
	// Kind is "vllm", "gateway", "lora_syncer", "router", "simulator", "accelerator", "lmcache" or "unknown".
	Kind string `json:"kind"`
	// Engine is "python", "rust" or "v0"; absent where it is not known.
	Engine string `json:"engine,omitempty"`
	// Series is the number of series that the receiver emits; a histogram counts as one.
	Series int `json:"series"`
	// Added is the number of series that the processor adds.
	Added int `json:"added_series"`
	// Findings are what was found, the most serious first within a category.
	Findings []Finding `json:"findings"`
	// Passes are what was found in order.
	Passes []Pass `json:"passes,omitempty"`
	// Derived are the metrics that the processor can compute, each with whether it will exist.
	Derived []Derived `json:"derived,omitempty"`
	// Missing are the metrics of the catalogue that this server does not have, each with a
	// reason.
	Missing []Missing `json:"missing,omitempty"`

	names names
}

// Finding is something that is wrong or worth knowing.
type Finding struct {
	// Code is the stable name of the kind of finding.
	Code string `json:"code"`
	// Category is the part of the check: connection, body, server, metrics, objectives,
	// configuration, exporters, queue or kubernetes.
	Category string `json:"category"`
	// Severity is problem, warning or info.
	Severity string `json:"severity"`
	// What is one sentence: what is wrong.
	What string `json:"what"`
	// Do is what to do about it.
	Do string `json:"do"`
	// Details are names or lines that belong to it; absent for most findings.
	Details []string `json:"details,omitempty"`
	// Link is the address of the documentation of the code.
	Link string `json:"link"`
}

// Pass is something that was found in order.
type Pass struct {
	// Category is the part of the check.
	Category string `json:"category"`
	// Text is what was found.
	Text string `json:"text"`
}

// Derived is one metric that the processor can compute.
type Derived struct {
	// Name is the name of the metric.
	Name string `json:"name"`
	// State is "exists", "idle" (its inputs are there, and no request moved them), "missing"
	// (an input is not there), "setting" (it needs a setting of the processor) or "feature"
	// (it needs a feature of the server that is not in use).
	State string `json:"state"`
	// Why is the reason; absent for a metric that exists.
	Why string `json:"why,omitempty"`
}

// Missing is one metric that a server does not have.
type Missing struct {
	// Name is the name of the metric.
	Name string `json:"name"`
	// Family is the newest family on the wire that the metric is read from.
	Family string `json:"family"`
	// Reason is version, recent (the version is near the first one that has it), removed, flag,
	// role, idle, type, limit, off (in the configuration), unreleased or unknown.
	Reason string `json:"reason"`
	// Why is the reason in words.
	Why string `json:"why"`
}

// findings collects what is found.
type findings struct {
	found  []Finding
	passed []Pass
}

// mostDetails is how many details a finding has at most.
const mostDetails = 500

// add adds a finding. What is a whole sentence; its arguments can be text of a server.
func (f *findings) add(name, what string, details ...string) {
	code := codeOf(name)
	finding := Finding{
		Code: name, Category: code.Category, Severity: code.Severity, Do: code.Do,
		What: printable(what), Link: reference.Link("check", name),
	}
	for i, d := range details {
		if i == mostDetails {
			finding.Details = append(finding.Details, fmt.Sprintf("and %d more", len(details)-i))
			break
		}
		finding.Details = append(finding.Details, printable(d))
	}
	f.found = append(f.found, finding)
}

// mostText is how many characters a sentence or a detail has at most.
const mostText = 1000

// pass records something that is in order.
func (f *findings) pass(category, format string, args ...any) {
	f.passed = append(f.passed, Pass{category, printable(fmt.Sprintf(format, args...))})
}

// has reports whether there is a finding of a code.
func (f *findings) has(codes ...string) bool {
	return slices.ContainsFunc(f.found, func(x Finding) bool { return slices.Contains(codes, x.Code) })
}

// sorted returns the findings by category, the most serious first.
func (f *findings) sorted() []Finding {
	rank := func(x Finding) int {
		severity := slices.Index([]string{Problem, Warning, Info}, x.Severity)
		return slices.Index(Categories(), x.Category)*len(codes) + severity
	}
	slices.SortStableFunc(f.found, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
	if f.found == nil {
		return []Finding{}
	}
	return f.found
}

// finish counts the findings and sets the status.
func (r *Report) finish(strict bool) {
	r.Version = 1
	r.Problems, r.Warnings, r.Infos = 0, 0, 0
	for _, f := range r.all() {
		switch f.Severity {
		case Problem:
			r.Problems++
		case Warning:
			r.Warnings++
		default:
			r.Infos++
		}
	}
	r.Status = int(status.OK)
	switch {
	case r.Problems > 0:
		r.Status = int(status.Problem)
	case strict && r.Warnings > 0:
		r.Status = int(status.Warning)
	}
}

// all returns the findings of the targets and of the configuration.
func (r *Report) all() []Finding {
	out := slices.Clone(r.Findings)
	for i := range r.Targets {
		out = append(out, r.Targets[i].Findings...)
	}
	return out
}

// printable returns text of a server as one printable line of a bounded length.
func printable(text string) string { return plain.Text(text, mostText) }
