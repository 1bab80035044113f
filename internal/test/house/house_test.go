// Package house tests that the linter holds the directions in which packages import each other.
package house

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root   = "../../.."
	module = "github.com/otelcol-vllm/otelcol-vllm"
)

// An edge is an import that a test plants: a package of this module, and what it
// imports. An import that begins with "./" is of this module as well.
type edge struct{ from, to string }

// forbidden has for each rule of the linter at least one import that it refuses. All
// lead from an earlier step to a later one, so that they form no cycle.
var forbidden = map[string][]edge{
	"everywhere": {
		{"cmd/demo", "github.com/pkg/errors"},
		{"cmd/demo", "math/rand"},
		{"cmd/demo", "gopkg.in/yaml.v2"},
		{"cmd/demo", "gopkg.in/yaml.v3"},
		{"cmd/demo", "log"},
	},
	"product": {
		{"receiver/vllmreceiver", "./internal/test/captures"},
		{"processor/vllmprocessor", "./internal/test/kubeapi"},
		{"connector/vllmdiagnosisconnector", "./internal/vllmsim"},
		{"extension/extensioncheck", "./internal/test/captures"},
		{"receiver/vllmreceiver", "./internal/content"},
		{"receiver/vllmreceiver", "./internal/vllmctl/status"},
	},
	"content": {
		{"internal/content", "./internal/vllmsim"},
		{"internal/content/grafana", "./processor/vllmprocessor"},
		{"internal/querylint", "./receiver/vllmreceiver"},
		{"internal/pageparts", "./internal/vllmsim"},
	},
	"component-receiver":  {{"receiver/vllmreceiver", "./processor/vllmprocessor"}, {"receiver/vllmreceiver", "./cmd/sub"}},
	"component-processor": {{"processor/vllmprocessor", "./connector/vllmdiagnosisconnector"}, {"processor/vllmprocessor", "./cmd/sub"}},
	"component-connector": {{"connector/vllmdiagnosisconnector", "./extension/extensioncheck"}},
	"component-extension": {{"extension/storagecheckextension", "./receiver/other"}, {"extension/storagecheckextension", "./connector/other"}},
	"programs":            {{"cmd/demo", "./internal/test/collector"}, {"cmd/demo", "./cmd/sub"}, {"internal/vllmsim/engine", "./internal/test/captures"}},
	"shared":              {{"internal/identity", "./internal/vllmsim"}, {"internal/catalog", "./processor/vllmprocessor"}, {"internal/refused", "./internal/identity"}},
	"receiver-fetch": {
		{"receiver/vllmreceiver/internal/remote", "./receiver/vllmreceiver/internal/fetch"},
		{"receiver/vllmreceiver/internal/fetch", "./receiver/vllmreceiver/internal/exposition"},
		{"receiver/vllmreceiver/internal/exposition", "./receiver/vllmreceiver/internal/normalize"},
		{"receiver/vllmreceiver/internal/discover", "./receiver/vllmreceiver/internal/fetch"},
	},
	"receiver-normalize": {
		{"receiver/vllmreceiver/internal/normalize", "./receiver/vllmreceiver/internal/emit"},
		{"receiver/vllmreceiver/internal/normalize", "./receiver/other"},
	},
	"receiver-emit": {{"receiver/vllmreceiver/internal/emit", "./receiver/vllmreceiver"}},
	"simulator-engine": {
		{"internal/vllmsim/engine", "./internal/vllmsim/scenario"},
		{"internal/vllmsim/observed", "./processor/vllmprocessor"},
	},
	"simulator": {
		{"internal/vllmsim/traffic", "./internal/judge"},
		{"internal/vllmsim/fidelity", "./processor/vllmprocessor"},
		{"internal/vllmsim/gpu", "./internal/judge"},
	},
	"no-recordings": {
		{"internal/vllmsim/profile", "./internal/vllmsim/realruns"},
		{"internal/judge", "./internal/vllmsim/realruns"},
	},
	"simulator-recordings": {{"internal/vllmsim/realruns", "./processor/vllmprocessor"}},
	"vllmctl": {
		{"internal/vllmctl/status", "./connector/vllmdiagnosisconnector"},
		{"internal/vllmctl/status", "./internal/vllmsim"},
	},
	"lab": {
		{"lab/vllm/run", "./internal/vllmctl/verdict"},
		{"lab/vllm/said", "./internal/content"},
		{"lab/vllm/said", "./processor/other"},
		{"lab/vllm/serve", "./internal/test/collector"},
	},
	"no-lab": {
		{"cmd/demo", "./lab/vllm/serve"},
		{"internal/test/docs", "./lab/vllm/story"},
	},
	"soak": {
		{"internal/test/soak", "./receiver/vllmreceiver"},
		{"internal/test/soak/run", "./internal/vllmsim"},
	},
	"fleet": {{"internal/test/fleet", "./receiver/vllmreceiver"}},
	"scale": {
		{"internal/test/scale", "./processor/vllmprocessor"},
		{"internal/test/scale/run", "./internal/vllmsim"},
	},
	"release": {
		{"internal/test/release", "./internal/catalog"},
		{"internal/test/release/run", "./receiver/vllmreceiver"},
	},
	"judge": {
		{"internal/judge", "./receiver/vllmreceiver"},
		{"internal/judge", "./internal/test/captures"},
	},
	"processor-arithmetic": {
		{"processor/vllmprocessor/internal/histogram", "./processor/vllmprocessor/internal/collect"},
		{"processor/vllmprocessor/internal/hardware", "./processor/vllmprocessor/internal/window"},
	},
	"processor-collect": {{"processor/vllmprocessor/internal/collect", "./processor/vllmprocessor/internal/window"}},
	"processor-window":  {{"processor/vllmprocessor/internal/window", "./processor/vllmprocessor/internal/derive"}},
	"processor-derive":  {{"processor/vllmprocessor/internal/derive", "./processor/vllmprocessor/internal/diagnose"}},
	"processor-judgements": {
		{"processor/vllmprocessor/internal/diagnose", "./processor/vllmprocessor/internal/emit"},
		{"processor/vllmprocessor/internal/pool", "./processor/vllmprocessor/internal/stages/pools"},
	},
	"processor-emit":      {{"processor/vllmprocessor/internal/emit", "./processor/vllmprocessor/internal/stage"}},
	"processor-output":    {{"processor/vllmprocessor/internal/delivery", "./processor/vllmprocessor/internal/stage"}},
	"processor-stages":    {{"processor/vllmprocessor/internal/stages/pools", "./processor/vllmprocessor"}},
	"processor-one-stage": {{"processor/vllmprocessor/internal/stages/derived", "./processor/vllmprocessor/internal/stages/diagnosis"}},
	"connector-collect":   {{"connector/vllmdiagnosisconnector/internal/collect", "./connector/vllmdiagnosisconnector/internal/track"}},
	"connector-track":     {{"connector/vllmdiagnosisconnector/internal/track", "./connector/vllmdiagnosisconnector/internal/emit"}},
	"connector-emit":      {{"connector/vllmdiagnosisconnector/internal/emit", "./connector/vllmdiagnosisconnector"}},
	"extension-boltfile": {
		{"extension/storagecheckextension/internal/boltfile", "./extension/storagecheckextension"},
	},
	"no-http": {
		{"receiver/vllmreceiver/internal/emit", "net/http"},
		{"processor/vllmprocessor/internal/window", "net/http"},
		{"internal/vllmsim/engine", "net/http"},
		{"processor/vllmprocessor", "net/http"},
		{"connector/vllmdiagnosisconnector", "net/http"},
		{"extension/extensioncheck", "net/http"},
	},
	"no-pdata": {
		{"receiver/vllmreceiver/internal/fetch", "go.opentelemetry.io/collector/pdata/pmetric"},
		{"receiver/vllmreceiver/internal/discover", "go.opentelemetry.io/collector/pdata/pmetric"},
	},
	"pure-steps": {
		{"receiver/vllmreceiver/internal/exposition", "go.opentelemetry.io/collector/pdata/pmetric"},
		{"receiver/vllmreceiver/internal/normalize", "go.opentelemetry.io/collector/pdata/pmetric"},
		{"receiver/vllmreceiver/internal/exposition", "time"},
		{"processor/vllmprocessor/internal/derive", "go.uber.org/zap"},
		{"processor/vllmprocessor/internal/derive", "go.opentelemetry.io/collector/pdata/pmetric"},
	},
	"pure-steps-with-durations": {
		{"processor/vllmprocessor/internal/diagnose", "go.uber.org/zap"},
		{"processor/vllmprocessor/internal/window", "go.uber.org/zap"},
		{"connector/vllmdiagnosisconnector/internal/track", "go.opentelemetry.io/collector/pdata/pmetric"},
	},
}

