package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imageUser is the user of the image and of all containers.
const imageUser = 10001

// instruction is one line of a Dockerfile, with its continuations.
type instruction struct{ word, rest string }

func dockerfile(t *testing.T) []instruction {
	t.Helper()
	var all []instruction
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		all = append(all, instruction{word, strings.Join(strings.Fields(rest), " ")})
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(content)
}

func TestTheDockerfileBuildsWhatTheMakefileBuilds(t *testing.T) {
	makefile := read(t, "Makefile")
	stages := map[string][]string{}
	var targets, lasts []string
	stage := ""
	for _, i := range dockerfile(t) {
		switch i.word {
		case "FROM":
			stages[stage] = lasts
			var base string
			base, stage, _ = strings.Cut(i.rest, " AS ")
			lasts = slices.Clone(stages[base]) // A stage has what the one has that it is made from.
		case "RUN":
			_, wanted, ok := strings.Cut(i.rest, "make ")
			require.True(t, ok, "%s", i.rest)
			targets = append(targets, slices.DeleteFunc(strings.Fields(wanted), func(word string) bool { return strings.Contains(word, "=") })...)
		case "COPY":
			if from, ok := strings.CutPrefix(i.rest, "--from="); ok {
				other, _, _ := strings.Cut(from, " ")
				assert.Contains(t, stages, other, "COPY from the stage %q", other)
			}
			lasts = append(lasts, i.rest)
		default:
			lasts = append(lasts, i.word+" "+i.rest)
		}
	}
	require.NotEmpty(t, targets)
	for _, target := range targets {
		assert.Regexp(t, `(?m)^`+regexp.QuoteMeta(target)+`:`, makefile, "make %s", target)
	}
	// The last stage: what runs, as whom, and with what it can trust backends.
	all := strings.Join(lasts, "\n")
	assert.Contains(t, all, "/src/bin/otelcol-vllm /otelcol-vllm")
	assert.Contains(t, all, "/src/bin/vllmctl /vllmctl")
	assert.Contains(t, all, "/etc/ssl/certs/ca-certificates.crt")
	assert.Contains(t, all, "/src/LICENSE /src/NOTICE /licenses/")
	assert.Contains(t, all, "/src/build/licences /licenses")
	assert.Contains(t, all, `org.opencontainers.image.source="https://github.com/otelcol-vllm/otelcol-vllm"`)
	assert.Contains(t, all, `org.opencontainers.image.licenses="Apache-2.0"`)
	assert.Contains(t, lasts, "USER 10001:10001")
	assert.Contains(t, lasts, `ENTRYPOINT ["/otelcol-vllm"]`)
	assert.Contains(t, makefile, "CGO_ENABLED=0", "an image without a C library needs a static binary")
}

// The image starts from nothing, so its Go must be able to build this module.
func TestTheDockerfilesGoIsNewEnough(t *testing.T) {
	wanted := regexp.MustCompile(`(?m)^go 1\.(\d+)`).FindStringSubmatch(read(t, "go.mod"))
	used := regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:1\.(\d+)\.\d+-bookworm@sha256:[0-9a-f]{64}$`).FindStringSubmatch(read(t, "Dockerfile"))
	require.NotNil(t, wanted)
	require.NotNil(t, used)
	// Both have two digits.
	assert.GreaterOrEqual(t, used[1], wanted[1])
}

// What .dockerignore keeps out is not there to be compiled.
func TestTheBuildGetsEveryFolderWithGoCodeAndNothingElse(t *testing.T) {
	var allowed []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			allowed = append(allowed, name)
		}
	}
	assert.Regexp(t, `(?m)^\*$`, read(t, ".dockerignore"))
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	// bin and build are made on this machine, testdata and docs are not compiled.
	needed := []string{"Makefile", "builder-config.yaml", "builder-config-full.yaml", "builder-config-tiers.yaml", "go.mod", "go.sum", "go.work", "go.work.sum", "LICENSE", "NOTICE"}
	for _, entry := range entries {
		if !entry.IsDir() || slices.Contains([]string{"bin", "build", "dist", "testdata", ".git"}, entry.Name()) {
			continue
		}
		if hasGo(t, filepath.Join(root, entry.Name())) {
			needed = append(needed, entry.Name())
		}
	}
	for _, name := range needed {
		assert.Contains(t, allowed, name)
	}
	for _, name := range allowed {
		assert.True(t, slices.Contains(needed, name) || name == "processor", "%s is not needed", name)
	}
}

func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	found := false
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		found = found || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		return err
	}))
	return found
}
