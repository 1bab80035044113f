package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Object is one kind of JSON object.
type Object struct {
	Name, Meaning string
	Fields        []Field
}

// Field is one key of it.
type Field struct{ Key, Type, Meaning string }

// Document describes the JSON that a Go type is written as: the type itself, then each struct
// of the same package that it contains. The meanings are the comments in the source, so a
// field without a comment is an error.
func Document(dir, name string) ([]Object, error) {
	types, err := structs(dir)
	if err != nil {
		return nil, err
	}
	d := &documenter{types: types, done: map[string]bool{}}
	d.add(name)
	return d.objects, errors.Join(d.problems...)
}

// declared is a struct type of the source.
type declared struct {
	comment string
	body    *ast.StructType
}

// structs returns the struct types of a folder.
func structs(dir string) (map[string]declared, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]declared{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			general, is := declaration.(*ast.GenDecl)
			if !is {
				continue
			}
			for _, spec := range general.Specs {
				t, is := spec.(*ast.TypeSpec)
				if !is {
					continue
				}
				if body, is := t.Type.(*ast.StructType); is {
					out[t.Name.Name] = declared{comment(t.Doc, general.Doc, t.Comment), body}
				}
			}
		}
	}
	return out, nil
}

// documenter follows the structs from one to the next.
type documenter struct {
	types    map[string]declared
	done     map[string]bool
	objects  []Object
	problems []error
}

func (d *documenter) add(name string) {
	t, known := d.types[name]
	if d.done[name] {
		return
	}
	d.done[name] = true
	if !known {
		d.problems = append(d.problems, fmt.Errorf("there is no struct %s", name))
		return
	}
	at := len(d.objects)
	d.objects = append(d.objects, Object{Name: name, Meaning: about(name, t.comment)})
	var inside []string
	for _, field := range t.body.Fields.List {
		tag := ""
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		key, options, _ := strings.Cut(tag, ",")
		if key == "-" || key == "" {
			if len(field.Names) == 0 { // An embedded struct: its keys are those of the outer one.
				inside = append(inside, typeName(field.Type))
				d.problems = append(d.problems, fmt.Errorf("%s embeds %s; write its fields out", name, typeName(field.Type)))
			}
			continue
		}
		meaning := comment(field.Doc, field.Comment)
		if meaning == "" {
			d.problems = append(d.problems, fmt.Errorf("the field of the key %q of %s has no comment", key, name))
		}
		for _, n := range field.Names {
			meaning = about(n.Name, meaning)
		}
		kind, of := jsonType(field.Type)
		if _, own := d.types[of]; own {
			inside = append(inside, of)
		}
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			kind += ", may be absent"
		}
		d.objects[at].Fields = append(d.objects[at].Fields, Field{key, kind, meaning})
	}
	for _, of := range inside {
		d.add(of)
	}
}

// jsonType is how a type of Go looks in JSON, and the name of the struct that it contains.
func jsonType(t ast.Expr) (kind, of string) {
	switch t := t.(type) {
	case *ast.StarExpr:
		return jsonType(t.X)
	case *ast.ArrayType:
		kind, of = jsonType(t.Elt)
		return "list of " + kind, of
	case *ast.MapType:
		kind, of = jsonType(t.Value)
		return "object of " + kind, of
	}
	switch name := typeName(t); name {
	case "string", "time.Time":
		return map[string]string{"string": "text", "time.Time": "time (RFC 3339)"}[name], ""
	case "bool":
		return "true or false", ""
	case "int", "int64", "uint64", "float64":
		return "number", ""
	case "labels.Labels": // Of Prometheus.
		return "object of text", ""
	default:
		// The object of another package of the program is documented beside this one.
		at := strings.LastIndexByte(name, '.')
		if name = name[at+1:]; at >= 0 && (name == "Severity" || name == "Code") {
			return "text", name // These are texts of the checks of rules.
		}
		if ast.IsExported(name) {
			return name, name
		}
		return "text", name
	}
}

func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return typeName(t.X) + "." + t.Sel.Name
	}
	return ""
}

// comment is the text of the first comment that there is, in one line.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g != nil {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// about takes the name of a type or field off the begin of its comment.
func about(name, text string) string {
	for _, verb := range []string{" is ", " are ", " has ", " reports "} {
		if rest, found := strings.CutPrefix(text, name+verb); found {
			if verb == " has " || verb == " reports " {
				rest = strings.TrimSpace(verb) + " " + rest
			}
			return upper(rest)
		}
	}
	return text
}
