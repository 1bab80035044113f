package hosted

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheWorkflowsKeepTheRules(t *testing.T) {
	t.Parallel()
	p := load(t)
	assert.ElementsMatch(t, []string{"ci.yml", "nightly.yml", "release.yml"}, slices.Collect(maps.Keys(p.workflows)))
	for _, problem := range p.problems() {
		assert.Fail(t, problem)
	}
}

const (
	verification = ".ci/run"
	longest      = 120 // Minutes.
)

// nightly are the measurements in their short forms.
var nightly = []string{
	"make faults FAULTS=short",
	"make soak SOAK_FOR=5m",
	"make accuracy ACCURACY=tiny",
	`make bench-peers PEERS_FLAGS='-short -least 3'`,
	"make real-all VLLM_VERSION=newest PART=1/3",
	"make real-all VLLM_VERSION=newest PART=2/3",
	"make real-all VLLM_VERSION=newest PART=3/3",
	"make vllm-families",
	"make router-families",
	"make newest",
	"make govulncheck",
	"make test-cluster",
	"make test-servers",
}

// problems lists what is wrong with the workflows, each in words that name its place.
func (p *project) problems() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.workflows)) {
		w := p.workflows[name]
		for _, problem := range slices.Concat(w.open(), w.pins(), w.strange()) {
			out = append(out, name+": "+problem)
		}
		for _, id := range slices.Sorted(maps.Keys(w.Jobs)) {
			for _, problem := range slices.Concat(w.Jobs[id].bounds(name, id), p.steps(w.Jobs[id])) {
				out = append(out, name+", job "+id+": "+problem)
			}
		}
	}
	return slices.Concat(out, p.ci(), p.nightly(), p.release(), p.samePins())
}

// open finds what lets strangers do more than to have their change tested.
func (w *workflow) open() []string {
	var out []string
	for name := range w.Triggers {
		if !slices.Contains([]string{"pull_request", "push", "schedule", "workflow_dispatch"}, name) {
			out = append(out, "the trigger "+name+" is not one of those that run with the rights of the change only")
		}
	}
	if !maps.Equal(w.Permissions, map[string]string{"contents": "read"}) {
		out = append(out, "the permissions of the workflow are not contents: read")
	}
	if regexp.MustCompile(`(?m)^[^#\n]*\bsecrets\b`).MatchString(w.text) {
		out = append(out, "it reads a secret")
	}
	return out
}

var pinned = regexp.MustCompile(`^\s*(?:- )?uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$`)

func (w *workflow) pins() []string {
	var out []string
	for line := range strings.Lines(w.text) {
		line = strings.TrimRight(line, "\n")
		if regexp.MustCompile(`^\s*(- )?uses:`).MatchString(line) && !pinned.MatchString(line) {
			out = append(out, "not pinned by 40 hex digits with the tag behind it: "+strings.TrimSpace(line))
		}
	}
	return out
}

// samePins finds an action that has two versions.
func (p *project) samePins() []string {
	var out []string
	seen := map[string]string{}
	for name, w := range p.workflows {
		for line := range strings.Lines(w.text) {
			if m := pinned.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				if before, there := seen[m[1]]; there && before != m[2]+m[3] {
					out = append(out, name+": two versions of "+m[1])
				}
				seen[m[1]] = m[2] + m[3]
			}
		}
	}
	return out
}

// bounds finds a job without an end, or with rights that it does not need.
func (j *job) bounds(file, id string) []string {
	var out []string
	if j.Timeout < 1 || j.Timeout > longest {
		out = append(out, fmt.Sprintf("timeout-minutes is %d, want 1 to %d", j.Timeout, longest))
	}
	if len(j.Permissions) == 0 {
		out = append(out, "no permissions")
	}
	if j.runs("make release-publish") && (file != "release.yml" || id != "publish") {
		out = append(out, "publishes")
	}
	for right, level := range j.Permissions {
		if level != "read" && (file != "release.yml" || id != "publish") {
			out = append(out, "writes "+right)
		}
	}
	for _, s := range j.Steps {
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
			out = append(out, "the checkout keeps its credentials for later steps")
		}
		if s.Uses != "" && regexp.MustCompile(`@[0-9a-f]{40}$`).FindString(s.Uses) == "" {
			out = append(out, "not pinned: "+s.Uses)
		}
	}
	return out
}

// steps finds commands that a person could not run in a checkout.
func (p *project) steps(j *job) []string {
	var out []string
	for _, s := range j.Steps {
		if (s.Run == "") == (s.Uses == "") {
			out = append(out, "a step that has not one of run and uses")
		}
		if strings.ContainsAny(s.Run, "$`;&|<>\\") {
			out = append(out, "more than a command, or something that is put into the shell's line: "+s.Run)
			continue
		}
		for line := range strings.Lines(s.Run) {
			if problem := p.command(words(line)); problem != "" {
				out = append(out, problem)
			}
		}
	}
	return out
}

