package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is the Go source of a program, as far as it defines metrics with client_golang. It is only
// parsed: neither its modules nor a build are needed.
type source struct {
	files    *token.FileSet
	packages map[string]*goPackage
	// calls are all calls by what they call, written as the import path and the name.
	calls map[string][]call
	// complaints name what only the running program knows.
	complaints []string
}

type goPackage struct {
	path string
	// values are the expressions of constants and variables.
	values map[string]place
}

// place is an expression and where it stands.
type place struct {
	expr ast.Expr
	in   scope
}

// scope is where names have their meaning: in a file, and there in a function and one call of it.
type scope struct {
	pkg      *goPackage
	imports  map[string]string
	function *ast.FuncDecl
	given    map[string]place
}

type call struct {
	expr *ast.CallExpr
	in   scope
	// to is the variable or field that takes the result.
	to string
}

// found is one family as the source defines it.
type found struct {
	name, kind string
	labels     []string
}

const client = "github.com/prometheus/client_golang/prometheus"

var (
	maker    = regexp.MustCompile(`^New(Counter|Gauge|Histogram|Summary)(Vec)?(Func)?$`)
	constant = regexp.MustCompile(`^(Must)?NewConst(Metric|Histogram|Summary)$`)
)

// readSource parses the files of a checkout, without its tests.
func readSource(tree fs.FS) (*source, error) {
	s := &source{files: token.NewFileSet(), packages: map[string]*goPackage{}, calls: map[string][]call{}}
	mod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return nil, err
	}
	module := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(mod)
	if module == nil {
		return nil, fmt.Errorf("go.mod names no module")
	}
	return s, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"test", "testdata", "vendor"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s.read(file, path.Join(string(module[1]), path.Dir(name)))
		return nil
	})
}

func (s *source) read(file *ast.File, at string) {
	pkg := s.packages[at]
	if pkg == nil {
		pkg = &goPackage{path: at, values: map[string]place{}}
		s.packages[at] = pkg
	}
	in := scope{pkg: pkg, imports: map[string]string{}}
	for _, i := range file.Imports {
		of, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(of)
		if i.Name != nil {
			name = i.Name.Name
		}
		in.imports[name] = of
	}
	for _, d := range file.Decls {
		inside := in
		if function, ok := d.(*ast.FuncDecl); ok {
			inside.function = function
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if inside.function == nil {
						pkg.values[n.Names[i].Name] = place{value, in}
					}
					s.note(value, inside, pkg.path+"."+n.Names[i].Name)
				}
			case *ast.AssignStmt:
				for i, value := range n.Rhs {
					if i < len(n.Lhs) {
						s.note(value, inside, inside.name(n.Lhs[i]))
					}
				}
			case *ast.KeyValueExpr:
				s.note(n.Value, inside, inside.name(n.Key))
			case *ast.CallExpr:
				s.note(n, inside, "")
			}
			return true
		})
	}
}

// note keeps a call. A call that something takes is seen there first.
func (s *source) note(e ast.Expr, in scope, to string) {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return
	}
	of := in.name(c.Fun)
	if !slices.ContainsFunc(s.calls[of], func(known call) bool { return known.expr == c }) {
		s.calls[of] = append(s.calls[of], call{c, in, to})
	}
}

// name is the import path and the name that an expression names. A field has the package's path.
func (in scope) name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return in.pkg.path + "." + e.Name
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && in.imports[of.Name] != "" {
			return in.imports[of.Name] + "." + e.Sel.Name
		}
		if with, ok := e.X.(*ast.CallExpr); ok && in.name(with.Fun) == client+"/promauto.With" {
			return client + "/promauto." + e.Sel.Name
		}
		return in.pkg.path + "." + e.Sel.Name
	}
	return ""
}

// families returns the families, sorted; one that several places define is there several times.
func (s *source) families() (families []found) {
	for _, of := range slices.Sorted(maps.Keys(s.calls)) {
		dir, name := path.Split(of)
		name = name[strings.LastIndex(name, ".")+1:]
		made := maker.FindStringSubmatch(name)
		if made == nil && name != "NewDesc" || !strings.HasPrefix(dir+"prometheus", client) {
			continue
		}
		for _, c := range s.calls[of] {
			for _, in := range s.uses(c) {
				f, problem := found{}, ""
				if made != nil {
					f, problem = s.family(c.expr, in, strings.ToLower(made[1]), made[2] != "")
				} else {
					f, problem = s.description(c, in)
				}
				if problem != "" {
					s.complaints = append(s.complaints, fmt.Sprintf("%s: %s", s.files.Position(c.expr.Pos()), problem))
					continue
				}
				slices.Sort(f.labels)
				families = append(families, f)
			}
		}
	}
	slices.SortFunc(families, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return families
}

// uses are the scopes in which a call is made: one for each call of a function whose parameters it uses.
func (s *source) uses(c call) []scope {
	f := c.in.function
	if f == nil || f.Recv != nil || len(c.expr.Args) == 0 {
		return []scope{c.in}
	}
	var parameters []string
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			parameters = append(parameters, name.Name)
		}
	}
	used := false
	ast.Inspect(c.expr, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		used = used || ok && slices.Contains(parameters, name.Name)
		return !used
	})
	callers := s.calls[c.in.pkg.path+"."+f.Name.Name]
	if !used || len(callers) == 0 {
		return []scope{c.in}
	}
	var out []scope
	for _, caller := range callers {
		for _, outer := range s.uses(caller) {
			in := c.in
			in.given = map[string]place{}
			for i, arg := range caller.expr.Args {
				if i < len(parameters) {
					in.given[parameters[i]] = place{arg, outer}
				}
			}
			out = append(out, in)
		}
	}
	return out
}

