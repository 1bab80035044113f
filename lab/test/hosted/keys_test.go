package hosted

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// The keys that a workflow, a job and a step may have. With others, such as continue-on-error, shell,
// defaults, container or an env of a whole job, a step can pass although its command fails, or run
// something else than what is written.
var (
	workflowKeys = []string{"name", "on", "permissions", "concurrency", "jobs"}
	jobKeys      = []string{"runs-on", "timeout-minutes", "permissions", "needs", "environment", "steps"}
	stepKeys     = []string{"name", "uses", "with", "run", "if", "env"}
)

// strange finds keys that change how a command runs or whether its failure counts.
func (w *workflow) strange() []string {
	var tree struct {
		Top  map[string]yaml.Node `yaml:",inline"`
		Jobs map[string]struct {
			Keys  map[string]yaml.Node `yaml:",inline"`
			Steps []map[string]yaml.Node
		}
	}
	if err := yaml.Unmarshal([]byte(w.text), &tree); err != nil {
		return []string{err.Error()}
	}
	out := others("workflow", tree.Top, workflowKeys)
	for id, j := range tree.Jobs {
		out = append(out, others("job "+id, j.Keys, jobKeys)...)
		for _, s := range j.Steps {
			out = append(out, others("a step of "+id, s, stepKeys)...)
		}
	}
	for id, j := range w.Jobs {
		for _, s := range j.Steps {
			if s.If != "" && s.Run != "" {
				out = append(out, "job "+id+": a command with an if, which can leave it out: "+s.Run)
			}
			for name, value := range s.Env {
				if name != "GH_TOKEN" || value != "${{ github.token }}" || s.Run != "make release-publish" {
					out = append(out, "job "+id+": sets "+name+" for "+s.Run+s.Uses)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func others(place string, has map[string]yaml.Node, known []string) []string {
	var out []string
	for key := range has {
		if !slices.Contains(known, key) {
			out = append(out, place+" has the key "+key)
		}
	}
	return out
}
