package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is a package of the product, as "go list" prints it.
type pkg struct {
	ImportPath string
	Dir        string
	Module     *struct{ Path, Dir string }
	GoFiles    []string
}

// product returns this module's packages that the patterns match or import, and
// the module's root.
func product(patterns []string) (packages []pkg, root string, err error) {
	out, err := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Module,GoFiles"}, patterns...)...).Output() //nolint:gosec // the patterns are arguments of the developer
	if err != nil {
		return nil, "", explain("go list", err)
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, "", explain("go list -m", err)
	}
	root = strings.TrimSpace(string(module))
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, "", fmt.Errorf("reading what go list printed: %w", err)
		}
		if p.Module != nil && p.Module.Dir == root {
			packages = append(packages, p)
		}
	}
	return packages, root, nil
}

// explain adds what a program wrote to its standard error.
func explain(what string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %w: %s", what, err, bytes.TrimSpace(exit.Stderr))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// list returns all mutations of the packages, in a fixed order. Gremlins measures the
// coverage before it lists, which would compile everything and run all tests. So it gets
// a module with one empty test, and the files to list in a testdata folder, which Go
// ignores and gremlins reads.
func list(gremlins string, packages []pkg, root string) ([]mutation, error) {
	copied, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(copied)
	for name, content := range map[string]string{
		"go.mod":        "module empty\n\ngo 1.25.0\n",
		"empty.go":      "package empty\n",
		"empty_test.go": "package empty\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(copied, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	for _, p := range packages {
		for _, file := range p.GoFiles {
			if err := copyFile(root, filepath.Join(copied, "testdata"), filepath.Join(p.Dir, file)); err != nil {
				return nil, err
			}
		}
	}

	output := filepath.Join(copied, "list.json")
	command := exec.Command(gremlins, "unleash", "--dry-run", "--silent", "--output", output, //nolint:gosec // the pinned gremlins
		"--invert-assignments", "--invert-bitwise", "--invert-bwassign", "--invert-logical", "--invert-loopctrl", ".")
	command.Dir = copied
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gremlins: %w: %s", err, bytes.TrimSpace(out))
	}
	written, err := os.ReadFile(output)
	if err != nil {
		return nil, err
	}
	var report struct {
		Files []struct {
			Name      string   `json:"file_name"`
			Mutations []listed `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(written, &report); err != nil {
		return nil, fmt.Errorf("reading the list of gremlins: %w", err)
	}
	var all []mutation
	for _, file := range report.Files {
		name, err := filepath.Rel("testdata", file.Name)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if generated(source) {
			continue
		}
		mutations, err := mutationsOf(filepath.ToSlash(name), source, file.Mutations)
		if err != nil {
			return nil, err
		}
		all = append(all, mutations...)
	}
	return all, nil
}

func copyFile(root, to, file string) error {
	relative, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	target := filepath.Join(to, relative)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o644)
}

// generated reports whether a file says that a program wrote it.
func generated(source []byte) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.PackageClauseOnly)
	return err == nil && ast.IsGenerated(file)
}
