package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is the Go source of a program, as far as it defines metrics with client_golang. It is only
// parsed: neither its modules nor a build are needed.
type source struct {
	files *token.FileSet
	// values are the constants and variables of packages, and calls all calls: by import path and name.
	values map[string]place
	calls  map[string][]place
	// complaints name what only the running program knows.
	complaints []string
}

// place is an expression, and where its names have a meaning: in a file, a function and one call of it.
type place struct {
	ast.Expr
	pkg      string
	imports  map[string]string
	function *ast.FuncDecl
	given    map[string]place
}

// at is another expression at the same place.
func (p place) at(e ast.Expr) place {
	p.Expr = e
	return p
}

// found is one family as the source defines it.
type found struct {
	name, kind string
	labels     []string
}

const client = "github.com/prometheus/client_golang/prometheus."

var maker = regexp.MustCompile(`^New(Counter|Gauge|Histogram|Summary)(Vec)?(Func)?$`)

// readSource parses the files of a checkout, without its tests.
func readSource(tree fs.FS) (*source, error) {
	s := &source{files: token.NewFileSet(), values: map[string]place{}, calls: map[string][]place{}}
	mod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return nil, err
	}
	module := strings.Fields(string(mod))[1]
	return s, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "test":
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
		if err == nil {
			s.read(file, path.Join(module, path.Dir(name)))
		}
		return err
	})
}

func (s *source) read(file *ast.File, pkg string) {
	in := place{pkg: pkg, imports: map[string]string{}}
	for _, i := range file.Imports {
		of, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		in.imports[name] = of
	}
	for _, declaration := range file.Decls {
		in.function, _ = declaration.(*ast.FuncDecl)
		ast.Inspect(declaration, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if in.function == nil {
						s.values[pkg+"."+n.Names[i].Name] = in.at(value)
					}
				}
			case *ast.CallExpr:
				of := in.at(n.Fun).name()
				s.calls[of] = append(s.calls[of], in.at(n))
			}
			return true
		})
	}
}

// name is the import path and the name that an expression names; empty for another expression.
func (p place) name() string {
	switch e := p.Expr.(type) {
	case *ast.Ident:
		return p.pkg + "." + e.Name
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && p.imports[of.Name] != "" {
			return p.imports[of.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// families returns the families, sorted; one that several places define is there several times.
func (s *source) families() (families []found) {
	for of, calls := range s.calls {
		name, ours := strings.CutPrefix(of, client)
		made := maker.FindStringSubmatch(name)
		if !ours || made == nil && name != "NewDesc" {
			continue
		}
		for _, call := range calls {
			for _, use := range s.uses(call) {
				f, problem := found{}, ""
				if made == nil {
					f, problem = s.description(use)
				} else {
					f, problem = s.family(use, strings.ToLower(made[1]), made[2] != "")
				}
				if problem != "" {
					s.complaints = append(s.complaints, fmt.Sprintf("%s: %s", s.files.Position(call.Pos()), problem))
					continue
				}
				slices.Sort(f.labels)
				families = append(families, f)
			}
		}
	}
	slices.Sort(s.complaints)
	slices.SortFunc(families, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return families
}

// uses are the places of a call: in a function with parameters one for each call of that function.
func (s *source) uses(call place) (uses []place) {
	if call.function == nil || call.function.Recv != nil {
		return []place{call}
	}
	var parameters []string
	for _, field := range call.function.Type.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, name.Name)
		}
	}
	callers := s.calls[call.pkg+"."+call.function.Name.Name]
	if len(parameters) == 0 || len(callers) == 0 {
		return []place{call}
	}
	for _, caller := range callers {
		if caller.function == call.function {
			continue
		}
		for _, outer := range s.uses(caller) {
			use := call
			use.given = map[string]place{}
			for i, argument := range arguments(caller) {
				use.given[parameters[min(i, len(parameters)-1)]] = outer.at(argument)
			}
			uses = append(uses, use)
		}
	}
	return uses
}

func arguments(call place) []ast.Expr { return call.Expr.(*ast.CallExpr).Args }

func (s *source) family(call place, kind string, labelled bool) (f found, problem string) {
	options := s.behind(call.at(arguments(call)[0]))
	literal, ok := options.Expr.(*ast.CompositeLit)
	if !ok {
		return f, "the options of a " + kind
	}
	parts := map[string]string{}
	for _, element := range literal.Elts {
		field := element.(*ast.KeyValueExpr)
		switch key := field.Key.(*ast.Ident).Name; key {
		case "Namespace", "Subsystem", "Name", "ConstLabels":
			if parts[key], ok = s.text(options.at(field.Value)); !ok {
				return f, "the " + key + " of a " + kind
			}
		}
	}
	names := []string{parts["Namespace"], parts["Subsystem"], parts["Name"]}
	f.name = strings.Join(slices.DeleteFunc(names, func(part string) bool { return part == "" }), "_")
	f.kind = kind
	if labelled {
		f.labels = s.labels(call.at(arguments(call)[1]))
	}
	return f, ""
}

// description is a family of a collector: its type is in the call that makes a value of it.
func (s *source) description(call place) (f found, problem string) {
	var ok bool
	if f.name, ok = s.text(call.at(arguments(call)[0])); !ok {
		return f, "the name of a description"
	}
	f.labels = s.labels(call.at(arguments(call)[2]))
	for _, value := range s.calls[client+"MustNewConstMetric"] {
		if s.values[value.at(arguments(value)[0]).name()].Expr == call.Expr {
			kind := strings.TrimPrefix(value.at(arguments(value)[1]).name(), client)
			f.kind = strings.ToLower(strings.TrimSuffix(kind, "Value"))
			return f, ""
		}
	}
	return f, "the type of " + f.name
}

// behind follows names to an expression that is none; it is nil where that is not known.
func (s *source) behind(p place) place {
	name, ok := p.Expr.(*ast.Ident)
	if ok && p.given[name.Name].Expr != nil {
		return s.behind(p.given[name.Name])
	}
	if of := p.name(); of != "" {
		return s.behind(s.values[of])
	}
	return p
}

// text is the value of an expression that is a text.
func (s *source) text(p place) (string, bool) {
	p = s.behind(p)
	switch e := p.Expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := s.text(p.at(e.X))
		right, also := s.text(p.at(e.Y))
		return left + right, ok && also
	}
	return "", false
}

// labels is the value of an expression that is a list of texts. What is not known is a "?".
func (s *source) labels(p place) (labels []string) {
	if name, ok := p.Expr.(*ast.Ident); ok && name.Name == "nil" {
		return nil
	}
	p = s.behind(p)
	var parts []ast.Expr
	var last ast.Expr
	switch e := p.Expr.(type) {
	case *ast.CompositeLit:
		parts = e.Elts
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); !ok || name.Name != "append" {
			return []string{"?"}
		}
		labels, parts = s.labels(p.at(e.Args[0])), e.Args[1:]
		if e.Ellipsis.IsValid() {
			parts, last = nil, e.Args[1]
		}
	default:
		return []string{"?"}
	}
	for _, part := range parts {
		label, ok := s.text(p.at(part))
		if !ok {
			label = "?"
		}
		labels = append(labels, label)
	}
	if last != nil {
		labels = append(labels, s.labels(p.at(last))...)
	}
	return labels
}
