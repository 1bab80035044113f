// Command figures prints how large the project is, by part, beside the budget of each figure. It
// ends with status 1 where a figure is beyond its budget: then something else has to go, or the
// budget is raised here, with a reason in the commit. Run it in the root of the repository.
//
// "figures exec FILE COMMAND" runs a test program and adds its processor time to the file.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The budgets are what is there, rounded up. The aims were 105,000 lines of Go, as many of tests, and
// 40,000 in what a collector runs. No dead code is left, so less means a whole part less, and each has
// somebody who uses it: lab/vllm, the judge and the measure of accuracy (15,000) are how anybody can tell
// whether a diagnosis is right; the simulator (16,000) is what they and "make run" play; backtest (6,000)
// judges alerts on a user's own history; the linter (8,500) found defects in boards that peers publish.

// A figure is what is counted in the files that a pattern matches.
// testPackage are packages that only tests import, inside a component.
var testPackage = regexp.MustCompile(`^(receiver|processor|connector|extension)/.*/internal/\w+test/`)

type figure struct {
	name   string
	files  *regexp.Regexp
	count  func(content []byte) int
	budget int
}

const (
	// components are the folders of what runs in a collector.
	components = `(receiver|processor|connector|extension)/`
	// product is what runs in a collector: the root module.
	product    = `(receiver|processor|connector|extension|internal)/`
	generators = `lab/(content|cmd/\w+gen)/`
)

// code are lines of Go that a person wrote, without tests; a file counts for the first that matches.
var code = []figure{
	{"receiver", regexp.MustCompile(`^receiver/`), written, 16_100},
	{"processor", regexp.MustCompile(`^processor/`), written, 25_060},
	{"connector and extensions", regexp.MustCompile(`^(connector|extension)/`), written, 4_350},
	{"support of components' tests", regexp.MustCompile(`^internal/test/`), written, 1_050},
	{"what components share", regexp.MustCompile(`^internal/`), written, 2_740},
	{"vllmctl", regexp.MustCompile(`^cmd/`), written, 31_760},
	{"generators and content", regexp.MustCompile(`^` + generators), written, 5_950},
	{"laboratory", regexp.MustCompile(`^lab/`), written, 57_000},
}

// tests are the same in files of tests.
var tests = []figure{
	{"tests of components", regexp.MustCompile(`^` + product), written, 70_900},
	{"other tests", regexp.MustCompile(``), written, 71_500},
}

// others are counted in files of all kinds; a file counts for each that matches.
var others = []figure{
	{"words of pages", regexp.MustCompile(`\.md$`), words, 118_800},
	{"words of pages that a person wrote", regexp.MustCompile(`\.md$`), byHand, 45_400},
	{"settings", regexp.MustCompile(`^docs/reference/configuration\.md$`), matches("(?m)^\\| `"), 108},
	{"modules that a collector with the components requires", regexp.MustCompile(`^go\.mod$`), matches(required), 158},
	{"modules that vllmctl requires", regexp.MustCompile(`^cmd/vllmctl/go\.mod$`), matches(required), 202},
	{"imports of cmd and lab by what a collector runs", regexp.MustCompile(`^` + product + `.*\.go$`), matches(ours + `(cmd|lab)/`), 0},
	{"imports of components by what they share", regexp.MustCompile(`^internal/.*\.go$`), matches(ours + components), 0},
	{"lines in content/", regexp.MustCompile(`^content/`), lines, 31_700},
	{"lines of examples", regexp.MustCompile(`^examples/`), lines, 11_370},
	{processorTime, regexp.MustCompile(`^` + timeFile + `$`), number, 520},
}

const (
	required = `(?m)^\t\S+ v\S+`
	ours     = `(?m)^\t(\w+ )?"github\.com/otelcol-vllm/otelcol-vllm/`
	// timeFile has the processor time of the last "make test".
	timeFile      = "build/test-seconds"
	processorTime = "seconds of processor time of make test"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "exec" {
		os.Exit(measured(os.Args[2], os.Args[3:]))
	}
	listed, err := exec.Command("git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "git ls-files:", err)
		os.Exit(1)
	}
	beyond := report(os.Stdout, count(append(strings.Fields(string(listed)), timeFile), os.ReadFile))
	if len(beyond) > 0 {
		fmt.Fprintln(os.Stderr, strings.Join(beyond, "\n")+
			"\nremove what has no user, or raise the budget in lab/test/house/figures/main.go and say why in the commit")
		os.Exit(1)
	}
}

// measured runs a test program, and adds its processor time to a file. Compiling and linking do not count.
func measured(file string, command []string) (status int) {
	c := exec.Command(command[0], command[1:]...) //nolint:gosec // the command is the test program that "go test" built
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	to, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(to, "%.3f\n", (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
		err = errors.Join(err, to.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return c.ProcessState.ExitCode()
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
		for _, f := range others {
			if f.files.MatchString(file) {
				counted[f.name] += f.count(content)
			}
		}
		of := code
		if strings.HasSuffix(file, "_test.go") || testPackage.MatchString(file) {
			of = tests
		}
		first := slices.IndexFunc(of, func(f figure) bool { return f.files.MatchString(file) })
		if strings.HasSuffix(file, ".go") && first >= 0 {
			counted[of[first].name] += of[first].count(content)
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

var (
	generatedPage = regexp.MustCompile(`^(<!-- |\[comment\]: <> \()(Code generated|Written) by `)
	generatedPart = regexp.MustCompile(`(?s)<!-- [^>]*(begin|autogenerated section) -->.*?<!-- (end [^>]*|[^>]*end) -->`)
)

// byHand is the number of words of a page outside what is generated.
func byHand(content []byte) int {
	if generatedPage.Match(content) {
		return 0
	}
	return words(generatedPart.ReplaceAll(content, nil))
}

// number is the sum of the numbers of a file.
func number(content []byte) int {
	sum := 0.0
	for text := range strings.FieldsSeq(string(content)) {
		n, _ := strconv.ParseFloat(text, 64)
		sum += n
	}
	return int(math.Round(sum))
}

func matches(pattern string) func([]byte) int {
	compiled := regexp.MustCompile(pattern)
	return func(content []byte) int { return len(compiled.FindAll(content, -1)) }
}
