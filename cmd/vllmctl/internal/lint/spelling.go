package lint

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// usual returns the spelling that fits the names of most metrics in a file. A name that is
// right in several spellings counts for each; if two fit equally, the default one of
// Prometheus wins.
func usual(all []*format.Expression) querylint.Spelling {
	names := map[string]bool{}
	for _, e := range all {
		for _, name := range namesIn(e.Text()) {
			names[name] = true
		}
	}
	return fitting(names, querylint.Suffixed)
}

// fitting returns the spelling of most names, and otherwise the given one.
func fitting(names map[string]bool, otherwise querylint.Spelling) querylint.Spelling {
	best, most := otherwise, score(names, otherwise)
	for _, s := range querylint.Spellings() {
		if n := score(names, s); n > most {
			best, most = s, n
		}
	}
	return best
}

func score(names map[string]bool, s querylint.Spelling) int {
	n := 0
	for name := range names {
		if s.Knows(name) {
			n++
		}
	}
	return n
}

func namesIn(expr string) []string {
	selectors, err := querylint.Selectors(expr)
	if err != nil {
		return nil
	}
	var all []string
	for _, s := range selectors {
		if s.Name != "" {
			all = append(all, s.Name)
		}
	}
	return all
}

// spellingOf returns the spelling of an expression: a colon after vllm and a name with dots
// say it, and otherwise it is that of its file.
func (c *checker) spellingOf(one *loaded, expr string) querylint.Spelling {
	if c.options.Spelling != "" {
		return c.options.Spelling
	}
	names := map[string]bool{}
	wire, dotted := false, false
	for _, name := range namesIn(expr) {
		names[name] = true
		wire = wire || strings.Contains(name, "vllm:") || querylint.Wire.Knows(name) && !querylint.Suffixed.Knows(name) && !querylint.Unsuffixed.Knows(name)
		dotted = dotted || strings.HasPrefix(name, "vllm.") || querylint.Dotted.Knows(name) && strings.Contains(name, ".")
	}
	switch {
	case wire && !dotted:
		return querylint.Wire
	case dotted:
		return querylint.Dotted
	case score(names, one.spelling) == len(names):
		return one.spelling
	}
	if fits := fitting(names, one.spelling); fits != querylint.Unsuffixed {
		return fits
	}
	// A name without _total in a file that has names with it is a mistake.
	return one.spelling
}
