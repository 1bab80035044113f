package catalog

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// metadata.yaml says in words what a family needs. The table says the same for programs.
func TestRequirementsAreThoseOfTheDescriptions(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "metadata.yaml"))
	require.NoError(t, err)
	var doc struct {
		Metrics map[string]struct {
			More string `yaml:"extended_documentation"`
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &doc))
	only := regexp.MustCompile(`Only (?:with|if the server runs with) (--[a-z-]+|[A-Z_]+=1)`)
	compared := 0
	for _, m := range All() {
		found := only.FindStringSubmatch(doc.Metrics[m.Name].More)
		if found == nil || len(m.Sources) == 0 || !strings.HasPrefix(m.Name, "vllm.") {
			continue
		}
		compared++
		if strings.HasPrefix(m.Name, "vllm.estimated_") {
			continue // They exist without the flag, and stay at 0.
		}
		requirement, has := RequirementOf(m.Sources[len(m.Sources)-1].Family)
		assert.True(t, has, m.Name)
		assert.Contains(t, requirement.Words, found[1], m.Name)
	}
	assert.GreaterOrEqual(t, compared, 8)
}

func TestEachRequirementIsOfAKnownFamily(t *testing.T) {
	for _, r := range requirements {
		known := false
		for _, m := range All() {
			for _, s := range m.Sources {
				known = known || strings.HasPrefix(s.Family, r.prefix)
			}
		}
		assert.True(t, known, r.prefix)
		assert.NotEmpty(t, r.Words)
		assert.True(t, r.Flag == "" || strings.Contains(r.Words, r.Flag), "the words name the flag: %s", r.prefix)
	}
	_, has := RequirementOf("vllm:num_requests_running")
	assert.False(t, has)
}