// allowed are imports that no rule may refuse: each step imports the one before it.
var allowed = []edge{
	{"receiver/vllmreceiver/internal/fetch", "net/http"},
	{"receiver/vllmreceiver/internal/fetch", "./receiver/vllmreceiver/internal/remote"},
	{"receiver/vllmreceiver/internal/normalize", "./receiver/vllmreceiver/internal/exposition"},
	{"receiver/vllmreceiver/internal/emit", "./receiver/vllmreceiver/internal/normalize"},
	{"receiver/vllmreceiver/internal/emit", "go.opentelemetry.io/collector/pdata/pmetric"},
	{"receiver/vllmreceiver", "./receiver/vllmreceiver/internal/emit"},
	{"receiver/vllmreceiver", "net/http"},
	{"processor/vllmprocessor/internal/window", "./processor/vllmprocessor/internal/collect"},
	{"processor/vllmprocessor/internal/window", "time"},
	{"processor/vllmprocessor/internal/derive", "./processor/vllmprocessor/internal/window"},
	{"processor/vllmprocessor/internal/diagnose", "./processor/vllmprocessor/internal/derive"},
	{"processor/vllmprocessor/internal/emit", "./processor/vllmprocessor/internal/derive"},
	{"processor/vllmprocessor/internal/stages/pools", "./processor/vllmprocessor/internal/pool"},
	{"processor/vllmprocessor", "./processor/vllmprocessor/internal/stages/pools"},
	{"processor/vllmprocessor/internal/stages/pools", "./processor/vllmprocessor/internal/stages/diagnosis"},
	{"processor/vllmprocessor", "./internal/catalog"},
	{"connector/vllmdiagnosisconnector/internal/track", "./connector/vllmdiagnosisconnector/internal/collect"},
	{"connector/vllmdiagnosisconnector/internal/emit", "./connector/vllmdiagnosisconnector/internal/track"},
	{"internal/test/accuracy/measure", "./internal/judge"},
	{"internal/judge", "./processor/vllmprocessor"},
	{"internal/judge", "./internal/vllmsim/engine"},
	{"internal/vllmsim/engine", "./internal/vllmsim/observed"},
	{"internal/vllmsim/scenario", "./internal/vllmsim/traffic"},
	{"internal/vllmsim/gpu", "./internal/vllmsim/engine"},
	{"internal/vllmsim/realruns", "./internal/judge"},
	{"cmd/demo", "./internal/vllmsim"},
	{"lab/vllm/run", "./internal/judge"},
	{"lab/vllm/said", "./lab/vllm/run"},
	{"lab/vllm/said", "./internal/vllmctl/rulestore"},
	{"lab/vllm/said", "./processor/vllmprocessor"},
	{"lab/vllm/said", "./receiver/vllmreceiver"},
	{"lab/vllm/said", "./connector/vllmdiagnosisconnector"},
	{"lab/vllm/real", "./internal/vllmsim"},
	{"lab/vllm/real", "./internal/catalog"},
	{"internal/test/soak", "./internal/vllmsim/plot"},
	{"internal/test/soak/run", "./internal/test/soak"},
	{"internal/test/release/run", "./internal/test/release"},
	{"internal/vllmctl/live", "./processor/vllmprocessor"},
	{"internal/vllmctl/live", "./internal/vllmctl/verdict"},
}

