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

// The table of thresholds in the guide has the numbers of the code.
func TestThresholdsInTheGuideAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "thresholds.md"))
	require.NoError(t, err)
	code := constants(t)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\S+) \\|").FindAllStringSubmatch(string(guide), -1)
	for _, row := range rows {
		assert.Equal(t, code[row[1]], row[2], "%s in the code and in docs/reference/thresholds.md", row[1])
	}
	assert.Greater(t, len(rows), 50)
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
					if constant, known := evaluate(expression); known {
						name := strings.ToLower(value.Names[i].Name[:1]) + value.Names[i].Name[1:]
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
