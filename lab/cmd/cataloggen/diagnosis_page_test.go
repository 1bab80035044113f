package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	require.NoError(t, err)
	return content
}

func readPage(t *testing.T) string {
	t.Helper()
	return string(readFile(t, "docs", "diagnosis.md"))
}

// What the README shows of "make run" has the sentences of today.
func TestTheReadmeShowsTheSentencesOfTheDiagnosis(t *testing.T) {
	content := readFile(t, "internal", "catalog", "diagnosis.yaml")
	var g diagnosis
	require.NoError(t, yaml.Unmarshal(content, &g))
	readme := readFile(t, "README.md")
	shown := strings.Join(strings.Fields(string(readme)), " ")
	found := false
	for _, s := range g.statements() {
		if s.Name == "slow_steps" {
			found = true
			for _, sentence := range []string{s.Sentence, s.Next[0].Text, s.Next[1].Text} {
				assert.Contains(t, shown, strings.ReplaceAll(sentence, "`", ""), "run make run, and put what it shows into the README")
			}
		}
	}
	require.True(t, found)
}

// The queries of the steps and those of the page use metrics and attributes of the catalogue.
func TestThePageUsesKnownMetricsAndLabels(t *testing.T) {
	content := readFile(t, "metadata.yaml")
	doc, err := parse(content)
	require.NoError(t, err)
	backend := map[string]metric{}
	for name, m := range doc.Metrics {
		translation := prometheusName(name, m.Unit, m.kind())
		backend[translation] = m
		if m.Histogram != nil {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				backend[translation+part] = m
			}
		}
	}
	g, err := parseDiagnosis(readFile(t, "internal", "catalog", "diagnosis.yaml"), doc)
	require.NoError(t, err)
	for _, s := range g.statements() {
		for _, step := range s.Next {
			for _, query := range step.Queries {
				checkExpression(t, backend, query)
			}
		}
	}
	for _, word := range quoted.FindAllStringSubmatch(readPage(t), -1) {
		if strings.HasPrefix(word[1], "vllm_") {
			checkExpression(t, backend, word[1])
		}
	}
}

func checkExpression(t *testing.T, backend map[string]metric, expression string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	require.NoError(t, err, expression)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		m, known := backend[selector.Name]
		require.True(t, known, "%s is not a metric of the catalogue", selector.Name)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel {
				assert.Contains(t, m.Attributes, matcher.Name, expression)
			}
		}
		return nil
	})
}
