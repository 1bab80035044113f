package lint

import (
	"io"
	"net/url"
	"path/filepath"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

type object = map[string]any

// SARIF writes the findings in the format of OASIS SARIF 2.1.0, which GitHub, GitLab and Azure show beside
// the lines of a change. Findings whose replacement was written are left out. version is that of the program.
func (r *Report) SARIF(w io.Writer, version string) error {
	rules := []object{}
	for _, rule := range Rules() {
		rules = append(rules, object{"id": rule.Code, "shortDescription": object{"text": rule.Finds}, "help": object{"text": rule.Remedy}})
	}
	results, problems := []object{}, []object{}
	problem := func(text string, where ...object) {
		problems = append(problems, object{"level": "error", "message": object{"text": text}, "locations": append([]object{}, where...)})
	}
	if r.Failure != "" {
		problem("The comparison is incomplete: " + r.Failure)
	}
	for i := range r.Files {
		f := &r.Files[i]
		if f.Error != "" {
			problem(f.Error, location(f, nil))
		}
		for j := range f.Findings {
			x := &f.Findings[j]
			if x.Fixed {
				continue
			}
			level := map[querylint.Severity]string{querylint.Error: "error", querylint.Warning: "warning"}[x.Severity]
			if level == "" {
				level = "note"
			}
			results = append(results, object{
				"ruleId": x.Code, "level": level, "message": object{"text": named(x.Path) + x.Message}, "locations": []object{location(f, x)},
			})
		}
	}
	return plain.JSON(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":        object{"driver": object{"name": "vllmctl lint", "version": version, "informationUri": "https://github.com/otelcol-vllm/otelcol-vllm", "rules": rules}},
			"columnKind":  "unicodeCodePoints",
			"invocations": []object{{"executionSuccessful": len(problems) == 0, "toolExecutionNotifications": problems}},
			"results":     results,
		}},
	})
}

// named is a path before a message.
func named(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// location is a place in a file; without a finding, the file.
func location(f *File, x *Finding) object {
	address := url.URL{Path: filepath.ToSlash(f.Name)}
	place := object{"artifactLocation": object{"uri": address.String()}}
	if x != nil {
		place["region"] = object{"startLine": x.Line, "startColumn": x.Column, "endLine": x.EndLine, "endColumn": x.EndColumn}
	}
	return object{"physicalLocation": place}
}
