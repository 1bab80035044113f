package hosted

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const root = "../../.."

// A workflow is a file in .github/workflows, as far as the rules look at it.
type workflow struct {
	Triggers    map[string]trigger `yaml:"on"`
	Permissions map[string]string  `yaml:"permissions"`
	Concurrency struct {
		Cancel any `yaml:"cancel-in-progress"`
	} `yaml:"concurrency"`
	Jobs map[string]*job `yaml:"jobs"`

	// text is the file itself: comments are not in the rest.
	text string
}

type trigger struct {
	Branches []string `yaml:"branches"`
	Tags     []string `yaml:"tags"`
}

// UnmarshalYAML also takes the list of a schedule, of which the rules want to know only that
// it is there.
func (t *trigger) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	type plain trigger
	return node.Decode((*plain)(t))
}

type job struct {
	Needs       list              `yaml:"needs"`
	If          string            `yaml:"if"`
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Environment string            `yaml:"environment"`
	Steps       []*step           `yaml:"steps"`
}

type step struct {
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	If   string            `yaml:"if"`
	With map[string]any    `yaml:"with"`
	Env  map[string]string `yaml:"env"`
}

// list is one word or several.
type list []string

func (l *list) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*l = list{node.Value}
		return nil
	}
	return node.Decode((*[]string)(l))
}

// A project is what is judged: the workflows by name, and what their steps may call.
type project struct {
	workflows map[string]*workflow
	// targets are those of the Makefile, variables what can be set for them.
	targets, variables map[string]bool
}

func load(t *testing.T) *project {
	t.Helper()
	p := &project{map[string]*workflow{}, map[string]bool{}, map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	require.NoError(t, err)
	for _, file := range files {
		w := &workflow{text: read(t, file)}
		require.NoError(t, yaml.Unmarshal([]byte(w.text), w), file)
		p.workflows[filepath.Base(file)] = w
	}
	makefile := read(t, filepath.Join(root, "Makefile"))
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(makefile, -1) {
		p.targets[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+) *\?=`).FindAllStringSubmatch(makefile, -1) {
		p.variables[m[1]] = true
	}
	// This one is looked at only in a recipe.
	for _, m := range regexp.MustCompile(`\$\(or \$\(([A-Z]+)\)`).FindAllStringSubmatch(makefile, -1) {
		p.variables[m[1]] = true
	}
	return p
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}

// words splits a command as a shell does, and keeps the quotes.
func words(command string) []string {
	return regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(command, -1)
}

// runs reports whether a step of the job runs a command that begins with these words.
func (j *job) runs(command string) bool {
	for _, s := range j.Steps {
		for line := range strings.Lines(s.Run) {
			if line = strings.TrimSpace(line); line == command || strings.HasPrefix(line, command+" ") {
				return true
			}
		}
	}
	return false
}

// first is the first step that uses an action, nil without one.
func (j *job) first(action string) *step {
	for _, s := range j.Steps {
		if strings.HasPrefix(s.Uses, action+"@") {
			return s
		}
	}
	return nil
}
