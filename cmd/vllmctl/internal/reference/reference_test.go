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
	assert.Equal(t, []reference.Object{
		{"Report", "What a command found.", []reference.Field{
			{"version", "number", "That of the format."},
			{"targets", "list of Target", "The servers, one each."},
			{"counts", "object of number, may be absent", "Has numbers by name."},
			{"began", "time (RFC 3339)", "When it began."},
		}},
		{"Target", "One server.", []reference.Field{
			{"up", "true or false, may be absent", "Reports whether it answers."},
			{"level", "text", "A word."},
			{"inner", "Target", "Another target."},
		}},
	}, got)
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
	root.AddCommand(check, &cobra.Command{Use: "internal", Hidden: true, Run: func(*cobra.Command, []string) {}})
	root.InitDefaultCompletionCmd()
	page := reference.Page(root, []reference.Section{{
		Command:  "check",
		Document: []reference.Object{{Name: "Report", Meaning: "What was found.", Fields: []reference.Field{{"a", "text", "b|c"}}}, {Name: "Inner", Meaning: "One."}},
		Codes:    []reference.Code{{Name: "dns", Level: "problem", Finds: "No address.", Do: "Check it.", Bad: "a", Good: "b"}},
	}})
	for _, want := range []string{
		"| [`ctl check`](#ctl-check) | Checks |",
		"\n## ctl check\n\nChecks servers.\n\n```\nctl check URL... [flags]\n```\n\nExamples:\n\n```sh\nctl check a\nctl check b\n```\n",
		"| `-f, --file path` | Read the path | `x` |", `| ` + "`--json`" + ` | As JSON \| one line |  |`,
		"\n### JSON of check\n\nWhat was found.\n\n| Key | Type | Meaning |\n|---|---|---|\n| `a` | text | b\\|c |\n\n**Inner**: One.\n",
		"\n#### check-dns\n\n*Problem.* No address. Check it.\n\nWrong:\n\n```promql\na\n```\n\nRight:\n\n```promql\nb\n```\n",
		"\n## ctl completion\n",
		"| 3 | Only with `--strict`: there are warnings and no problem. |",
	} {
		assert.Contains(t, page, want)
	}
	for _, hidden := range []string{"--secret", "internal", "--help |"} {
		assert.NotContains(t, page, hidden)
	}
	assert.True(t, strings.HasSuffix(reference.Link("check", "dns"), "/docs/reference/vllmctl.md#check-dns"))
}
