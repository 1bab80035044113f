package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const smallDecisions = `groups:
  goals: [vllm.slo.good, vllm.slo.valid]
decisions:
  - of: [vllm.success_rate, goals]
    defects: [too-big, too-many]
    decision: corrected
    how: "It is divided | halved."
    test: internal/catalog TestHalves
  - of: ["signal:heat", "rule:idle"]
    defects: [too-big]
    decision: withheld
    how: "It has no value."
    test: internal/catalog TestHeat/too-big
`

// knownDefects returns the small catalogue, diagnosis and defects.
func knownDefects(t *testing.T) *knowledge {
	t.Helper()
	doc := diagnosedCatalogue(t)
	g, err := parseDiagnosis([]byte(smallDiagnosis), doc)
	require.NoError(t, err)
	l, err := parseDefects([]byte(smallDefects), doc)
	require.NoError(t, err)
	return &knowledge{catalogue: doc, diagnosed: g, defects: l}
}

func TestADecisionConcernsThePairsThatMeet(t *testing.T) {
	k := knownDefects(t)
	l, err := parseDecisions([]byte(smallDecisions), k)
	require.NoError(t, err)
	assert.Equal(t, []pair{
		{"vllm.success_rate", "too-big"},
		{"vllm.success_rate", "too-many"},
		{"vllm.slo.good", "too-many"},
		{"vllm.slo.valid", "too-many"},
	}, k.meeting(l.Decisions[0]), "no goal is computed from blocks")
	assert.Equal(t, []pair{
		{"vllm.slo.good", "too-new"},
		{"vllm.slo.valid", "too-new"},
		{"vllm.success_rate", "too-new"},
		{"signal:heat", "too-new"},
		{"signal:smoke", "too-big"},
		{"signal:smoke", "too-many"},
		{"signal:smoke", "too-new"},
	}, k.undecided(l), "smoke is computed from heat and a goal")

	source, err := goDecisions(l)
	require.NoError(t, err)
	// Programs look up signals; the rest is for the page.
	assert.Contains(t, string(source), `var decisions = []Decision{
	{Of: []string{"signal:heat"}, Defects: []DefectID{DefectTooBig}, Verdict: "withheld"},
}`)
}

// A metric like others is decided with them; what has a row of its own, or an earlier one of the
// others decides, stays.
func TestAMetricCanBeDecidedAsOthers(t *testing.T) {
	k := knownDefects(t)
	valid := k.catalogue.Metrics["vllm.slo.valid"]
	valid.DecidedAs = []string{"vllm.slo.good", "vllm.success_rate"}
	k.catalogue.Metrics["vllm.slo.valid"] = valid
	l, err := parseDecisions([]byte(strings.Replace(smallDecisions, "vllm.slo.good, vllm.slo.valid", "vllm.slo.good", 1)), k)
	require.NoError(t, err)
	require.Len(t, l.Decisions, 3, "too-many, as good; success_rate says the same, and too-new is open")
	assert.Equal(t, decision{
		Of: []string{"vllm.slo.valid"}, Defects: []string{"too-many"}, Decision: "corrected", How: "It is divided | halved.", Test: "internal/catalog TestHalves",
	}, l.Decisions[2])
	assert.Contains(t, k.undecided(l), pair{"vllm.slo.valid", "too-new"})
	own, err := parseDecisions([]byte(smallDecisions), k)
	require.NoError(t, err)
	assert.Len(t, own.Decisions, 2, "the row of its own is enough")
}

func TestAGatewayHasNoDefectOfAServer(t *testing.T) {
	all := &defect{Metrics: []string{"*"}}
	assert.True(t, all.concerns("vllm.request.success"))
	assert.True(t, all.concerns("http_requests"))
	assert.False(t, all.concerns("inference_gateway.epp.requests"))
}