func (s *source) family(c *ast.CallExpr, in scope, kind string, labelled bool) (f found, problem string) {
	options, ok := s.literal(c.Args[0], in)
	if !ok {
		return f, "the options of a " + kind
	}
	parts := map[string]string{}
	for _, e := range options.expr.(*ast.CompositeLit).Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return f, "the options of a " + kind
		}
		key := field.Key.(*ast.Ident).Name
		switch key {
		case "Namespace", "Subsystem", "Name":
			if parts[key], ok = s.text(field.Value, options.in); !ok {
				return f, "the " + key + " of a " + kind
			}
		case "ConstLabels":
			constant, ok := s.literal(field.Value, options.in)
			if !ok {
				return f, "the constant labels of a " + kind
			}
			for _, e := range constant.expr.(*ast.CompositeLit).Elts {
				label, _ := s.text(e.(*ast.KeyValueExpr).Key, constant.in)
				f.labels = append(f.labels, label)
			}
		}
	}
	f.kind = kind
	f.name = joined(parts["Namespace"], parts["Subsystem"], parts["Name"])
	if labelled && len(c.Args) > 1 {
		labels, ok := s.list(c.Args[1], in)
		if !ok {
			labels = []string{"?"}
		}
		f.labels = append(f.labels, labels...)
	}
	return f, ""
}

// description is a family of a collector: its type is in the call that makes a value of it.
func (s *source) description(c call, in scope) (f found, problem string) {
	var ok bool
	if f.name, ok = s.text(c.expr.Args[0], in); !ok {
		return f, "the name of a description"
	}
	if f.labels, ok = s.list(c.expr.Args[2], in); !ok {
		f.labels = []string{"?"}
	}
	for of, values := range s.calls {
		made := constant.FindStringSubmatch(strings.TrimPrefix(of, client+"."))
		for _, value := range values {
			if made == nil || c.to == "" || value.in.name(value.expr.Args[0]) != c.to {
				continue
			}
			f.kind = strings.ToLower(made[2])
			if f.kind == "metric" {
				_, kind, _ := strings.Cut(value.in.name(value.expr.Args[1]), client+".")
				f.kind = strings.ToLower(strings.TrimSuffix(kind, "Value"))
			}
		}
	}
	if f.kind == "" {
		return f, "the type of " + f.name
	}
	return f, ""
}

// joined is prometheus.BuildFQName.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "_")
}

// behind follows names and conversions to an expression that is neither.
func (s *source) behind(e ast.Expr, in scope) (place, bool) {
	for range 10 {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
			continue
		case *ast.UnaryExpr:
			e = x.X
			continue
		case *ast.Ident:
			if to, ok := in.given[x.Name]; ok {
				e, in = to.expr, to.in
				continue
			}
			if to := in.local(x.Name); to != nil {
				e = to
				continue
			}
		case *ast.SelectorExpr:
		default:
			return place{e, in}, true
		}
		of := in.name(e)
		dot := strings.LastIndex(of, ".")
		pkg := s.packages[of[:max(dot, 0)]]
		if pkg == nil {
			return place{}, false
		}
		to, ok := pkg.values[of[dot+1:]]
		if !ok {
			return place{}, false
		}
		e, in = to.expr, to.in
	}
	return place{}, false
}

// local is what a function assigns to a name first.
func (in scope) local(name string) (value ast.Expr) {
	if in.function == nil || in.function.Body == nil {
		return nil
	}
	ast.Inspect(in.function.Body, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Lhs) == len(assign.Rhs) {
			for i, left := range assign.Lhs {
				if of, ok := left.(*ast.Ident); ok && of.Name == name && value == nil {
					value = assign.Rhs[i]
				}
			}
		}
		return value == nil
	})
	return value
}

func (s *source) literal(e ast.Expr, in scope) (place, bool) {
	to, ok := s.behind(e, in)
	if ok {
		_, ok = to.expr.(*ast.CompositeLit)
	}
	return to, ok
}

// text is the value of an expression that is a text.
func (s *source) text(e ast.Expr, in scope) (string, bool) {
	to, ok := s.behind(e, in)
	if !ok {
		return "", false
	}
	switch x := to.expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := s.text(x.X, to.in)
		right, also := s.text(x.Y, to.in)
		return left + right, ok && also
	case *ast.CallExpr:
		if to.in.name(x.Fun) == client+".BuildFQName" {
			parts, ok := s.texts(x.Args, to.in)
			return joined(parts...), ok
		}
		if _, conversion := x.Fun.(*ast.Ident); conversion && len(x.Args) == 1 {
			return s.text(x.Args[0], to.in)
		}
	}
	return "", false
}

func (s *source) texts(from []ast.Expr, in scope) (texts []string, ok bool) {
	for _, e := range from {
		text, ok := s.text(e, in)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// list is the value of an expression that is a list of texts.
func (s *source) list(e ast.Expr, in scope) ([]string, bool) {
	if name, ok := e.(*ast.Ident); ok && name.Name == "nil" {
		return nil, true
	}
	to, ok := s.behind(e, in)
	if !ok {
		return nil, false
	}
	switch x := to.expr.(type) {
	case *ast.CompositeLit:
		return s.texts(x.Elts, to.in)
	case *ast.CallExpr:
		if name, ok := x.Fun.(*ast.Ident); ok && name.Name == "append" {
			list, ok := s.list(x.Args[0], to.in)
			if !ok {
				return nil, false
			}
			if x.Ellipsis.IsValid() {
				more, ok := s.list(x.Args[1], to.in)
				return slices.Concat(list, more), ok
			}
			more, ok := s.texts(x.Args[1:], to.in)
			return slices.Concat(list, more), ok
		}
	}
	return nil, false
}