func (p *project) command(command []string) string {
	switch {
	case len(command) == 0:
		return ""
	case strings.HasPrefix(command[0], ".ci/"):
		if info, err := os.Stat(filepath.Join(root, command[0])); err != nil || info.Mode()&0o111 == 0 {
			return "no such script: " + command[0]
		}
		return ""
	case command[0] != "make" || len(command) == 1:
		return "neither a target nor a script: " + strings.Join(command, " ")
	}
	for _, word := range command[1:] {
		if name, _, assigned := strings.Cut(word, "="); assigned {
			if !p.variables[name] {
				return "the Makefile has no variable " + name
			}
		} else if !p.targets[word] {
			return "the Makefile has no target " + word
		}
	}
	return ""
}

// ci finds what is not checked before a change lands.
func (p *project) ci() []string {
	var out []string
	w := p.workflows["ci.yml"]
	if push := w.Triggers["push"]; !slices.Equal(push.Branches, []string{"main"}) {
		out = append(out, "ci.yml: not run for each push to main")
	}
	if _, there := w.Triggers["pull_request"]; !there {
		out = append(out, "ci.yml: not run for pull requests")
	}
	if w.Concurrency.Cancel != "${{ github.event_name == 'pull_request' }}" {
		out = append(out, "ci.yml: a superseded run of a pull request goes on, or one of main ends early")
	}
	return append(out, missing("ci.yml", w, verification, "make workflows", "make image-run", "make release-check")...)
}

func (p *project) nightly() []string {
	var out []string
	w := p.workflows["nightly.yml"]
	for _, name := range []string{"schedule", "workflow_dispatch"} {
		if _, there := w.Triggers[name]; !there {
			out = append(out, "nightly.yml: no "+name)
		}
	}
	for id, j := range w.Jobs {
		if kept := j.first("actions/upload-artifact"); kept == nil || kept.If != "always()" || kept.With["if-no-files-found"] != "error" {
			out = append(out, "nightly.yml, job "+id+": does not keep what was written where it fails")
		}
		if count := len(slices.DeleteFunc(slices.Clone(nightly), func(c string) bool { return !j.runs(strings.TrimSpace(c)) })); count != 1 {
			out = append(out, fmt.Sprintf("nightly.yml, job %s: runs %d of the commands, want one in each job", id, count))
		}
	}
	return append(out, missing("nightly.yml", w, nightly...)...)
}

// release finds ways to publish what was not checked.
func (p *project) release() []string {
	var out []string
	w := p.workflows["release.yml"]
	if push := w.Triggers["push"]; len(w.Triggers) != 1 || !slices.Equal(push.Tags, []string{"v[0-9]*"}) || len(push.Branches) != 0 {
		out = append(out, "release.yml: not for tags v[0-9]* only, of which \"make release\" compares each with the version")
	}
	publish := w.Jobs["publish"]
	if publish == nil {
		return append(out, "release.yml: no job publish")
	}
	if publish.If != "" {
		out = append(out, "release.yml: publish has an if, which can let it run although a job that it needs has failed")
	}
	checked := slices.ContainsFunc(publish.Needs, func(id string) bool { return w.Jobs[id] != nil && w.Jobs[id].If == "" && w.Jobs[id].runs(verification) })
	if !checked {
		out = append(out, "release.yml: publish does not need a job that runs "+verification)
	}
	if publish.Environment == "" {
		out = append(out, "release.yml: publish has no environment, which a person has to let through")
	}
	for id, j := range w.Jobs {
		if s := j.first("actions/setup-go"); s != nil && s.With["cache"] != false {
			out = append(out, "release.yml, job "+id+": takes Go's cache, into which another run has written")
		}
	}
	return append(out, missing("release.yml", w, "make release", "make release-publish")...)
}

// The archives are built on the hosted machine and the image by the Dockerfile.
func TestAReleaseIsBuiltWithOneVersionOfGo(t *testing.T) {
	t.Parallel()
	image := regexp.MustCompile(`\bgolang:([0-9.]+)-`).FindStringSubmatch(read(t, filepath.Join(root, "Dockerfile")))
	require.NotNil(t, image, "the Dockerfile names no version of Go")
	version, _ := load(t).workflows["release.yml"].Jobs["publish"].first("actions/setup-go").With["go-version"].(string)
	assert.True(t, version == image[1] || strings.HasPrefix(version, image[1]+"."), "Go %s in release.yml, %s in the Dockerfile", version, image[1])
}

// missing lists the commands that no job runs.
func missing(name string, w *workflow, commands ...string) []string {
	var out []string
	for _, command := range commands {
		found := false
		for _, j := range w.Jobs {
			found = found || j.runs(strings.TrimSpace(command))
		}
		if !found {
			out = append(out, name+": no job runs "+command)
		}
	}
	return out
}