func TestMistakesInTheDecisionsAreReported(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, want string }{
		"unknown key":         {"how:", "why:", "field why not found"},
		"no defect":           {"defects: [too-big]", "defects: []", "decision 2 (signal:heat, ): needs subjects and defects"},
		"an unknown defect":   {"[too-big, too-many]", "[too-large, too-many]", `there is no defect "too-large"`},
		"an unknown subject":  {"[vllm.success_rate, goals]", "[vllm.success, goals]", `"vllm.success" is not a derived metric, signal, rule or group`},
		"an unknown signal":   {`"signal:heat"`, `"signal:cold"`, `"signal:cold" is not a derived metric`},
		"a raw metric":        {"[vllm.success_rate, goals]", "[vllm.request.success, goals]", `"vllm.request.success" is not a derived metric`},
		"an unknown decision": {"decision: corrected", "decision: ignored", `decision "ignored" must be one of unaffected, corrected, bounded, withheld`},
		"half a sentence":     {`how: "It has no value."`, `how: "no value"`, "how must be a whole sentence"},
		"no package":          {"test: internal/catalog TestHalves", "test: TestHalves", `test "TestHalves" must be a package below the root`},
		"a subject that meets no defect": {
			"[vllm.success_rate, goals]\n    defects: [too-big, too-many]", "[vllm.success_rate, goals]\n    defects: [too-big]",
			"vllm.slo.good is computed from nothing that these defects concern",
		},
		"a defect that meets no subject": {
			"of: [vllm.success_rate, goals]", "of: [goals]", "too-big concerns nothing that these subjects are computed from",
		},
		"a pair decided twice": {`["signal:heat", "rule:idle"]`, "[vllm.success_rate]", "vllm.success_rate and too-big are decided by decision 1 already"},
		"a subject twice":      {"[vllm.success_rate, goals]", "[vllm.success_rate, vllm.slo.good, goals]", "vllm.slo.good and too-many are decided by decision 1 already"},
		"a defect twice":       {"defects: [too-big]", "defects: [too-big, too-big]", "the defect too-big is there twice"},
		"a second document":    {"TestHeat/too-big\n", "TestHeat/too-big\n---\ndecisions: []\n", "the file must be one YAML document"},
		"an unused group":      {"  goals: ", "  aims: [vllm.slo.good]\n  goals: ", "group aims: no decision uses it"},
		"an ambiguous group":   {"groups:\n", "groups:\n  vllm.slo.good: [vllm.slo.valid]\n", "group vllm.slo.good: a subject has this name"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, smallDecisions, tc.old)
			_, err := parseDecisions([]byte(strings.Replace(smallDecisions, tc.old, tc.new, 1)), knownDefects(t))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// knowledgeOfTheProject reads the project's own files.
func knowledgeOfTheProject(t *testing.T) (*knowledge, *decisionList) {
	t.Helper()
	doc, err := parse(readFile(t, "metadata.yaml"))
	require.NoError(t, err)
	g, err := parseDiagnosis(readFile(t, "internal", "catalog", "diagnosis.yaml"), doc)
	require.NoError(t, err)
	l, err := parseDefects(readFile(t, "internal", "catalog", "defects.yaml"), doc)
	require.NoError(t, err)
	k := &knowledge{catalogue: doc, diagnosed: g, defects: l}
	decided, err := parseDecisions(readFile(t, "internal", "catalog", "decisions.yaml"), k)
	require.NoError(t, err)
	return k, decided
}

func TestEveryPairOfASubjectAndADefectIsDecided(t *testing.T) {
	k, decided := knowledgeOfTheProject(t)
	if missing := k.undecided(decided); len(missing) > 0 {
		t.Error(wanted(missing))
	}
	for _, rule := range ruleNames {
		assert.True(t, slices.ContainsFunc(decided.Decisions, func(row decision) bool { return slices.Contains(row.Of, rule) }),
			"internal/catalog/decisions.yaml has no row about %s: decide what each defect that it meets does to it", rule)
	}
}

// wanted says which decisions are missing, and what to do.
func wanted(missing []pair) string {
	var subjects []string
	defects := map[string][]string{}
	for _, p := range missing {
		if !slices.Contains(subjects, p.subject) {
			subjects = append(subjects, p.subject)
		}
		defects[p.subject] = append(defects[p.subject], p.defect)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d pairs of a subject and a defect have no decision. Add each to a row of internal/catalog/decisions.yaml, "+
		"with a test that fails without it, and run \"make generate\". If a metric of the same form is decided there already, such as vllm.preemption_rate for a rate, "+
		"yours can join its lists:", len(missing))
	for _, subject := range subjects {
		fmt.Fprintf(&text, "\n%s: [%s]", subject, strings.Join(defects[subject], ", "))
	}
	return text.String()
}

// Each change of the project's own files that needs a decision is noticed.
func TestAMissingDecisionIsNoticed(t *testing.T) {
	find := func(k *knowledge, list *decisionList) string { return wanted(k.undecided(list)) }

	k, decided := knowledgeOfTheProject(t)
	i := slices.IndexFunc(decided.Decisions, func(row decision) bool { return slices.Contains(row.Of, "vllm.arrival_rate") })
	lost := k.meeting(decided.Decisions[i])[0]
	without := &decisionList{Decisions: slices.Delete(slices.Clone(decided.Decisions), i, i+1)}
	assert.Regexp(t, `\n`+regexp.QuoteMeta(lost.subject)+`: \[.*`+lost.defect, find(k, without))

	k.defects.Defects = append(k.defects.Defects, defect{ID: "all-wrong", Metrics: []string{"*"}})
	text := find(k, decided)
	assert.Contains(t, text, "Add each to a row of internal/catalog/decisions.yaml, with a test that fails without it")
	for _, subject := range []string{"vllm.arrival_rate", "vllm.pool.waiting", "signal:kv_cache_utilization"} {
		assert.Contains(t, text, "\n"+subject+": [all-wrong]")
	}

	k, decided = knowledgeOfTheProject(t)
	k.catalogue.Metrics["vllm.new_rate"] = metric{DerivedFrom: []string{"vllm.request.success"}, EmittedBy: "processor"}
	assert.Regexp(t, `\nvllm\.new_rate: \[.*client-aborts-uncounted`, find(k, decided))
}

func TestTheTestOfEachDecisionExists(t *testing.T) {
	_, decided := knowledgeOfTheProject(t)
	packages := map[string]*testsOfPackage{}
	for _, row := range decided.Decisions {
		dir, name, _ := strings.Cut(row.Test, " ")
		if packages[dir] == nil {
			packages[dir] = parseTests(t, filepath.Join("..", "..", "..", filepath.FromSlash(dir)))
		}
		assert.Empty(t, packages[dir].lacks(name), "the decision about %s names the test %q of %s", row.name(), name, dir)
	}
}

// testsOfPackage is what the test files of a package have.
type testsOfPackage struct {
	functions, texts map[string]bool
}

func parseTests(t *testing.T, dir string) *testsOfPackage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	p := &testsOfPackage{functions: map[string]bool{}, texts: map[string]bool{}}
	for _, path := range files {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		p.parse(t, content)
	}
	return p
}

