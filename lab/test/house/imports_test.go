// Package house tests the directions in which the packages of this module import each other.
package house

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/otelcol-vllm/otelcol-vllm/"
	// shared is what components have in common.
	shared    = "internal/catalog internal/defectlog internal/fleet internal/identity internal/ending internal/message internal/refused internal/settings internal/wording "
	sim       = "lab/vllmsim/... !lab/vllmsim/realruns "
	receiver  = "receiver/vllmreceiver/internal/"
	processor = "processor/vllmprocessor/internal/"
	connector = "connector/vllmdiagnosisconnector/internal/"
	boxes     = shared + "cmd/vllmctl/pageparts connector/vllmdiagnosisconnector processor/vllmprocessor receiver/vllmreceiver receiver/vllmreceiver/probe "
	pdata     = "go.opentelemetry.io/collector/pdata/... "
	pure      = pdata + "go.uber.org/zap/... "
)

// may says which packages of this repository each package may import. Rows follow the flow of the
// data. The first row of a package counts. Patterns are those of go list; of several that
// match the last one counts, and "!" excludes.
var may = [][2]string{
	{".../internal/metadata .../internal/metadatatest", ""},
	{"internal/message", "internal/identity internal/wording"},
	{"internal/fleet", "internal/wording"},
	{shared, "internal/catalog"},

	// The receiver.
	{receiver + "fetch " + receiver + "discover " + receiver + "exposition " + receiver + "remote", "internal/settings " + receiver + "remote"},
	{receiver + "normalize", "internal/catalog " + receiver + "exposition"},
	{receiver + "emit", "internal/catalog " + receiver + "exposition " + receiver + "normalize"},
	{receiver + "scrape", shared + receiver + "..."},
	{receiver + "scrapetest", shared + "internal/test/... " + receiver + "..."},
	{"receiver/... !.../internal/...", shared + "receiver/..."},

	// The processor.
	{inside(processor, "quota signal"), ""},
	{processor + "input", "internal/catalog"},
	{processor + "gpu", processor + "input"},
	{processor + "collect", "internal/catalog internal/identity " + inside(processor, "gpu input")},
	{processor + "window", "internal/catalog " + processor + "input"},
	{processor + "derive", "internal/catalog " + inside(processor, "input window")},
	{processor + "objective", "internal/catalog " + inside(processor, "input quota window derive")},
	{processor + "diagnose", "internal/catalog internal/wording " + inside(processor, "gpu input signal window derive")},
	{processor + "pools", inside(processor, "input quota signal window derive diagnose")},
	{processor + "emit", "internal/catalog internal/message internal/refused " + inside(processor, "input derive metadata")},
	{processor + "archive", processor + "input"},
	{processor + "stages", "internal/catalog internal/fleet internal/message internal/refused internal/wording " + processor + "..."},
	{"processor/... !.../internal/...", shared + "processor/..."},

	// The connector and the extensions.
	{connector + "collect", "internal/identity internal/message"},
	{connector + "track", "internal/message " + connector + "collect"},
	{connector + "emit", "internal/catalog internal/identity internal/message internal/wording " + inside(connector, "collect track")},
	{"connector/... !.../internal/...", shared + "connector/..."},
	{"extension/storagecheckextension/internal/boltfile", ""},
	{"extension/... !.../internal/...", shared + "extension/..."},

	// vllmctl knows the components as black boxes.
	{"cmd/vllmctl/pageparts internal/test/...", "internal/test/..."},
	{"cmd/vllmctl/spelling cmd/vllmctl/content cmd/vllmctl/rulefile cmd/vllmctl/internal/querylint", "internal/catalog internal/settings cmd/vllmctl/pageparts cmd/vllmctl/content cmd/vllmctl/spelling"},
	{"cmd/vllmctl/...", boxes + "extension/extensioncheck cmd/vllmctl/..."},

	// The laboratory. What is shipped besides programs knows no component.
	{"lab/content/...", "internal/catalog cmd/vllmctl/pageparts cmd/vllmctl/content cmd/vllmctl/rulefile cmd/vllmctl/spelling lab/content/..."},
	{inside("lab/vllmsim/", "engine observed recording wire"), "lab/vllmsim/observed"},
	{sim, "internal/catalog cmd/vllmctl/pageparts " + sim},
	{"lab/judge", "internal/catalog processor/vllmprocessor " + sim},
	{"lab/vllmsim/realruns", "lab/judge cmd/vllmctl/pageparts " + sim},
	{"lab/vllm/...", boxes + "cmd/vllmctl/rulestore lab/judge lab/vllmsim/... lab/vllm/..."},
	// The long runs and the judges of a release know the collector as a program.
	{"lab/test/fleet/...", "cmd/vllmctl/pageparts"},
	{"lab/test/soak/...", "lab/test/fleet lab/test/soak lab/vllmsim/plot"},
	{"lab/test/scale/...", "lab/test/fleet internal/test/kubeapi lab/test/scale lab/vllmsim/plot"},
	{"lab/test/release/...", "lab/test/release/..."},
	{"lab/test/...", "... !lab/cmd/... !lab/vllm/..."},
	{"lab/cmd/...", "... !lab/test/... !lab/vllm/..."},
}

