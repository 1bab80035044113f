package reference_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
)

func TestTheKeysOfADocumentHaveTheCommentsOfItsFields(t *testing.T) {
	got, err := reference.Document("testdata/document", "Report")
	require.NoError(t, err)
	section := reference.Section{Command: "check", Document: got}
	schema, err := section.Schema()
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "vllmctl check --json", "$ref": "#/$defs/Report",
		"$defs": {
			"Report": {"type": "object", "description": "What a command found.", "required": ["version", "targets", "began"], "properties": {
				"version": {"type": "number", "description": "That of the format."},
				"targets": {"type": "array", "items": {"$ref": "#/$defs/Target"}, "description": "The servers, one each."},
				"counts": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Has numbers by name."},
				"began": {"type": "string", "format": "date-time", "description": "When it began."}
			}},
			"Target": {"type": "object", "description": "One server.", "required": ["level", "inner"], "properties": {
				"up": {"type": "boolean", "description": "Reports whether it answers."},
				"level": {"type": "string", "description": "A word."},
				"inner": {"$ref": "#/$defs/Target", "description": "Another target."}
			}}
		}
	}`, string(schema))
}

func TestAKeyWithoutAMeaningIsAnError(t *testing.T) {
	_, err := reference.Document("testdata/bad", "Bad")
	require.ErrorContains(t, err, `the field of the key "silent" of Bad has no comment`)
	require.ErrorContains(t, err, "Bad embeds Inner")
	_, err = reference.Document("testdata/bad", "Missing")
	require.ErrorContains(t, err, "there is no struct Missing")
	_, err = reference.Document("testdata/nowhere", "Bad")
	require.Error(t, err)
}

func TestThePageHasEachCommandFlagAndCode(t *testing.T) {
	root := &cobra.Command{Use: "ctl", Long: "ctl answers."}
	check := &cobra.Command{Use: "check URL...", Short: "Checks", Long: "Checks servers.", Example: "  ctl check a\n  ctl check b", Run: func(*cobra.Command, []string) {}}
	check.Flags().StringP("file", "f", "x", "read the `path`")
	check.Flags().Bool("json", false, "as JSON | one line")
	check.Flags().Bool("secret", false, "hidden")
	require.NoError(t, check.Flags().MarkHidden("secret"))
	root.AddCommand(check, &cobra.Command{Use: "internal", Hidden: true, Run: func(*cobra.Command, []string) {}},
		&cobra.Command{Use: "topic", Short: "A topic", Long: "It has:\n\n  a: 1\n\nText."})
	page := reference.Page(root, []reference.Section{{
		Command: "check",
		Codes:   []reference.Code{{Name: "dns", Level: "problem", Finds: "No address.", Bad: "a", Good: "b"}},
	}})
	for _, want := range []string{
		"| [`ctl check`](#ctl-check) | Checks |",
		"\n## ctl check\n\nChecks servers.\n\n```sh\nctl check a\nctl check b\n```\n\n```text\nctl check URL... [flags]\n\n",
		"-f, --file path   read the path (default \"x\")\n", "    --json        as JSON | one line\n",
		"[schema](vllmctl/check.schema.json)",
		"\n## A topic\n\nIt has:\n\n```\n  a: 1\n```\n\nText.\n",
		"\n### check-dns\n\n*Problem.* No address. Wrong: `a`. Right: `b`.\n",
		"| `check` | No problem. | ",
	} {
		assert.Contains(t, page, want)
	}
	for _, hidden := range []string{"--secret", "internal"} {
		assert.NotContains(t, page, hidden)
	}
	assert.True(t, strings.HasSuffix(reference.Link("check", "dns"), "/docs/reference/vllmctl.md#check-dns"))
}