type rule struct {
	Files []string `yaml:"files"`
}

func rules(t *testing.T) map[string]rule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	require.NoError(t, err)
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	return config.Linters.Settings.Depguard.Rules
}

// TestEachPackageHasItsPlaceOnTheDataPath finds packages that no rule restricts: what is
// not listed in a rule may import everything of its component.
func TestEachPackageHasItsPlaceOnTheDataPath(t *testing.T) {
	var places []string
	for name, r := range rules(t) {
		step := strings.HasPrefix(name, "receiver-") || strings.HasPrefix(name, "processor-") ||
			strings.HasPrefix(name, "connector-") || strings.HasPrefix(name, "extension-") ||
			strings.HasPrefix(name, "simulator") || name == "shared" || name == "content" || name == "judge" || name == "vllmctl" || name == "lab"
		if step {
			places = append(places, r.Files...)
		}
	}
	for _, top := range []string{"receiver", "processor", "connector", "extension", "internal", "lab"} {
		for _, dir := range packagesBelow(t, top) {
			listed := slices.ContainsFunc(places, func(place string) bool {
				place = strings.TrimPrefix(place, "**/")
				folder, deep := strings.CutSuffix(place, "/**")
				return place == dir+"/*.go" || deep && strings.HasPrefix(dir+"/", folder+"/")
			})
			assert.True(t, listed, "no rule says what %s may import; add it to its step under depguard in .golangci.yml", dir)
		}
	}
}