// never says what packages do not import, besides their way, and why.
var never = []struct {
	packages, imports, why string
	tests                  bool
}{
	{"...", "github.com/pkg/errors math/rand gopkg.in/yaml.v2 gopkg.in/yaml.v3 log", "there is one that the project uses for it", true},
	{"... !lab/... !cmd/...", module + "lab/... " + module + "cmd/...", "what a collector runs is a module of its own", true},
	{"... !lab/vllm/...", module + "lab/vllm/...", "it needs a machine with a real server, so only it imports itself", true},
	{sim + "lab/judge", module + "lab/vllmsim/realruns", "recordings come after the simulator and the judge", true},
	{
		receiver + "... processor/... connector/... extension/... lab/vllmsim/engine !extension/vllmfleetextension !" + receiver + "fetch !" + receiver + "discover !" + receiver + "scrape !" + receiver + "scrapetest",
		"net/http/...", "only fetch and discover know HTTP, whose client the receiver sets up, and the extension that is a server", false,
	},
	{
		inside(receiver, "fetch discover remote") + processor + "archive",
		pdata, "only the first and the last step know pdata", false,
	},
	{
		inside(receiver, "exposition normalize") + inside(processor, "input derive") + "lab/vllmsim/engine",
		pure + "time", "a pure step gets the time as a parameter, and its caller logs", false,
	},
	{
		inside(processor, "gpu window signal objective diagnose pools quota") + connector + "track",
		pure, "a pure step gets the time as a parameter, and its caller logs", false,
	},
}

// inside returns packages below a folder.
func inside(folder, names string) string {
	return folder + strings.Join(strings.Fields(names), " "+folder) + " "
}

func matches(patterns, name string) (found bool) {
	for _, pattern := range strings.Fields(patterns) {
		pattern, not := strings.CutPrefix(pattern, "!")
		expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\.\.\.`, ".*")
		expression = strings.TrimSuffix(expression, "/.*") + map[bool]string{true: "(/.*)?"}[strings.HasSuffix(expression, "/.*")]
		if regexp.MustCompile("^" + expression + "$").MatchString(name) {
			found = !not
		}
	}
	return found
}

// imports is a package as go list describes it.
type imports struct {
	ImportPath                         string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

// wrong returns a sentence for each import in a wrong direction.
func wrong(p *imports) (sentences []string) {
	name := strings.TrimPrefix(p.ImportPath, module)
	row := slices.IndexFunc(may, func(row [2]string) bool { return matches(row[0], name) })
	if row < 0 && len(p.GoFiles) > 0 {
		return []string{name + " has no row that says what it may import; add it where it is on the data's way"}
	}
	for _, to := range p.Imports {
		if local, ours := strings.CutPrefix(to, module); ours && !matches(may[row][1], local) {
			sentences = append(sentences, name+" imports "+local+", which does not come before it on the data's way")
		}
	}
	for i, row := range never {
		all := p.Imports
		if row.tests {
			all = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		}
		for _, to := range all {
			if matches(never[i].packages, name) && matches(row.imports, to) {
				sentences = append(sentences, name+" imports "+to+": "+row.why)
			}
		}
	}
	return sentences
}

func TestAPackageImportsOnlyWhatComesBeforeIt(t *testing.T) {
	command := exec.Command("go", "list", "-e", "-tags=e2e", "-json=ImportPath,GoFiles,Imports,TestImports,XTestImports", "./...", "./cmd/vllmctl/...", "./lab/...")
	command.Dir = "../../.."
	out, err := command.Output()
	require.NoError(t, err)
	used := map[string]bool{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p imports
		require.NoError(t, decoder.Decode(&p))
		for _, sentence := range wrong(&p) {
			assert.Fail(t, sentence)
		}
		for _, row := range may {
			used[row[0]] = used[row[0]] || matches(row[0], strings.TrimPrefix(p.ImportPath, module))
		}
		for _, row := range never {
			used[row.packages] = used[row.packages] || matches(row.packages, strings.TrimPrefix(p.ImportPath, module))
		}
	}
	for packages, is := range used {
		assert.True(t, is, "no package is %s: remove the row or correct it", packages)
	}
}

func TestAnImportInAWrongDirectionIsFound(t *testing.T) {
	for from, to := range map[string]string{
		"receiver/vllmreceiver":    module + "processor/vllmprocessor",
		"connector/vllmother":      module + "lab/vllmsim",
		receiver + "exposition":    module + receiver + "normalize",
		receiver + "unknown":       "fmt",
		processor + "window":       module + processor + "collect",
		processor + "diagnose":     pdata[:len(pdata)-len("/... ")] + "/pmetric",
		processor + "pools":        module + processor + "stages",
		processor + "stages":       "net/http/httptest",
		processor + "derive":       "time",
		"lab/vllmsim/traffic":      module + "lab/vllmsim/realruns",
		"lab/judge":                module + processor + "input",
		"lab/test/content":         module + "lab/vllm/run",
		"lab/test/release/run":     module + "internal/catalog",
		"lab/cmd/demo":             "log",
		connector + "track":        "go.uber.org/zap",
		"extension/extensioncheck": module + "cmd/vllmctl/content",
	} {
		assert.NotEmpty(t, wrong(&imports{ImportPath: module + from, GoFiles: []string{"some.go"}, Imports: []string{to}}), "%s imports %s", from, to)
	}
}
