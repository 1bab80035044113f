package lint_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// codes are those of all findings of a report.
func codes(r *lint.Report) []string {
	var all []string
	for i := range r.Files {
		for _, x := range r.Files[i].Findings {
			all = append(all, string(x.Code))
		}
	}
	return all
}

func TestCommentsSuppressFindings(t *testing.T) {
	const which = "counter-without-rate"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no comment":           {"groups:\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", []string{which, which}},
		"above the rule":       {"groups:\n- name: a\n  rules:\n  # vllmctl-lint: disable=counter-without-rate counts since the start on purpose\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", []string{which}},
		"in the rule":          {"groups:\n- name: a\n  rules:\n  - record: a:b\n    # vllmctl-lint: disable=counter-without-rate\n    expr: sum(vllm:prompt_tokens_total)\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", []string{which}},
		"behind the rule":      {"groups:\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total) # vllmctl-lint: disable=counter-without-rate\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", []string{which}},
		"above the group":      {"groups:\n# vllmctl-lint: disable=counter-without-rate\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n- name: b\n  rules:\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", []string{which}},
		"above the file":       {"# vllmctl-lint: disable=counter-without-rate,needs-flag all of it\ngroups:\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n  - record: a:c\n    expr: sum(vllm:generation_tokens_total)\n", nil},
		"another code":         {"# vllmctl-lint: disable=le-format\ngroups:\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n", []string{which}},
		"no code":              {"groups:\n- name: a\n  rules:\n  # vllmctl-lint: disable=no-such-code\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n", []string{"suppression", which}},
		"in a block":           {"groups:\n- name: a\n  rules:\n  - record: a:b\n    expr: |\n      # vllmctl-lint: disable=counter-without-rate\n      sum(vllm:prompt_tokens_total)\n", nil},
		"in JSON":              {`{"title": "b", "panels": [{"type": "stat", "targets": [{"expr": "sum(vllm:prompt_tokens_total) # vllmctl-lint: disable=counter-without-rate"}]}]}`, nil},
		"in an inner document": {"apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml: |\n    # vllmctl-lint: disable=counter-without-rate\n    groups:\n    - name: a\n      rules:\n      - record: a:b\n        expr: sum(vllm:prompt_tokens_total)\n", nil},
	} {
		report := check(t, "a.yaml", c.text, lint.Options{})
		assert.ElementsMatch(t, c.want, codes(report), name)
	}
	report := check(t, "a.yaml", "groups:\n- name: a\n  rules:\n  - record: a:b\n    expr: sum(vllm:prompt_tokens_total)\n", lint.Options{Disable: []querylint.Code{querylint.CodeCounterWithoutRate}})
	assert.Empty(t, codes(report))
	assert.Equal(t, 1, report.Summary.Suppressed)
}

func TestEachCodeHasASentenceAndARemedy(t *testing.T) {
	seen := map[querylint.Code]bool{}
	for _, r := range lint.Rules() {
		assert.False(t, seen[r.Code], r.Code)
		seen[r.Code] = true
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, string(r.Code))
		assert.Regexp(t, `^["A-Z\x60].*\.$`, r.Finds, r.Code)
		assert.Regexp(t, `^[A-Z].*\.$`, r.Remedy, r.Code)
		assert.True(t, lint.Known(r.Code))
	}
	assert.False(t, lint.Known("no-such-code"))
}
