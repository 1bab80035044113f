package hosted

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// edit replaces a part of the text of a workflow, and reads it again.
func (p *project) edit(t *testing.T, name, old, replacement string) {
	t.Helper()
	text := p.workflows[name].text
	require.Contains(t, text, old, name)
	w := &workflow{text: strings.Replace(text, old, replacement, 1)}
	require.NoError(t, yaml.Unmarshal([]byte(w.text), w), name)
	p.workflows[name] = w
}

// TestEachRuleIsHeld breaks a copy of the workflows once for each rule.
func TestEachRuleIsHeld(t *testing.T) {
	t.Parallel()
	const checkout = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
	for name, tc := range map[string]struct {
		file, old, replacement string
		want                   string
	}{
		"an unknown target":             {"ci.yml", "run: make workflows", "run: make workflow", "no target workflow"},
		"an unknown script":             {"ci.yml", "run: .ci/run", "run: .ci/walk", "no such script: .ci/walk"},
		"a script that is a text":       {"ci.yml", "run: .ci/run", "run: .ci/../README.md", "no such script"},
		"an unknown variable":           {"nightly.yml", "make soak SOAK_FOR=5m", "make soak SOAK_FORE=5m", "no variable SOAK_FORE"},
		"a second line":                 {"ci.yml", "run: make workflows", "run: |\n          make workflows\n          curl http://example.com", "neither a target nor a script: curl"},
		"two commands":                  {"ci.yml", "run: make workflows", "run: make workflows && ls", "more than a command"},
		"any other command":             {"ci.yml", "run: make workflows", "run: go test ./...", "neither a target nor a script"},
		"a bare make":                   {"ci.yml", "run: make workflows", "run: make", "neither a target nor a script"},
		"a title in the shell":          {"ci.yml", "run: make workflows", "run: make workflows ${{ github.event.pull_request.title }}", "put into the shell's line"},
		"a tag":                         {"ci.yml", checkout, "actions/checkout@v7", "not pinned: actions/checkout@v7"},
		"39 digits":                     {"ci.yml", checkout, "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b # v7.0.1", "not pinned by 40 hex digits"},
		"no tag in a comment":           {"nightly.yml", checkout, strings.TrimSuffix(checkout, " # v7.0.1"), "not pinned by 40 hex digits"},
		"two versions":                  {"nightly.yml", checkout, "actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2", "two versions of actions/checkout"},
		"no timeout":                    {"ci.yml", "    timeout-minutes: 90\n", "", "timeout-minutes is 0"},
		"six hours":                     {"ci.yml", "timeout-minutes: 90", "timeout-minutes: 360", "timeout-minutes is 360"},
		"no permissions of a job":       {"ci.yml", "    permissions:\n      contents: read\n    steps", "    steps", "no permissions"},
		"no permissions of a workflow":  {"ci.yml", "permissions:\n  contents: read\n", "", "not contents: read"},
		"a job of CI that writes":       {"ci.yml", "      contents: read\n    steps", "      contents: write\n    steps", "writes contents"},
		"a nightly job that writes":     {"nightly.yml", "      contents: read\n    steps", "      contents: write\n    steps", "writes contents"},
		"checks of a release write":     {"release.yml", "      contents: read\n    steps", "      packages: write\n    steps", "writes packages"},
		"pull_request_target":           {"ci.yml", "  pull_request:\n", "  pull_request_target:\n", "trigger pull_request_target"},
		"workflow_run":                  {"ci.yml", "  pull_request:\n", "  workflow_run:\n", "trigger workflow_run"},
		"pull requests are not tested":  {"ci.yml", "  pull_request:\n", "", "not run for pull requests"},
		"main is not tested":            {"ci.yml", "branches: [main]", "branches: [master]", "not run for each push to main"},
		"superseded runs go on":         {"ci.yml", "cancel-in-progress: ${{ github.event_name == 'pull_request' }}", "cancel-in-progress: false", "superseded"},
		"a step that may fail":          {"nightly.yml", "- run: make faults FAULTS=short", "- run: make faults FAULTS=short\n        continue-on-error: true", "has the key continue-on-error"},
		"a job that may fail":           {"nightly.yml", "    timeout-minutes: 45\n", "    timeout-minutes: 45\n    continue-on-error: true\n", "has the key continue-on-error"},
		"another shell":                 {"release.yml", "run: .ci/run", "run: .ci/run\n        shell: \"true {0}\"", "has the key shell"},
		"a shell for all":               {"release.yml", "jobs:\n", "defaults: {run: {shell: \"true {0}\"}}\njobs:\n", "has the key defaults"},
		"flags of make for a job":       {"release.yml", "    timeout-minutes: 90\n", "    timeout-minutes: 90\n    env: {MAKEFLAGS: -i}\n", "has the key env"},
		"flags of make for a step":      {"ci.yml", "run: make workflows", "run: make workflows\n        env: {MAKEFLAGS: -i}", "sets MAKEFLAGS"},
		"the token for another step":    {"release.yml", "run: make release\n", "run: make release\n        env: {GH_TOKEN: \"${{ github.token }}\"}\n", "sets GH_TOKEN for make release"},
		"a command that is left out":    {"release.yml", "run: .ci/run", "run: .ci/run\n        if: github.actor != 'a'", "a command with an if"},
		"all secrets at once":           {"ci.yml", "go-version: \"1.26\"", "token: ${{ toJSON(secrets) }}", "reads a secret"},
		"any tag that begins with v":    {"release.yml", "tags: [\"v[0-9]*\"]", "tags: [\"v*\"]", "not for tags"},
		"a secret":                      {"ci.yml", "go-version: \"1.26\"", "token: ${{ secrets.TOKEN }}", "reads a secret"},
		"credentials are kept":          {"ci.yml", "persist-credentials: false", "persist-credentials: true", "keeps its credentials"},
		"CI without .ci/run":            {"ci.yml", "run: .ci/run", "run: make test", "no job runs .ci/run"},
		"CI without the image":          {"ci.yml", "run: make image-run CONTAINER_ENGINE=docker", "run: make image", "no job runs make image-run"},
		"no faults":                     {"nightly.yml", "make faults FAULTS=short", "make faults", "no job runs make faults FAULTS=short"},
		"a long soak":                   {"nightly.yml", "SOAK_FOR=5m", "SOAK_FOR=5h", "no job runs make soak SOAK_FOR=5m"},
		"the published accuracy":        {"nightly.yml", "ACCURACY=tiny", "ACCURACY=published", "no job runs make accuracy ACCURACY=tiny"},
		"no peers":                      {"nightly.yml", "run: make bench-peers PEERS_FLAGS=", "run: make bench PEERS_FLAGS=", "no job runs make bench-peers"},
		"a part of the stories":         {"nightly.yml", "PART=3/3", "PART=2/3", "no job runs make real-all VLLM_VERSION=newest PART=3/3"},
		"an old vLLM":                   {"nightly.yml", "VLLM_VERSION=newest PART=1/3", "VLLM_VERSION=0.32.0 PART=1/3", "no job runs make real-all VLLM_VERSION=newest PART=1/3"},
		"no vulnerabilities":            {"nightly.yml", "run: make govulncheck", "run: make lint", "no job runs make govulncheck"},
		"no schedule":                   {"nightly.yml", "  schedule:\n    - cron: \"17 2 * * *\"\n", "", "no schedule"},
		"not by hand":                   {"nightly.yml", "  workflow_dispatch:\n", "", "no workflow_dispatch"},
		"nothing is kept":               {"nightly.yml", "if: always()", "if: success()", "does not keep what was written"},
		"nothing is written":            {"nightly.yml", "if-no-files-found: error", "if-no-files-found: ignore", "does not keep what was written"},
		"two measurements in a job":     {"nightly.yml", "run: make soak SOAK_FOR=5m", "run: |\n          make soak SOAK_FOR=5m\n          make faults FAULTS=short", "runs 2 of the commands"},
		"a release of a branch":         {"release.yml", "tags: [\"v[0-9]*\"]", "branches: [main]", "not for tags v[0-9]* only"},
		"a release by hand":             {"release.yml", "  push:\n    tags", "  workflow_dispatch:\n  push:\n    tags", "not for tags v[0-9]* only"},
		"an unchecked release":          {"release.yml", "needs: [checks, image]", "needs: [image]", "does not need a job that runs .ci/run"},
		"checks that may be left out":   {"release.yml", "  checks:\n", "  checks:\n    if: github.actor == 'somebody'\n", "does not need a job that runs .ci/run"},
		"a release after failed checks": {"release.yml", "    needs: [checks, image]\n", "    needs: [checks, image]\n    if: always()\n", "publish has an if"},
		"a release without a person":    {"release.yml", "    environment: release\n", "", "no environment"},
		"a release with a cache":        {"release.yml", "cache: false", "cache: true", "takes Go's cache"},
		"nothing is released":           {"release.yml", "run: make release\n", "run: make build\n", "no job runs make release"},
		"nothing is published":          {"release.yml", "run: make release-publish\n", "run: make release\n", "no job runs make release-publish"},
		"a check publishes":             {"release.yml", "run: .ci/run\n", "run: |\n          .ci/run\n          make release-publish\n", "job checks: publishes"},
		"no archive in CI":              {"ci.yml", "run: make release-check", "run: make release-image", "no job runs make release-check"},
		"another job publishes":         {"release.yml", "  publish:\n", "  ship:\n", "no job publish"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := load(t)
			before := p.problems()
			p.edit(t, tc.file, tc.old, tc.replacement)

			var found []string
			for _, problem := range p.problems() {
				if strings.Contains(problem, tc.want) {
					found = append(found, problem)
				}
			}

			assert.NotEmpty(t, found, "not noticed")
			for _, problem := range before {
				assert.NotContains(t, problem, tc.want, "the workflow is not right without the change either")
			}
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"make", "bench-peers", `PEERS_FLAGS='-rounds 1 -scenarios "100 targets x 1 s"'`},
		words(`make bench-peers PEERS_FLAGS='-rounds 1 -scenarios "100 targets x 1 s"'`), "a quoted value is one word")
	assert.Equal(t, []string{".ci/run"}, words(" .ci/run\n"))
	assert.Empty(t, words("\n"))
}
