package vllmreceiver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What vllmctl and the laboratory need is in package probe.
func TestOnlyWhatACollectorNeedsIsExported(t *testing.T) {
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	var exported []string
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.FileExports(parsed)
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					exported = append(exported, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						exported = append(exported, s.Name.Name)
					case *ast.ValueSpec:
						exported = append(exported, s.Names[0].Name)
					}
				}
			}
		}
	}
	slices.Sort(exported)
	assert.Equal(t, []string{
		"ByteSize", "CanaryConfig", "Config", "InferencePoolDiscovery", "KubernetesDiscovery", "MetricConfig", "Naming",
		"NamingCanonical", "NamingWire", "NewFactory", "PodDiscovery", "TargetConfig",
	}, exported)
}
