package runbook

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

//go:embed commands.yaml
var commandsFile []byte

// command is what can be copied for a step; the head of commands.yaml explains the keys.
type command struct {
	Name  string `yaml:"name"`
	For   string `yaml:"for"`
	After string `yaml:"after"`
	Run   string `yaml:"run"`
	Note  string `yaml:"note"`
}

// commands are all of the file. A test decodes it without unknown keys.
var commands = sync.OnceValue(func() (all []command) {
	if err := yaml.Unmarshal(commandsFile, &all); err != nil {
		panic(err) // the file is part of the program
	}
	return all
})

// commandsFor returns the commands of a step that the page does not offer yet, and marks them as offered.
func commandsFor(text string, offered map[string]bool) (found []command) {
	all := commands()
	var offer func(c command)
	offer = func(c command) {
		if !offered[c.Name] {
			offered[c.Name] = true
			if i := slices.IndexFunc(all, func(o command) bool { return o.Name == c.After }); i >= 0 {
				offer(all[i])
			}
			found = append(found, c)
		}
	}
	for _, c := range all {
		if c.For != "" && regexp.MustCompile(c.For).MatchString(text) {
			offer(c)
		}
	}
	return found
}

// preparation leads to what the commands of a page need.
const preparation = "First paste the [set-up](README.md#before-the-commands) into your shell.\n\n"

func flagsPage() []byte {
	var b strings.Builder
	b.WriteString(generated)
	b.WriteString("# Flags of vLLM\n\n[All runbooks](README.md)\n\nVersions and defaults are those of vLLM 0.8.5 to 0.32.\n\n" +
		"| Flag | Value, default, version | What it sets | Larger, or on | Smaller, or off |\n|---|---|---|---|---|\n")
	for _, f := range catalog.Flags() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, pageparts.Cell(f.Values), pageparts.Cell(f.Meaning), pageparts.Cell(f.Raise), pageparts.Cell(f.Lower))
	}
	return []byte(b.String())
}
