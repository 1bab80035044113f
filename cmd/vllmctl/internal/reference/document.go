package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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

// Field is one key of it. Type is its JSON Schema, without the meaning.
type Field struct {
	Key, Meaning string
	Type         map[string]any
	Optional     bool
}

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

// Schema writes the JSON Schema of the documents of a command; the first object is the document.
func (s *Section) Schema() ([]byte, error) {
	defs := map[string]any{}
	for _, o := range s.Document {
		properties, required := map[string]any{}, []string{}
		for _, f := range o.Fields {
			property := maps.Clone(f.Type)
			property["description"] = f.Meaning
			properties[f.Key] = property
			if !f.Optional {
				required = append(required, f.Key)
			}
		}
		defs[o.Name] = map[string]any{"type": "object", "description": o.Meaning, "properties": properties, "required": required}
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "vllmctl " + s.Command + " --json",
		"$ref": reference + s.Document[0].Name, "$defs": defs,
	}, "", "  ")
	return append(text, '\n'), err
}

// reference is where a schema has the object of a name.
const reference = "#/$defs/"

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
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if _, pointer := field.Type.(*ast.StarExpr); pointer && !optional && kind["type"] != nil {
			kind["type"] = []any{kind["type"], "null"}
		}
		d.objects[at].Fields = append(d.objects[at].Fields, Field{key, meaning, kind, optional})
	}
	for _, of := range inside {
		d.add(of)
	}
}

// jsonType is the JSON Schema of a type of Go, and the name of the struct that it contains.
func jsonType(t ast.Expr) (kind map[string]any, of string) {
	switch t := t.(type) {
	case *ast.StarExpr:
		return jsonType(t.X)
	case *ast.ArrayType:
		kind, of = jsonType(t.Elt)
		return map[string]any{"type": "array", "items": kind}, of
	case *ast.MapType:
		kind, of = jsonType(t.Value)
		return map[string]any{"type": "object", "additionalProperties": kind}, of
	}
	switch name := typeName(t); name {
	case "time.Time":
		return map[string]any{"type": "string", "format": "date-time"}, ""
	case "bool":
		return map[string]any{"type": "boolean"}, ""
	case "int", "int64", "uint64", "float64":
		return map[string]any{"type": "number"}, ""
	case "labels.Labels": // Of Prometheus.
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}, ""
	default:
		// The object of another package of the program is documented beside this one.
		at := strings.LastIndexByte(name, '.')
		name = name[at+1:]
		if ast.IsExported(name) && (at < 0 || name != "Severity" && name != "Code") { // These are texts of the checks of rules.
			return map[string]any{"$ref": reference + name}, name
		}
		return map[string]any{"type": "string"}, name
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

// about removes the name of a type or field from the start of its comment.
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
