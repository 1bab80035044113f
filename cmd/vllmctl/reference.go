package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
)

//go:generate go run . reference --root ../..

// newReference returns the hidden command that writes the reference page from all commands.
func newReference() *cobra.Command {
	root := "."
	command := &cobra.Command{
		Use: "reference", Short: "Writes docs/reference/vllmctl.md", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			page, err := referencePage(root)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "docs", "reference", "vllmctl.md"), []byte(page), 0o644)
		},
	}
	command.Flags().StringVar(&root, "root", root, "the root of the checkout")
	return command
}

// referencePage writes the page. checkout is the root of one: the meanings of JSON keys are
// the comments in its sources.
func referencePage(checkout string) (string, error) {
	var sections []reference.Section
	for _, of := range []func(checkout string) (reference.Section, error){backtestSection, checkSection, lintSection, topSection} {
		section, err := of(checkout)
		if err != nil {
			return "", err
		}
		sections = append(sections, section)
	}
	root := newRoot()
	root.InitDefaultCompletionCmd() // Otherwise cobra adds it when a command line is carried out.
	return reference.Page(root, sections), nil
}
