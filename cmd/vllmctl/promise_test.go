package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// written are the documents of --json, by the command in the table of docs/reference/deprecations.md.
var written = map[string]any{
	"lint":         lint.Report{},
	"lint --codes": codeList{},
}

// statuses are the exit statuses of each command in the table.
var statuses = map[string][]status.Status{
	"lint": {status.OK, status.Problem, status.Failed, status.Warning},
}

// promised reads the table: the words of each row, by command and by what they are.
func promised(t *testing.T) map[string]map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/deprecations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| Command | Of | Words |\n|---|---|---|\n")
	require.True(t, found)
	rows := map[string]map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			break
		}
		command, of := strings.Trim(cells[0], " `"), strings.ReplaceAll(strings.TrimSpace(cells[1]), "`", "")
		var words []string
		for word := range strings.SplitSeq(cells[2], ",") {
			words = append(words, strings.Trim(word, " `"))
		}
		if rows[command] == nil {
			rows[command] = map[string][]string{}
		}
		assert.NotContains(t, rows[command], of, "a row is there twice")
		rows[command][of] = words
	}
	return rows
}

// keysOf adds the keys of a type by the path of the object that has them: "files[].findings[]".
func keysOf(of reflect.Type, path string, into map[string][]string) {
	switch of.Kind() {
	case reflect.Pointer:
		keysOf(of.Elem(), path, into)
	case reflect.Slice, reflect.Array:
		keysOf(of.Elem(), path+"[]", into)
	case reflect.Map:
		keysOf(of.Elem(), path+".*", into)
	case reflect.Struct:
		if of.Implements(reflect.TypeFor[json.Marshaler]()) || into[path] != nil {
			return
		}
		into[path] = []string{}
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-" || !field.IsExported():
			case field.Anonymous && name == "":
				inner := map[string][]string{}
				keysOf(field.Type, path, inner)
				into[path] = append(into[path], inner[path]...)
			default:
				into[path] = append(into[path], name)
				keysOf(field.Type, strings.TrimPrefix(path+"."+name, "."), into)
			}
		}
	}
}

// A script that reads a key, or tests an exit status or a code, goes on working: each is in the table, and
// what is in the table is there.
func TestTheTableHasAllExitStatusesKeysAndCodes(t *testing.T) {
	want := map[string]map[string][]string{}
	add := func(command, of string, words []string) {
		if want[command] == nil {
			want[command] = map[string][]string{}
		}
		want[command][of] = words
	}
	for command, document := range written {
		keys := map[string][]string{}
		keysOf(reflect.TypeOf(document), "", keys)
		for path, all := range keys {
			of := "keys"
			if path != "" {
				of = "keys of " + path
			}
			add(command, of, all)
		}
	}
	for command, all := range statuses {
		for _, s := range all {
			add(command, "exit status", append(want[command]["exit status"], string(rune('0'+s))))
		}
	}
	var codes []string
	for _, rule := range lint.Rules() {
		codes = append(codes, string(rule.Code))
	}
	add("lint", "codes", codes)
	got := promised(t)
	for _, rows := range []map[string]map[string][]string{want, got} {
		for _, parts := range rows {
			for _, words := range parts {
				slices.Sort(words)
			}
		}
	}
	assert.Equal(t, want, got, "a key, a status or a code that goes or changes needs the time that this page promises; a new one needs its row")
}

// Each exit status of the table is one with which the command can end.
func TestLintEndsWithEachOfItsExitStatuses(t *testing.T) {
	var ended []status.Status
	for _, args := range [][]string{
		{file(t, "right.yaml", rightRules)}, {file(t, "wrong.yaml", wrongRules)}, {filepath.Join(t.TempDir(), "none.yaml")}, {"--strict", file(t, "warning.yaml", warningRules)},
	} {
		code, _, _ := runLint(t, "", args...)
		ended = append(ended, code)
	}
	assert.Equal(t, statuses["lint"], ended)
}
