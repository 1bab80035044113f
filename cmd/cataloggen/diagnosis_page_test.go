package main

import (
	"os"
	"path/filepath"
	"regexp"
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
	content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
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

// The alerts use metrics and attributes of the catalogue.
func TestTheAlertsOfThePageUseKnownMetricsAndLabels(t *testing.T) {
	content := readFile(t, "metadata.yaml")
	doc, err := parse(content)
	require.NoError(t, err)
	backend := map[string]metric{}
	for name, m := range doc.Metrics {
		translation, err := translated(name, m)
		require.NoError(t, err)
		backend[translation] = m
		if m.Histogram != nil {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				backend[translation+part] = m
			}
		}
	}
	alerts := pageAlerts(t)
	for _, expression := range alerts {
		checkExpression(t, backend, expression)
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
	for _, s := range g.statements() {
		for _, step := range s.Next {
			for _, query := range step.Queries {
				checkExpression(t, backend, query)
			}
		}
	}
	readme := readFile(t, "README.md")
	assert.Contains(t, string(readme), "\n        expr: "+alerts["VLLMNotServing"]+"\n", "the README's alert is the page's")
	for _, word := range quoted.FindAllStringSubmatch(readPage(t), -1) {
		if strings.HasPrefix(word[1], "vllm_") {
			checkExpression(t, backend, word[1])
		}
	}
}

// pageAlerts returns the expressions of the page's alerts by their names.
func pageAlerts(t *testing.T) map[string]string {
	t.Helper()
	alerts := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readPage(t), -1) {
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &rules))
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				alerts[rule.Alert] = rule.Expr
			}
		}
	}
	require.Len(t, alerts, 4)
	return alerts
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