// packagesBelow lists the internal packages below a folder that hold product code
// written by hand; in the lab, of which nothing is for others, all of them.
func packagesBelow(t *testing.T, top string) []string {
	t.Helper()
	var dirs []string
	require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == "internal/test", entry.Name() == "metadata", entry.Name() == "metadatatest", entry.Name() == "testdata":
			return filepath.SkipDir
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), !strings.Contains(name, "internal/") && top != "lab":
			return nil
		}
		if dir := path.Dir(name); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	}))
	return dirs
}

// TestTheLinterRefusesEachForbiddenImport plants imports in a small module that has this
// project's configuration of the linter, and empty packages in the place of all others.
func TestTheLinterRefusesEachForbiddenImport(t *testing.T) {
	linter := os.Getenv("OTELCOL_VLLM_GOLANGCI")
	if linter == "" {
		t.Skip("OTELCOL_VLLM_GOLANGCI names no golangci-lint; \"make lint\" runs this test")
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(rules(t))), slices.Collect(maps.Keys(forbidden)),
		"each rule has an import planted here that it refuses")

	var planted []edge
	var want []string
	for _, name := range slices.Sorted(maps.Keys(forbidden)) {
		for _, e := range forbidden[name] {
			if !slices.Contains(planted, e) {
				planted = append(planted, e)
			}
			want = append(want, e.from+" "+e.to+" "+name)
		}
	}
	found := lint(t, linter, planted)
	for _, finding := range want {
		assert.True(t, slices.Contains(found, finding), "not refused: %s", finding)
	}
	assert.Empty(t, lint(t, linter, allowed), "refused, although it follows the data's way")
}

var refused = regexp.MustCompile(`^import '(.+)' is not allowed from list '(.+?)'`)

// lint plants the imports and returns what the linter refuses, each as "from to rule".
func lint(t *testing.T, linter string, edges []edge) []string {
	t.Helper()
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	require.NoError(t, err)
	write(t, dir, ".golangci.yml", string(config))
	mod := "module " + module + "\n\ngo 1.25.0\n"
	for _, other := range []string{"go.uber.org/zap", "go.opentelemetry.io/collector/pdata", "github.com/pkg/errors", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3"} {
		version := "v0.0.0"
		if strings.HasPrefix(other, "gopkg.in/") {
			version = "v" + other[len(other)-1:] + ".0.0"
		}
		mod += fmt.Sprintf("\nrequire %s %s\n\nreplace %s => ./others/%s\n", other, version, other, other)
		write(t, dir, "others/"+other+"/go.mod", "module "+other+"\n\ngo 1.25.0\n")
		write(t, dir, "others/"+other+"/empty.go", "package empty\n")
	}
	write(t, dir, "others/go.opentelemetry.io/collector/pdata/pmetric/empty.go", "package pmetric\n")
	write(t, dir, "go.mod", mod)
	for i, e := range edges {
		to := e.to
		if local, ok := strings.CutPrefix(e.to, "./"); ok {
			to = module + "/" + local
			write(t, dir, local+"/empty.go", "package "+path.Base(local)+"\n")
		}
		write(t, dir, fmt.Sprintf("%s/planted%d.go", e.from, i), fmt.Sprintf("package %s\n\nimport _ %q\n", path.Base(e.from), to))
	}

	command := exec.Command(linter, "run", "--allow-parallel-runners", "--enable-only", "depguard", "--output.json.path", "stdout",
		"--show-stats=false", "--timeout", "5m", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOLANGCI_LINT_CACHE="+filepath.Join(dir, "cache"), "GOFLAGS=-mod=mod", "GOPROXY=off")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	var report struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct{ Filename string }
		}
	}
	line, _, _ := strings.Cut(string(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &report), "golangci-lint ended with %v and wrote:\n%s%s", err, out, stderr.String())
	var found []string
	for _, issue := range report.Issues {
		match := refused.FindStringSubmatch(issue.Text)
		require.NotNil(t, match, "%s: %s", issue.FromLinter, issue.Text)
		to := match[1]
		if local, ok := strings.CutPrefix(to, module+"/"); ok {
			to = "./" + local
		}
		found = append(found, path.Dir(issue.Pos.Filename)+" "+to+" "+match[2])
	}
	return found
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
}
