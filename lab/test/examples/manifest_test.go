package examples

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

// root is the repository's top folder.
const root = "../../.."

// manifest is the part of a builder configuration that the tests look at.
type manifest struct {
	Dist struct {
		Name, Module, Version string
		OutputPath            string `yaml:"output_path"`
	}
	Receivers, Processors, Exporters, Extensions, Connectors, Providers []component
	Replaces                                                            []string
}

type component struct{ Gomod, Import string }

func (m manifest) components() []component {
	return slices.Concat(m.Receivers, m.Processors, m.Exporters, m.Extensions, m.Connectors, m.Providers)
}

// pkg is the Go package of a component.
func (c component) pkg() string {
	if c.Import != "" {
		return c.Import
	}
	module, _, _ := strings.Cut(c.Gomod, " ")
	return module
}

func (c component) version() string {
	_, version, _ := strings.Cut(c.Gomod, " ")
	return version
}

func readManifest(t *testing.T, name string) manifest {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(content, &m))
	require.NotEmpty(t, m.components())
	return m
}

func readModule(t *testing.T, folder string) *modfile.File {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
	require.NoError(t, err)
	module, err := modfile.Parse("go.mod", content, nil)
	require.NoError(t, err)
	return module
}

func TestTheLargerDistributionsHaveEverythingThatTheSmallOneHas(t *testing.T) {
	small := readManifest(t, "builder-config.yaml")
	for _, name := range []string{"builder-config-full.yaml", "builder-config-tiers.yaml"} {
		larger := readManifest(t, name)
		assert.Subset(t, larger.Receivers, small.Receivers, name)
		assert.Subset(t, larger.Processors, small.Processors, name)
		assert.Subset(t, larger.Exporters, small.Exporters, name)
		assert.Subset(t, larger.Extensions, small.Extensions, name)
		assert.Subset(t, larger.Connectors, small.Connectors, name)
		assert.Equal(t, small.Providers, larger.Providers, name)
		assert.Equal(t, small.Replaces, larger.Replaces, name)
		assert.Equal(t, small.Dist.Version, larger.Dist.Version, name)
		assert.Greater(t, len(larger.components()), len(small.components()), name)
	}
}

// A component that is written but not listed would be missing from the binary,
// and no other test would notice.
func TestEveryComponentOfThisModuleIsInAllDistributions(t *testing.T) {
	module := readModule(t, ".").Module.Mod.Path
	var own []string
	for _, kind := range []string{"receiver", "processor", "connector", "extension", "exporter"} {
		factories, err := filepath.Glob(filepath.Join(root, kind, "*", "factory.go"))
		require.NoError(t, err)
		for _, factory := range factories {
			own = append(own, path.Join(module, kind, filepath.Base(filepath.Dir(factory))))
		}
	}
	for _, name := range []string{"builder-config.yaml", "builder-config-full.yaml", "builder-config-tiers.yaml"} {
		t.Run(name, func(t *testing.T) {
			m := readManifest(t, name)
			var listed []string
			for _, c := range m.components() {
				if strings.HasPrefix(c.Gomod, module+" ") {
					listed = append(listed, c.pkg())
					assert.Equal(t, "v"+m.Dist.Version, c.version(), "%s has the distribution's version", c.pkg())
				}
			}
			assert.Subset(t, listed, own)
			assert.Equal(t, []string{module + " => ../.."}, m.Replaces)
			assert.Len(t, strings.Split(path.Clean(m.Dist.OutputPath), "/"), 2, "or ../.. is not the repository")
		})
	}
}

// older are the components that the registry does not have at our release with all that they need
// ("make newest" says what is missing), each with the release that it has.
var older = map[string]string{
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter":               "v0.160.0",
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/loadbalancingexporter":       "v0.160.0",
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/sigv4authextension":         "v0.155.0",
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor":     "v0.160.0",
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourcedetectionprocessor": "v0.160.0",
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkareceiver":               "v0.160.0",
}

// One release of the Collector is built and tested together, but for what cannot be had. A binary
// mixed of two starts, and then fails in ways that no test here would see.
func TestEverythingIsOfOneCollectorRelease(t *testing.T) {
	required := map[string]string{}
	for _, folder := range []string{".", "cmd/vllmctl", "lab"} {
		for _, r := range readModule(t, folder).Require {
			if other, has := required[r.Mod.Path]; has && other != r.Mod.Version {
				t.Errorf("%s/go.mod has %s %s, and another module %s: run make tidy", folder, r.Mod.Path, r.Mod.Version, other)
			}
			required[r.Mod.Path] = r.Mod.Version
		}
	}
	stable, beta := required["go.opentelemetry.io/collector/pdata"], required["go.opentelemetry.io/collector/scraper/scraperhelper"]
	require.NotEmpty(t, stable)
	require.NotEmpty(t, beta)

	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	assert.Contains(t, string(makefile), "OCB_VERSION      := "+beta+"\n")

	for _, name := range []string{"builder-config.yaml", "builder-config-full.yaml", "builder-config-tiers.yaml"} {
		for _, c := range readManifest(t, name).components() {
			switch {
			case older[c.pkg()] != "" && name != "builder-config.yaml":
				assert.Equal(t, older[c.pkg()], c.version(), "%s: %s", name, c.pkg())
			case strings.HasPrefix(c.pkg(), "go.opentelemetry.io/collector/"),
				strings.HasPrefix(c.pkg(), "github.com/open-telemetry/"):
				assert.Contains(t, []string{stable, beta}, c.version(), "%s: %s", name, c.pkg())
			default:
				assert.Contains(t, c.pkg(), "otelcol-vllm", "%s: a component from elsewhere needs a version rule of its own", name)
			}
		}
	}
}

// The collector adds no scope to its own metrics (shown by TestTwoCollectorsOnOneMachineServeTheirOwnMetrics) unless it is
// configured to, and then each upgrade renames them.
func TestNoExampleAddsScopesToTheCollectorsOwnMetrics(t *testing.T) {
	readers := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "examples"), func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(at)
		readers += strings.Count(string(text), "readers:")
		assert.NotRegexp(t, `without_scope_info["']?: *false`, string(text), at)
		return err
	}))
	assert.Positive(t, readers)
}
