package diagnose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notThresholds are constants that judge no engine: the guesses that a fit
// begins with, and what identifies and bounds what is kept.
var notThresholds = map[string]bool{
	"mostOfSource": true, "MostReferences": true, "longestModel": true, "mostSamples": true, "mostScrapes": true,
	"referenceVersion": true, "guessNoise": true, "guessWidth": true,
	"baselineVersion": true, "BaselineMemory": true, "unbelievable": true,
	"serverVersion": true, "leastSignals": true, "maxSavedServer": true, "diagnosisVersion": true, "maxSavedName": true,
	"slotsOfWindow": true, "keptWindows": true, "mostDevices": true, "mostOfServer": true, "mostWorkloads": true, "mostExporters": true, "mostName": true, "mostNamed": true, "tera": true,
}

// The table of thresholds in the guide has the numbers of the code: all of them,
// and no others.
func TestThresholdsInTheGuideAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "thresholds.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "<!-- thresholds: begin -->")
	require.True(t, found)
	table, _, found = strings.Cut(table, "<!-- thresholds: end -->")
	require.True(t, found)
	written := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\S+) \\|").FindAllStringSubmatch(table, -1) {
		assert.NotContains(t, written, row[1], "there twice")
		written[row[1]] = row[2]
	}
	code := constants(t)
	for name, value := range code {
		if _, there := written[name]; !there {
			t.Errorf("docs/reference/thresholds.md needs a row for the constant %s (%s); if no engine is judged by it, it belongs into notThresholds", name, value)
			continue
		}
		assert.Equal(t, value, written[name], "%s in the code and in docs/reference/thresholds.md", name)
	}
	for name := range written {
		if _, there := code[name]; !there {
			t.Errorf("docs/reference/thresholds.md has a row for %s, and there is no such constant", name)
		}
	}
}

// constants returns the numbers of the package by name, as the guide writes them.
func constants(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	for _, folder := range []string{".", "../signal", "../pools", "../gpu"} {
		inside, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		files = append(files, inside...)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				for i, expression := range value.Values {
					if constant, known := evaluate(expression); known && !notThresholds[value.Names[i].Name] {
						name := strings.ToLower(value.Names[i].Name[:1]) + value.Names[i].Name[1:]
						assert.NotContains(t, found, name, "two constants with one name")
						found[name] = constant.String()
					}
				}
			}
		}
	}
	return found
}

// constant is a constant; isTime says that it counts nanoseconds.
type constant struct {
	value  float64
	isTime bool
}

func (n constant) String() string {
	if !n.isTime {
		return strconv.FormatFloat(n.value, 'g', -1, 64)
	}
	if d := time.Duration(n.value); d < time.Minute {
		return fmt.Sprintf("%gs", d.Seconds())
	}
	return fmt.Sprintf("%gm", time.Duration(n.value).Minutes())
}

// evaluate knows numbers, units of time and their products.
func evaluate(expression ast.Expr) (constant, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		value, err := strconv.ParseFloat(e.Value, 64)
		return constant{value: value}, err == nil
	case *ast.SelectorExpr:
		unit, known := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]
		return constant{float64(unit), true}, known
	case *ast.BinaryExpr:
		x, known := evaluate(e.X)
		y, too := evaluate(e.Y)
		return constant{x.value * y.value, x.isTime || y.isTime}, known && too && e.Op == token.MUL
	}
	return constant{}, false
}
