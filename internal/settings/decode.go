// Package settings decodes the configuration of a component without stopping at the first
// mistake, so that Validate can report unknown keys and invalid values together.
package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// noDuration says what is wrong with a text that should be a duration.
const noDuration = "is not a duration; write a number with its unit, for example 15s"

// Decode reads a section into a pointer to a struct. Each mistake is an error that begins with
// its key; the key is removed from the section, and what can be read is read.
func Decode(conf *confmap.Conf, into any) []error {
	mistakes := unknown(reflect.TypeOf(into).Elem(), "", conf.ToStringMap())
	for _, mistake := range mistakes {
		// What else an entry of a list has is read.
		if key, _, _ := strings.Cut(mistake.Error(), ": "); key != "" {
			conf.Delete(key)
		}
	}
	for {
		// Unmarshal leaves out a part with an Unmarshal of its own where there is a mistake in or beside
		// it, so that the next call may find more.
		found := slices.DeleteFunc(taken(reflect.TypeOf(into), "", conf.Unmarshal(into)), func(found error) bool {
			return slices.ContainsFunc(mistakes, func(known error) bool { return known.Error() == found.Error() })
		})
		if len(found) == 0 {
			return mistakes
		}
		remove(conf, found)
		mistakes = append(mistakes, found...)
	}
}

// remove deletes the keys of mistakes, and of those in a list the list: Delete does not look into it.
func remove(conf *confmap.Conf, mistakes []error) {
	for _, mistake := range mistakes {
		key, _, _ := strings.Cut(mistake.Error(), ": ")
		for i := range key {
			if _, isList := conf.Get(key[:i]).([]any); isList && strings.HasPrefix(key[i:], confmap.KeyDelimiter) {
				key = key[:i]
				break
			}
		}
		// Without a key, all would be deleted.
		if key != "" {
			conf.Delete(key)
		}
	}
}

// unknown returns the keys of a value that the structs of its type do not have. The decoder finds
// them too, but not in and beside an embedded struct with an Unmarshal of its own, such as
// confighttp.ClientConfig. Other structs with an Unmarshal find theirs themselves.
func unknown(t reflect.Type, key string, value any) (mistakes []error) {
	of := inner(t)
	below := func(t reflect.Type, name string, value any) {
		mistakes = append(mistakes, unknown(t, strings.TrimPrefix(key+confmap.KeyDelimiter+name, confmap.KeyDelimiter), value)...)
	}
	section, isSection := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case of.Kind() == reflect.Slice && isList:
		for i := range list {
			below(of.Elem(), strconv.Itoa(i), list[i])
		}
	case of.Kind() == reflect.Map && isSection:
		for _, name := range slices.Sorted(maps.Keys(section)) {
			below(of.Elem(), name, section[name])
		}
	case of.Kind() == reflect.Struct && isSection && (key == "" || !reflect.PointerTo(of).Implements(reflect.TypeFor[confmap.Unmarshaler]())):
		fields := fieldsOf(of, "mapstructure")
		for _, name := range slices.Sorted(maps.Keys(section)) {
			field, known := fields[name]
			switch {
			case known:
				below(field, name, section[name])
			case name == "enabled" && of != t:
				// Each Optional has it.
			default:
				full := strings.TrimPrefix(key+confmap.KeyDelimiter+name, confmap.KeyDelimiter)
				mistakes = append(mistakes, fmt.Errorf("%s: %s", full, Unknown(name, slices.Sorted(maps.Keys(fields)))))
			}
		}
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
	invalid, is := strings.CutPrefix(text, "has invalid keys: ")
	switch {
	case strings.HasPrefix(text, "time: "):
		text = noDuration
	case is:
		var all []error
		for name := range strings.SplitSeq(invalid, ", ") {
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
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get(tag), ",")
		switch {
		case options == "squash" || options == "inline":
			maps.Copy(out, fieldsOf(inner(field.Type), tag))
		case name != "" && name != "-":
			out[name] = field.Type
		}
	}
	return out
}
