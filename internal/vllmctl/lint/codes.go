package lint

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/promlint"
)

// The codes of findings that are not about an expression alone.
const (
	CodeFormat      promlint.Code = "format"
	CodeSuppression promlint.Code = "suppression"
)

var own = []promlint.Rule{
	{Code: CodeFormat, Finds: "Prometheus refuses the rule: a field is missing, is not allowed there, or has a wrong form."},
	{Code: CodeSuppression, Finds: "A comment disables a code that does not exist."},
}

// Rules returns all codes that a check can report, in the order of the documentation.
func Rules() []promlint.Rule { return slices.Concat(promlint.Rules(), own) }

// Known reports whether a code exists.
func Known(code promlint.Code) bool {
	return slices.ContainsFunc(Rules(), func(r promlint.Rule) bool { return r.Code == code })
}