// parse notes the functions, and the texts that can be names of subtests: strings, and the
// ids of the constants of defects.
func (p *testsOfPackage) parse(t *testing.T, content []byte) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			p.functions[n.Name.Name] = n.Recv == nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil {
				p.texts[strings.ReplaceAll(text, " ", "_")] = true
			}
		case *ast.Ident:
			p.texts[n.Name] = true
		}
		return true
	})
}

// lacks returns the first part of a test's name that the package does not have.
func (p *testsOfPackage) lacks(name string) string {
	function, subtests, _ := strings.Cut(name, "/")
	if !p.functions[function] {
		return function
	}
	for _, part := range strings.Split(subtests, "/") {
		if part != "" && !p.texts[part] && !p.texts[(&defect{ID: strings.ToLower(part)}).constant()] {
			return part
		}
	}
	return ""
}

func TestAMissingTestIsNoticed(t *testing.T) {
	p := &testsOfPackage{functions: map[string]bool{}, texts: map[string]bool{}}
	p.parse(t, []byte("package x\nfunc TestA() { run(\"two words\"); run(catalog.DefectTooBig) }\nfunc (s suite) TestB() {}\n"))
	for name, want := range map[string]string{
		"TestA": "", "TestA/two_words": "", "TestA/too-big": "", "TestA/too-big/two_words": "",
		"TestB": "TestB", "TestC": "TestC", "TestA/three_words": "three_words", "TestA/two_words/too-small": "too-small",
	} {
		assert.Equal(t, want, p.lacks(name), name)
	}
}
