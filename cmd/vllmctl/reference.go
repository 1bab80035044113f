package main

import (
	"errors"
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
		Use: "reference", Short: "Writes docs/reference/vllmctl.md and the schemas", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			files, err := referenceFiles(root)
			for name, text := range files {
				err = errors.Join(err, os.WriteFile(filepath.Join(root, "docs", "reference", name), text, 0o644))
			}
			return err
		},
	}
	command.Flags().StringVar(&root, "root", root, "the root of the checkout")
	return command
}

// referenceFiles are the page and the schemas, by their names below docs/reference. checkout is the
// root of one: the meanings of JSON keys are the comments in its sources.
func referenceFiles(checkout string) (map[string][]byte, error) {
	var sections []reference.Section
	files := map[string][]byte{}
	for _, of := range []func(checkout string) (reference.Section, error){checkSection, topSection, lintSection, backtestSection} {
		section, err := of(checkout)
		if err != nil {
			return nil, err
		}
		sections = append(sections, section)
		if files["vllmctl/"+section.Command+".schema.json"], err = section.Schema(); err != nil {
			return nil, err
		}
	}
	files["vllmctl.md"] = []byte(reference.Page(newRoot(), sections))
	return files, nil
}
