package catalog

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

var update = flag.Bool("update", false, "rewrite testdata/unknown from the recorded bodies")

// The catalogue knows each family of the recorded bodies. For those of SGLang, testdata/unknown has the
// families that it does not know, with the kind from their TYPE line.
func TestEveryRecordedFamilyIsKnownOrListed(t *testing.T) {
	for _, file := range captures.Files(t) {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			families := declaredFamilies(string(body))
			require.NotEmpty(t, families)
			var unknown []string
			for _, family := range slices.Sorted(maps.Keys(families)) {
				if !known(family, families[family]) {
					unknown = append(unknown, family+" "+families[family]+"\n")
				}
			}
			if !strings.HasPrefix(name, "sglang-") {
				assert.Empty(t, unknown, "vLLM, LMCache and the gateways are covered in full")
				return
			}
			golden := filepath.Join("testdata", "unknown", name)
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(strings.Join(unknown, "")), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "run the test with -update and review the difference")
			assert.Equal(t, string(want), strings.Join(unknown, ""))
		})
	}
}

// The recorded scrapes over time are from a simulator of vLLM.
func TestEveryFamilyOfTheRecordedSeriesIsKnown(t *testing.T) {
	root := filepath.Join(captures.Dir(t), "series")
	bodies := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txt" {
			return err
		}
		bodies++
		body, err := os.ReadFile(path)
		for family, kind := range declaredFamilies(string(body)) {
			assert.True(t, known(family, kind), "%s: %s %s", filepath.Base(path), family, kind)
		}
		return err
	}))
	assert.Positive(t, bodies)
}

// known reports whether the catalogue has the family with this kind.
func known(family, kind string) bool {
	for _, prefix := range Prefixes {
		if rest, ours := strings.CutPrefix(family, prefix); ours {
			family = Prefixes[0] + rest
			break
		}
	}
	if slices.ContainsFunc(InfoFamilies, func(f InfoFamily) bool { return f.Family == family }) {
		return kind == "gauge"
	}
	kinds := map[string]Kind{"counter": KindSum, "gauge": KindGauge, "histogram": KindHistogram, "summary": KindSummary}
	want, typed := kinds[kind]
	return typed && slices.ContainsFunc(BySource(family), func(m Match) bool { return m.Metric.Kind == want })
}

// declaredFamilies returns the kind of every family of a body by its name in the text
// format. It reads TYPE lines, and samples without a TYPE line. Series of start times do
// not count as families.
func declaredFamilies(body string) map[string]string {
	families := map[string]string{}
	var samples []string
	openMetrics := strings.HasSuffix(strings.TrimSpace(body), "# EOF")
	for line := range strings.Lines(body) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 4 && fields[0] == "#" && fields[1] == "TYPE":
			name := fields[2]
			if openMetrics && fields[3] == "counter" {
				name += "_total"
			}
			families[name] = fields[3]
		case len(fields) >= 2 && !strings.HasPrefix(line, "#"):
			samples = append(samples, fields[0][:strings.IndexAny(fields[0]+"{", "{")])
		}
	}
	for _, sample := range samples {
		covered := families[sample] != ""
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			kind := families[strings.TrimSuffix(sample, suffix)]
			covered = covered || strings.HasSuffix(sample, suffix) && (kind == "histogram" || kind == "summary")
		}
		if !covered {
			families[sample] = "untyped"
		}
	}
	maps.DeleteFunc(families, func(name, _ string) bool {
		base, created := strings.CutSuffix(name, "_created")
		return created && (families[base] != "" || families[base+"_total"] != "")
	})
	return families
}

func TestDeclaredFamiliesOfASmallBody(t *testing.T) {
	body := "# HELP a_total Something.\n# TYPE a_total counter\na_total{x=\"{\"} 1.0\n# TYPE a_created gauge\na_created 5\n" +
		"# TYPE bare gauge\n# TYPE h_total histogram\nh_total_bucket{le=\"+Inf\"} 0\nh_total_sum 0\nh_total_count 0\nstray 3\nstray_sum 3\n"
	assert.Equal(t, map[string]string{
		"a_total": "counter", "bare": "gauge", "h_total": "histogram", "stray": "untyped", "stray_sum": "untyped",
	}, declaredFamilies(body))
	assert.Equal(t, map[string]string{"b_total": "counter"},
		declaredFamilies("# TYPE b counter\nb_total 1\nb_created 5\n# EOF\n"))
}
