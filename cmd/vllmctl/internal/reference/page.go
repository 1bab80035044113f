// Package reference writes docs/reference/vllmctl.md from the commands themselves: their
// help texts, flags, JSON documents and codes.
package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Code is a code of a command, which gets a heading of its own.
type Code struct {
	// Name is what the output shows, Level how serious it is.
	Name, Level string
	// Finds is what it means, and Do what to do: whole sentences.
	Finds, Do string
	// Bad and Good are an example; empty where there is none.
	Bad, Good string
}

// Section is what a command has besides its help.
type Section struct {
	// Command is its name.
	Command string
	// Document describes the output of --json; nil if it has none.
	Document []Object
	// Codes are in the order of the page.
	Codes []Code
}

// Page writes the page.
func Page(root *cobra.Command, sections []Section) string {
	var b strings.Builder
	b.WriteString("# vllmctl\n\n<!-- Written by \"make generate\" from the commands. Do not edit. -->\n\n")
	b.WriteString(root.Long + "\n\n")
	b.WriteString("`make build` puts it at `bin/vllmctl`, and the image has it at `/vllmctl`.\n\n")
	b.WriteString("| Command | |\n|---|---|\n")
	commands := shown(root)
	for _, c := range commands {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c.CommandPath()), pageparts.Cell(c.Short))
	}
	b.WriteString("\n## Exit status\n\nAll commands end with the same numbers, with `--json` too:\n\n| Status | Meaning |\n|---|---|\n")
	for _, m := range status.Meanings {
		fmt.Fprintf(&b, "| %d | %s |\n", m.Status, pageparts.Cell(m.Meaning))
	}
	b.WriteString("\n| Command | Status | When |\n|---|---|---|\n")
	for _, row := range status.Table {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", row.Command, row.Status, pageparts.Cell(row.When))
	}
	for _, c := range commands {
		command(&b, c)
		for _, s := range sections {
			if s.Command == c.Name() {
				s.write(&b)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// shown are the subcommands that the help lists, in its order, without help itself.
func shown(root *cobra.Command) (out []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			out = append(out, c)
		}
	}
	return out
}

// anchor is the anchor of a heading on the rendered page.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(heading), " ", "-")
}

func command(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
	if c.HasAvailableSubCommands() {
		// Only completion, whose subcommands are made by cobra and explain themselves.
		fmt.Fprintf(b, "%s. `%s %s --help` and so on say how to load it.\n", c.Short, c.CommandPath(), c.Commands()[0].Name())
		return
	}
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n```\n%s\n```\n", strings.TrimSpace(long), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", unindented(c.Example))
	}
	rows := ""
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			rows += flagRow(f)
		}
	})
	if rows != "" {
		b.WriteString("\n| Flag | Meaning | Default |\n|---|---|---|\n" + rows)
	}
}

func flagRow(f *pflag.Flag) string {
	argument, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if argument != "" {
		name += " " + argument
	}
	value := f.DefValue
	if value == "[]" || value == "" || value == "false" {
		value = ""
	} else {
		value = "`" + value + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", pageparts.Cell(name), pageparts.Cell(upper(usage)), pageparts.Cell(value))
}

// upper begins a text with a capital letter.
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

func (s *Section) write(b *strings.Builder) {
	if len(s.Document) > 0 {
		fmt.Fprintf(b, "\n### JSON of %s\n", s.Command)
		for i, o := range s.Document {
			if i > 0 {
				fmt.Fprintf(b, "\n**%s**: %s\n", o.Name, o.Meaning)
			} else if o.Meaning != "" {
				fmt.Fprintf(b, "\n%s\n", o.Meaning)
			}
			b.WriteString("\n| Key | Type | Meaning |\n|---|---|---|\n")
			for _, f := range o.Fields {
				fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Key, pageparts.Cell(f.Type), pageparts.Cell(f.Meaning))
			}
		}
	}
	if len(s.Codes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Codes of %s\n\nThe codes are stable: scripts may rely on them.\n", s.Command)
	for _, c := range s.Codes {
		fmt.Fprintf(b, "\n#### %s\n\n", Heading(s.Command, c.Name))
		if c.Level != "" {
			fmt.Fprintf(b, "*%s.* ", upper(c.Level))
		}
		b.WriteString(c.Finds)
		if c.Do != "" {
			b.WriteString(" " + c.Do)
		}
		b.WriteString("\n")
		for _, example := range []struct{ name, text string }{{"Wrong", c.Bad}, {"Right", c.Good}} {
			if example.text != "" {
				fmt.Fprintf(b, "\n%s:\n\n```promql\n%s\n```\n", example.name, example.text)
			}
		}
	}
}

// Heading is the heading of a code. Its anchor is the text after the # of a link, since it has
// no spaces and no capital letters.
func Heading(command, code string) string { return command + "-" + code }

// Link is the address of the heading of a code.
func Link(command, code string) string {
	return "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/reference/vllmctl.md#" + Heading(command, code)
}
