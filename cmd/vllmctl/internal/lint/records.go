package lint

import (
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// records are the recording rules of all files by name, and for each name by file.
type records map[string][]fileRecords

type fileRecords struct {
	of    *loaded
	rules []*format.Expression
}

func recordsOf(all []*loaded) records {
	r := records{}
	for _, one := range all {
		for _, e := range one.content.Expressions {
			name := e.Context.Name
			if e.Context.Kind != querylint.Record || name == "" {
				continue
			}
			files := r[name]
			if n := len(files); n > 0 && files[n-1].of == one {
				files[n-1].rules = append(files[n-1].rules, e)
				continue
			}
			r[name] = append(files, fileRecords{one, []*format.Expression{e}})
		}
	}
	return r
}

// named returns the rules of a name that a file uses: its own, and otherwise those of the
// first file that has some. The same rules can be there once for each way of installation.
func (r records) named(name string, in *loaded) []*format.Expression {
	files := r[name]
	for _, f := range files {
		if f.of == in {
			return f.rules
		}
	}
	if len(files) > 0 {
		return files[0].rules
	}
	return nil
}

// maxChain is the number of recording rules that use each other.
const maxChain = 100

// usedBy returns the rules that the expressions of a file use, each after those that it uses
// itself.
func (r records) usedBy(one *loaded) []*format.Expression {
	var sorted []*format.Expression
	visited := map[*format.Expression]bool{}
	var visit func(expr string, depth int)
	visit = func(expr string, depth int) {
		if depth > maxChain {
			return
		}
		for _, name := range namesIn(expr) {
			for _, e := range r.named(name, one) {
				if !visited[e] {
					visited[e] = true
					visit(e.Text(), depth+1)
					sorted = append(sorted, e)
				}
			}
		}
	}
	for _, e := range one.content.Expressions {
		visit(e.Text(), 0)
	}
	return sorted
}
