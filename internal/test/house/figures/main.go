// Command figures prints how large the project is, by part, beside the budget of each figure. It
// ends with status 1 where a figure is beyond its budget: then something else has to go, or the
// budget is raised here, with a reason in the commit. Run it in the root of the repository.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"text/tabwriter"
)

// The budgets are what is there, rounded up. The aim is 105,000 lines of Go and as many of tests.

// A figure is what is counted in the files that a pattern matches.
// testPackage are packages that only tests import, inside a component.
var testPackage = regexp.MustCompile(`/internal/\w+test/`)

type figure struct {
	name   string
	files  *regexp.Regexp
	count  func(content []byte) int
	budget int
}

const (
	// components are the folders of what runs in a collector, shared is what they have in common.
	components = `(receiver|processor|connector|extension)/`
	shared     = `internal/(catalog|defectlog|distribution|ending|identity|settings|version|wording)/`
	laboratory = `(lab|internal/(vllmsim|judge|test)|cmd/(vllmsim|demo))/`
	generators = `(cmd/\w+gen|internal/(content|pageparts))/`
)

// code are lines of Go that a person wrote, without tests; a file counts for the first that matches.
var code = []figure{
	{"components", regexp.MustCompile(`^` + components), written, 44_450},
	{"what components share", regexp.MustCompile(`^` + shared), written, 1_900},
	{"laboratory", regexp.MustCompile(`^` + laboratory), written, 53_500},
	{"generators and content", regexp.MustCompile(`^` + generators), written, 10_050},
	{"vllmctl", regexp.MustCompile(``), written, 24_900},
}

// tests are the same in files of tests.
var tests = []figure{
	{"tests of components", regexp.MustCompile(`^(` + components + `|` + shared + `)`), written, 63_200},
	{"other tests", regexp.MustCompile(``), written, 59_600},
}

// others are not Go; a file counts for each that matches.
var others = []figure{
	{"words of docs", regexp.MustCompile(`^(docs/.*|[A-Z]+)\.md$`), words, 209_500},
	{"words of components' pages", regexp.MustCompile(`^` + components + `.*\.md$`), words, 59_300},
	{"settings", regexp.MustCompile(`^docs/reference/configuration\.md$`), matches("(?m)^\\| `"), 99},
	{"modules in go.mod", regexp.MustCompile(`^go\.mod$`), matches(`(?m)^\t\S+ v\S+`), 248},
	{"lines in content/", regexp.MustCompile(`^content/`), lines, 32_500},
	{"lines of examples", regexp.MustCompile(`^examples/`), lines, 10_000},
}

func main() {
	listed, err := exec.Command("git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "git ls-files:", err)
		os.Exit(1)
	}
	beyond := report(os.Stdout, count(strings.Fields(string(listed)), os.ReadFile))
	if len(beyond) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(beyond, "\n")+
			"\nremove what has no user, or raise the budget in internal/test/house/figures/main.go and say why in the commit")
		os.Exit(1)
	}
}

// report writes a table, and returns what is beyond its budget.
func report(to io.Writer, counted map[string]int) (beyond []string) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n, budget int) {
		fmt.Fprintf(w, "%d\tof\t%d\t  %s\n", n, budget, name)
	}
	for _, kind := range []struct {
		sum     string
		figures []figure
	}{{"lines of Go in all", code}, {"lines of tests in all", tests}, {"", others}} {
		n, budget := 0, 0
		for _, f := range kind.figures {
			row(f.name, counted[f.name], f.budget)
			n, budget = n+counted[f.name], budget+f.budget
			if counted[f.name] > f.budget {
				beyond = append(beyond, fmt.Sprintf("%s: %d, which is %d beyond the budget", f.name, counted[f.name], counted[f.name]-f.budget))
			}
		}
		if kind.sum != "" {
			row(kind.sum, n, budget)
		}
	}
	_ = w.Flush()
	return beyond
}

// count counts all figures by name. A file that was removed and is not yet committed is left out.
func count(files []string, read func(string) ([]byte, error)) map[string]int {
	counted := map[string]int{}
	for _, file := range files {
		content, err := read(file)
		if err != nil {
			continue
		}
		of, several := others, true
		if strings.HasSuffix(file, "_test.go") || testPackage.MatchString(file) {
			of, several = tests, false
		} else if strings.HasSuffix(file, ".go") {
			of, several = code, false
		}
		for _, f := range of {
			if !f.files.MatchString(file) {
				continue
			}
			counted[f.name] += f.count(content)
			if !several {
				break
			}
		}
	}
	return counted
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// written is the number of lines of a file that a person wrote.
func written(content []byte) int {
	if generated.Match(content) {
		return 0
	}
	return lines(content)
}

func lines(content []byte) int { return bytes.Count(content, []byte("\n")) }

func words(content []byte) int { return len(bytes.Fields(content)) }

func matches(pattern string) func([]byte) int {
	compiled := regexp.MustCompile(pattern)
	return func(content []byte) int { return len(compiled.FindAll(content, -1)) }
}
