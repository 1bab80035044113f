// Package reference writes docs/reference/vllmctl.md from the commands themselves: their
// help texts, flags, JSON documents and codes.
package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Code is a code of a command, which gets a heading of its own.
type Code struct {
	// Name is what the output shows, Level how serious it is.
	Name, Level string
	// Finds is what it means, in whole sentences.
	Finds string
	// Bad and Good are an example; empty where there is none.
	Bad, Good string
}

// Section is what a command has besides its help.
type Section struct {
	// Command is its name.
	Command string
	// Document describes the output of --json.
	Document []Object
	// Codes are in the order of the page.
	Codes []Code
}

// Page writes the page.
func Page(root *cobra.Command, sections []Section) string {
	var b strings.Builder
	b.WriteString("<!-- Written by \"make generate\" from the commands. Do not edit. -->\n\n# vllmctl\n\n")
	b.WriteString(root.Long + "\n\n")
	b.WriteString("`make build` writes `bin/vllmctl`; the image has `/vllmctl`. `vllmctl completion --help` sets up your shell.\n\n")
	b.WriteString("| Command | Answer |\n|---|---|\n")
	for _, s := range sections {
		c := find(root, s.Command)
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c.CommandPath()), pageparts.Cell(c.Short))
	}
	b.WriteString("\n## Exit status\n\n" + status.Meaning + "\n\n| Command | 0 | 1 | 2 | 3 |\n|---|---|---|---|---|\n")
	for _, row := range status.Table {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.Command, strings.Join(row.When[:], " | "))
	}
	for _, s := range sections {
		command(&b, find(root, s.Command))
		fmt.Fprintf(&b, "\n`--json` has a [schema](vllmctl/%s.schema.json) with the meaning of each key.\n", s.Command)
	}
	for _, c := range root.Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.Short, fenced(c.Long))
		}
	}
	for _, s := range sections {
		s.writeCodes(&b)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func find(root *cobra.Command, name string) *cobra.Command {
	return root.Commands()[slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name })]
}

// anchor is the anchor of a heading on the rendered page.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}

func command(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```sh\n%s\n```\n", c.CommandPath(), fenced(c.Long), unindented(c.Example))
	fmt.Fprintf(b, "\n```text\n%s\n\n%s\n```\n", c.UseLine(), unindented(OwnFlags(c)))
}

// OwnFlags are the flags of a command as its help shows them: in place of those that all commands
// share, it names the topic of the help that has them.
func OwnFlags(c *cobra.Command) string {
	own, others := pflag.NewFlagSet("", pflag.ContinueOnError), false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if connect.Shared().Lookup(f.Name) != nil {
			others = true
		} else {
			own.AddFlag(f)
		}
	})
	text := own.FlagUsages()
	if others {
		text += "  and flags for credentials, TLS and a proxy: vllmctl help connection\n"
	}
	return text
}

// fenced puts the indented parts of a text into fences.
func fenced(text string) string {
	lines, inside := []string{}, false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != inside && (indented || line == "") {
			lines, inside = append(lines, "```"), indented
		}
		lines = append(lines, line)
	}
	if inside {
		lines = append(lines, "```")
	}
	return strings.Join(lines, "\n")
}

// upper starts a text with a capital letter.
func upper(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// unindented takes away the two spaces that examples have in the help.
func unindented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func (s *Section) writeCodes(b *strings.Builder) {
	if len(s.Codes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Codes of %s\n\nThe codes are stable. The output says what to do.\n", s.Command)
	for _, c := range s.Codes {
		fmt.Fprintf(b, "\n### %s\n\n", Heading(s.Command, c.Name))
		if c.Level != "" {
			fmt.Fprintf(b, "*%s.* ", upper(c.Level))
		}
		b.WriteString(c.Finds)
		if c.Bad != "" && c.Bad != c.Good {
			fmt.Fprintf(b, " Wrong: `%s`. Right: `%s`.", c.Bad, c.Good)
		}
		b.WriteString("\n")
	}
}

// Heading is the heading of a code. Its anchor is the text after the # of a link, since it has
// no spaces and no capital letters.
func Heading(command, code string) string { return command + "-" + code }

// Link is the address of the heading of a code.
func Link(command, code string) string {
	return "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/reference/vllmctl.md#" + Heading(command, code)
}
