package main

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
)

// setting is a key of a component's configuration with its default.
type setting struct{ key, value string }

// settingsOf returns the settings of a configuration, a pointer to a struct.
func settingsOf(config any) []setting {
	w := walker{at: map[string]int{}}
	w.structure("", reflect.ValueOf(config).Elem(), true)
	return w.found
}

type walker struct {
	found []setting
	at    map[string]int
}

// add records a setting. A key that two squashed structs have is the later one's.
func (w *walker) add(key, value string) {
	if i, twice := w.at[key]; twice {
		w.found[i].value = value
		return
	}
	w.at[key] = len(w.found)
	w.found = append(w.found, setting{key, value})
}

// structure walks the fields of a struct. Without defaults, as in the entries of a
// list, the values are not shown.
func (w *walker) structure(prefix string, v reflect.Value, defaults bool) {
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("mapstructure"), ",")
		field := v.Field(i)
		switch {
		case options == "squash" && (field.Type() == reflect.TypeFor[confighttp.ClientConfig]() || field.Type() == reflect.TypeFor[confighttp.ServerConfig]()):
			w.http(prefix, field, defaults)
		case options == "squash":
			w.structure(prefix, field, defaults)
		case name != "" && name != "-":
			w.value(prefix+name, field, defaults)
		}
	}
}

// shown are the collector's own settings of HTTP clients and servers that most users need. Its
// documentation has all others, and what is below these.
var shown = []string{"endpoint", "timeout", "tls", "auth", "headers", "proxy_url", "compression"}

// http lists the shown settings. An entry of a list inherits them.
func (w *walker) http(prefix string, v reflect.Value, defaults bool) {
	if !defaults {
		w.add(prefix+"endpoint", "")
		return
	}
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("mapstructure"), ",")
		if options == "squash" {
			w.http(prefix, v.Field(i), defaults)
		}
		if !slices.Contains(shown, name) {
			continue
		}
		value := ""
		if kind := v.Field(i).Kind(); kind != reflect.Struct && kind != reflect.Slice {
			value = text(v.Field(i))
		}
		w.add(prefix+name, value)
	}
}

func (w *walker) value(key string, v reflect.Value, defaults bool) {
	switch kind := v.Kind(); {
	case strings.HasPrefix(v.Type().Name(), "Optional[") && !defaults:
		// An entry of a list inherits it.
		w.add(key, "")
	case strings.HasPrefix(v.Type().Name(), "Optional["):
		inner := v.Addr().MethodByName("GetOrInsertDefault").Call(nil)[0].Elem()
		w.add(key, "")
		w.structure(key+confmap.KeyDelimiter, inner, defaults)
	case leaf(v):
		shown := ""
		if defaults {
			shown = text(v)
		}
		w.add(key, shown)
	case kind == reflect.Pointer:
		w.add(key, "")
		w.structure(key+confmap.KeyDelimiter, reflect.New(v.Type().Elem()).Elem(), false)
	case kind == reflect.Struct && strings.HasSuffix(v.Type().Name(), "ResourceAttributesConfig"):
		w.add(key+"::NAME::enabled", resourceDefault(v))
	case kind == reflect.Struct:
		w.structure(key+confmap.KeyDelimiter, v, defaults)
	case kind == reflect.Slice:
		w.add(key, "")
		w.structure(key+"::N::", reflect.New(v.Type().Elem()).Elem(), false)
	case kind == reflect.Map:
		w.structure(key+"::NAME::", reflect.New(v.Type().Elem()).Elem(), false)
	default:
		panic(fmt.Sprintf("%s: settings of the type %s are not known here", key, v.Type()))
	}
}

// leaf reports whether a value has no settings below it.
func leaf(v reflect.Value) bool {
	t := v.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return true
		}
		t = t.Elem()
	}
	return t.Kind() != reflect.Struct || t == reflect.TypeFor[component.ID]()
}

// resourceDefault is the default that all switches of resource attributes share;
// empty where they differ.
func resourceDefault(v reflect.Value) string {
	shared := ""
	for _, field := range v.Fields() {
		if field.Kind() != reflect.Struct || !field.FieldByName("Enabled").IsValid() {
			continue
		}
		value := strconv.FormatBool(field.FieldByName("Enabled").Bool())
		if shared != "" && value != shared {
			return ""
		}
		shared = value
	}
	return shared
}

// text writes a default as a user writes it; empty where there is none.
func text(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		if v.Len() == 0 {
			return ""
		}
		var parts []string
		for i := range v.Len() {
			parts = append(parts, text(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	switch value := v.Interface().(type) {
	case time.Duration:
		return duration(value)
	case fmt.Stringer:
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Map {
			return value.String()
		}
	}
	switch {
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Map:
		return ""
	case v.Type().Name() == "ByteSize" && v.Int() > 0 && v.Int()%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", v.Int()>>20)
	case v.Kind() == reflect.Float64 && v.Float() == 0:
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// duration writes 1m for Go's 1m0s.
func duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
