package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newReference returns the hidden command that writes the reference page.
func newReference(*cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Writes docs/reference/vllmctl.md",
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return errors.New("not written yet") },
	}
}
