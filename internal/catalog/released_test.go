package catalog

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var updateReleased = flag.Bool("update-released", false, "add new metrics to the list of released names")

// complete is set by "make release".
var complete = flag.Bool("complete", false, "fail if the list of released names does not have all of them")

// mistaken are lines of a release with attributes that no server has ever had. What is emitted has not changed.
var mistaken = []string{`vllm.admission_rejections sum "{rejection}" engine,model_name`}

const releasedFile = "testdata/released.txt"

// releasedLine is what is promised of a metric.
func releasedLine(m *Metric) string {
	keys := slices.Sorted(slices.Values(m.Attributes))
	return strings.TrimRight(fmt.Sprintf("%s %s %q %s", m.Name, m.Kind, m.Unit, strings.Join(keys, ",")), " ")
}

// The name, kind, unit and attribute keys of a released metric never change: dashboards, alerts
// and stored data depend on them. docs/reference/naming.md describes how to make a change
// nevertheless: then the table of deprecations has it.
func TestReleasedNamesStay(t *testing.T) {
	var now []string
	for i := range All() {
		now = append(now, releasedLine(&All()[i]))
	}
	content, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	released := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.GreaterOrEqual(t, len(released), 561, "0.2.0 has 561 metrics; a line is never removed")
	for _, line := range vanished(released, slices.Concat(now, mistaken), Deprecations()) {
		t.Errorf("%s was released and is gone or differs; put the change behind a feature gate, and enter it under deprecations in metadata.yaml "+
			"(docs/reference/naming.md, Changing a name)", line)
	}
	if *complete {
		assert.Empty(t, unlisted(released, now), "a release promises them, and a later change of them would not be noticed; add them to %s: "+
			"go test ./internal/catalog -run Released -update-released", releasedFile)
	}
	if *updateReleased {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(released), now...))))
		require.NoError(t, os.WriteFile(releasedFile, []byte(strings.Join(all, "\n")+"\n"), 0o600))
	}
}

// unlisted returns what is there and not in the list: a later change of it would not be noticed.
func unlisted(released, now []string) (lines []string) {
	for _, line := range now {
		if !slices.Contains(released, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestWhatIsNewIsNotInTheListYet(t *testing.T) {
	assert.Equal(t, []string{"c"}, unlisted([]string{"a", "b"}, []string{"b", "c"}))
	assert.Empty(t, unlisted([]string{"a", "b"}, []string{"b"}))
}

// vanished returns the released lines that are not there now and that no entry explains.
func vanished(released, now []string, table []Deprecation) (lines []string) {
	for _, line := range released {
		name, _, _ := strings.Cut(line, " ")
		explained := slices.ContainsFunc(table, func(d Deprecation) bool {
			return d.Kind == "metric" && d.Name == name && d.Gone != "" && d.Promised || d.Kind == "form" && d.Name == name && d.Gate != ""
		})
		if !slices.Contains(now, line) && !explained {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAMetricCannotVanishWithoutAnEntry(t *testing.T) {
	released := []string{`a gauge "1" x`, `b sum "s"`}
	for name, test := range map[string]struct {
		now   []string
		table []Deprecation
		want  []string
	}{
		"all there":       {released, nil, nil},
		"more than there": {append([]string{`c gauge "1"`}, released...), nil, nil},
		"gone":            {released[:1], nil, released[1:]},
		"another unit":    {[]string{`a gauge "1" x`, `b sum "ms"`}, nil, released[1:]},
		"another key":     {[]string{`a gauge "1" x,y`, `b sum "s"`}, nil, released[:1]},
		"entered":         {released[:1], []Deprecation{{Kind: "metric", Name: "b", Since: "0.2.0", Gone: "0.4.0", Promised: true}}, nil},
		"not promised":    {released[:1], []Deprecation{{Kind: "metric", Name: "b", Since: "0.2.0", Gone: "0.2.0"}}, released[1:]},
		"still promised":  {released[:1], []Deprecation{{Kind: "metric", Name: "b", Since: "0.2.0", Promised: true}}, released[1:]},
		"an alert":        {released[:1], []Deprecation{{Kind: "alert", Name: "b", Since: "0.2.0", Gone: "0.4.0", Promised: true}}, released[1:]},
		"behind a gate":   {[]string{`a gauge "1" x`, `b sum "ms"`}, []Deprecation{{Kind: "form", Name: "b", Since: "0.2.0", Gate: "receiver.vllm.seconds"}}, nil},
	} {
		assert.Equal(t, test.want, vanished(released, test.now, test.table), name)
	}
}

// The table says which feature gate restores a former form, so each gate of the code is in it.
func TestTheTableHasTheFeatureGatesOfTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	declared := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "metadata.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 4)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var component struct {
			FeatureGates []struct{ ID string } `yaml:"feature_gates"`
		}
		require.NoError(t, yaml.Unmarshal(content, &component), file)
		for _, gate := range component.FeatureGates {
			declared[gate.ID] = true
		}
	}
	registered := map[string]bool{}
	register := regexp.MustCompile(`MustRegister\(\s*"([^"]+)"`)
	for _, folder := range []string{"receiver", "processor", "connector", "extension", "internal"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(file string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			content, err := os.ReadFile(file)
			for _, found := range register.FindAllStringSubmatch(string(content), -1) {
				registered[found[1]] = true
			}
			return err
		}))
	}
	tabled := map[string]bool{}
	for _, d := range Deprecations() {
		if d.Gate != "" {
			tabled[d.Gate] = true
		}
	}
	assert.NotEmpty(t, registered)
	assert.Equal(t, registered, declared, "gates that the code registers and that the components' metadata.yaml declare")
	assert.Equal(t, registered, tabled, "gates that the code registers and that the table of deprecations has")
}
