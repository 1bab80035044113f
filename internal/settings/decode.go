// Package settings decodes the configuration of a component without stopping at the first
// mistake, so that Validate can report unknown keys and invalid values together.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// noDuration says what is wrong with a text that should be a duration.
const noDuration = "is not a duration; write a number with its unit, for example 15s"

// Decode reads a section into a pointer to a struct. Each mistake is an error that begins with
// its key; the key is removed from the section, and what can be read is read.
func Decode(conf *confmap.Conf, into any) []error {
	mistakes := taken(reflect.TypeOf(into), "", conf.Unmarshal(into))
	for _, mistake := range mistakes {
		key, _, _ := strings.Cut(mistake.Error(), ": ")
		conf.Delete(key)
	}
	if len(mistakes) > 0 {
		// A part with an Unmarshal of its own was left out because of them.
		_ = conf.Unmarshal(into)
	}
	return mistakes
}

// several is in the text of an error that has others below it.
const several = "decoding failed due to the following error(s)"

// taken takes the error of a decoder apart. path is where it was, as decoders write it.
func taken(t reflect.Type, path string, err error) []error {
	named, isNamed := err.(interface {
		Name() string
		Unwrap() error
	})
	joined, isJoined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case isNamed:
		// The struct that a decoder begins with has the name of its type.
		below := strings.TrimPrefix(path+"."+named.Name(), ".")
		if _, at := locate(t, below); at != nil {
			path = below
		}
		return taken(t, path, named.Unwrap())
	case isJoined:
		var all []error
		for _, err := range joined.Unwrap() {
			all = append(all, taken(t, path, err)...)
		}
		return all
	case strings.Contains(err.Error(), several) && errors.Unwrap(err) != nil:
		return taken(t, path, errors.Unwrap(err))
	}
	key, at := locate(t, path)
	if key != "" {
		key += ": "
	}
	text := err.Error()
	unknown, is := strings.CutPrefix(text, "has invalid keys: ")
	switch {
	case strings.HasPrefix(text, "time: "):
		text = noDuration
	case is:
		var all []error
		for name := range strings.SplitSeq(unknown, ", ") {
			below := strings.TrimSuffix(key, ": ") + confmap.KeyDelimiter + name
			all = append(all, fmt.Errorf("%s: %s", strings.TrimPrefix(below, confmap.KeyDelimiter), Unknown(name, Keys(at, "mapstructure"))))
		}
		return all
	}
	return []error{errors.New(key + text)}
}

// locate returns the key of a path, and the type of the field there; the path itself and nil
// where there is none.
func locate(t reflect.Type, path string) (key string, at reflect.Type) {
	rest := path
	for {
		t = inner(t)
		rest = strings.TrimPrefix(rest, ".")
		next := ""
		switch {
		case rest == "":
			return key, t
		case t.Kind() == reflect.Struct:
			// Some keys have dots.
			fields := fieldsOf(t, "mapstructure")
			for name := range fields {
				if after, is := strings.CutPrefix(rest, name); is && len(name) > len(next) && (after == "" || strings.ContainsAny(after[:1], ".[")) {
					next = name
				}
			}
			t, rest = fields[next], rest[len(next):]
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
			if next, rest, _ = strings.Cut(strings.TrimPrefix(rest, "["), "]"); next != "" {
				t = t.Elem()
			}
		}
		if next == "" {
			return path, nil
		}
		key = strings.TrimPrefix(key+confmap.KeyDelimiter+next, confmap.KeyDelimiter)
	}
}

// inner is the type behind pointers and the collector's Optional.
func inner(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if strings.HasPrefix(t.Name(), "Optional[") {
		return inner(t.Field(0).Type)
	}
	return t
}

// fieldsOf returns the fields of a struct by their keys.
func fieldsOf(t reflect.Type, tag string) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get(tag), ",")
		switch {
		case options == "squash" || options == "inline":
			maps.Copy(out, fieldsOf(inner(t.Field(i).Type), tag))
		case name != "" && name != "-":
			out[name] = t.Field(i).Type
		}
	}
	return out
}
