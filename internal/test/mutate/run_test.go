package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A small module, whose tests are known to kill some mutations and not others.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.25.0\n",
	"c/internal/x/x.go": `package x

func Old(age int) bool { return age > 17 }

func Even(n int) bool { return n%2 == 0 }

func Busy(n int) bool { return n > 3 }

func Words(a, b string) string { return a + b }
`,
	"c/internal/x/x_test.go": `package x

import "testing"

func TestOld(t *testing.T) {
	if !Old(18) || Old(17) {
		t.Fatal()
	}
}
`,
	"c/c.go": "package c\n\nimport \"example.com/m/c/internal/x\"\n\nfunc Even(n int) bool { return x.Even(n) }\n",
	"c/c_test.go": `package c

import "testing"

func TestEven(t *testing.T) {
	if !Even(4) {
		t.Fatal()
	}
}
`,
}

func runnerOf(t *testing.T, files map[string]string) *runner {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return &runner{root: root, allowed: map[suite]time.Duration{}}
}

// at returns the mutation at the given text of x.go, as gremlins would list it.
func at(t *testing.T, text, kind string) mutation {
	t.Helper()
	const file = "c/internal/x/x.go"
	content := module[file]
	offset := strings.Index(content, text)
	require.NotEqual(t, -1, offset, text)
	line := 1 + strings.Count(content[:offset], "\n")
	found, err := mutationsOf(file, []byte(content), []listed{{kind, line, offset - strings.LastIndex(content[:offset], "\n")}})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func TestOwnTestsRunFirstThenTheParents(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program several times")
	}
	r := runnerOf(t, module)
	for _, s := range suites("c/internal/x/x.go") {
		require.NoError(t, r.measure(t.Context(), s))
	}
	for _, c := range []struct {
		text, kind string
		want       verdict
	}{
		{"> 17", "CONDITIONALS_BOUNDARY", killedByOwn},
		{"== 0", "CONDITIONALS_NEGATION", killedByParent},
		{"> 3", "CONDITIONALS_BOUNDARY", survived},
	} {
		got, late, err := r.judge(t.Context(), at(t, c.text, c.kind))
		require.NoError(t, err)
		assert.False(t, late, c.text)
		assert.Equal(t, c.want, got, c.text)
	}
	unchanged, err := os.ReadFile(filepath.Join(r.root, "c", "internal", "x", "x.go"))
	require.NoError(t, err)
	assert.Equal(t, module["c/internal/x/x.go"], string(unchanged))
}

func TestAMutationThatDoesNotCompileIsNotDrawn(t *testing.T) {
	r := runnerOf(t, module)
	words, old := at(t, "+ b", "ARITHMETIC_BASE"), at(t, "> 17", "CONDITIONALS_BOUNDARY")
	ok, err := r.compiles(t.Context(), words)
	require.NoError(t, err)
	assert.False(t, ok)

	drawn, discarded, err := draw(t.Context(), r, []mutation{old, words}, options{seed: 1, count: 1})
	require.NoError(t, err)
	assert.Equal(t, []mutation{old}, drawn)
	assert.LessOrEqual(t, discarded, 1)
	_, _, err = draw(t.Context(), r, []mutation{old, words}, options{seed: 1, count: 2})
	assert.EqualError(t, err, "only 1 mutations compile, 2 are wanted")
}

func TestTestsThatFailWithoutAMutationAreAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program several times")
	}
	files := map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25.0\n",
		"c/c.go":      "package c\n",
		"c/c_test.go": "package c\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { t.Fatal(\"as ever\") }\n",
	}
	err := runnerOf(t, files).measure(t.Context(), suite{path: "./c"})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the tests of ./c fail without a mutation")
	assert.Contains(t, err.Error(), "as ever")
}

func TestAnEndlessLoopIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program several times")
	}
	files := map[string]string{
		"go.mod":      "module example.com/m\n\ngo 1.25.0\n",
		"c/c.go":      "package c\n\nfunc Count(n int) int {\n\tfor n > 0 {\n\t\tn--\n\t}\n\treturn n\n}\n",
		"c/c_test.go": "package c\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\tif Count(3) != 0 {\n\t\tt.Fatal()\n\t}\n}\n",
	}
	r := runnerOf(t, files)
	s := suite{path: "./c"}
	r.allowed[s] = 100 * time.Millisecond
	found, err := mutationsOf("c/c.go", []byte(files["c/c.go"]), []listed{{"INCREMENT_DECREMENT", 5, 4}})
	require.NoError(t, err)
	got, late, err := r.judge(t.Context(), found[0])
	require.NoError(t, err)
	assert.True(t, late)
	assert.Equal(t, killedByOwn, got)
}

func TestTheSummaryCountsEachPackage(t *testing.T) {
	m := func(file string) mutation { return mutation{file: file, line: 1, column: 2} }
	text := summary([]result{
		{m("a/x.go"), killedByOwn, true, 0},
		{m("a/y.go"), survived, false, 0},
		{m("b/x.go"), killedByParent, false, 0},
		{m("a/x.go"), killedByParent, false, 0},
	})
	assert.Contains(t, text, "| a | 3 | 1 | 1 | 1 | 67 % |")
	assert.Contains(t, text, "| b | 1 | 0 | 1 | 0 | 100 % |")
	assert.Contains(t, text, "| **all** | 4 | 1 | 2 | 1 | 75 % |")
	assert.Contains(t, text, "- `a/y.go:1:2")
	assert.Equal(t, 1, strings.Count(text, "- `"))
	assert.Contains(t, text, "\n1 of the killed ones are killed because the tests did not end in time.")
}
