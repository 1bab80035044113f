package lint

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// The codes of findings that are not about an expression alone.
const (
	CodeFormat      querylint.Code = "format"
	CodeSuppression querylint.Code = "suppression"
	CodeVanishing   querylint.Code = "vanishing-variable"
)

var own = []querylint.Rule{
	{
		Code: CodeVanishing, Finds: "A panel for `up` uses a variable whose values disappear with the server.",
		Remedy: "Take the values of the variable from `up`, or set its value for all to `.*`.",
	},
	{
		Code: CodeFormat, Finds: "Prometheus rejects the rule, or a text in a ConfigMap is unreadable.",
		Remedy: "The message says what is missing or wrong.",
	},
	{
		Code: CodeSuppression, Finds: "A comment disables a code that does not exist.",
		Remedy: "Correct the code, or remove the comment.",
	},
}

// Rules returns all codes that a check can report, in the order of the documentation.
func Rules() []querylint.Rule { return slices.Concat(querylint.Rules(), own, live.Rules()) }

// Known reports whether a code exists.
func Known(code querylint.Code) bool {
	return slices.ContainsFunc(Rules(), func(r querylint.Rule) bool { return r.Code == code })
}
