//go:build unix

package lint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

const rule = "groups: [{name: a, rules: [{record: 'a:b', expr: 'sum(vllm:num_requests_waiting)'}]}]\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestFoldersAreReadOnceAndInBounds(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.yaml", "sub/b.yml", "sub/c.json", "sub/deep/d.rules", "sub/e.txt", ".git/f.yaml", "node_modules/g.yaml", "..data_1/h.yaml"} {
		write(t, filepath.Join(root, name), rule)
	}
	// A mounted ConfigMap has links to files in a hidden folder, and links can form a loop.
	require.NoError(t, os.Symlink("..data_1/h.yaml", filepath.Join(root, "h.yaml")))
	require.NoError(t, os.Symlink("..", filepath.Join(root, "sub", "loop")))
	require.NoError(t, os.Symlink("loop2.yaml", filepath.Join(root, "loop2.yaml")))
	require.NoError(t, os.Symlink("a.yaml", filepath.Join(root, "again.yaml")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe.yaml"), 0o600))
	var read, failed []string
	for _, in := range lint.Collect(t.Context(), []string{root, filepath.Join(root, "a.yaml")}, nil) {
		name, err := filepath.Rel(root, in.Name)
		require.NoError(t, err)
		if in.Err != nil {
			failed = append(failed, name)
			continue
		}
		assert.False(t, in.Listed)
		read = append(read, name)
	}
	slices.Sort(read)
	assert.Equal(t, []string{"a.yaml", "h.yaml", "sub/b.yml", "sub/c.json", "sub/deep/d.rules"}, read)
	assert.Equal(t, []string{"loop2.yaml", "pipe.yaml"}, failed)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestFilesThatCannotBeReadAreNamedAndTheOthersAreChecked(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "good.yaml"), rule)
	write(t, filepath.Join(root, "bad.yaml"), "groups: [")
	write(t, filepath.Join(root, "template.yaml"), "{{- if .Values.rules }}\ngroups: []\n{{- end }}\n")
	large := filepath.Join(root, "large.json")
	write(t, large, "{")
	require.NoError(t, os.Truncate(large, 100<<20))
	paths := []string{filepath.Join(root, "good.yaml"), filepath.Join(root, "bad.yaml"), filepath.Join(root, "template.yaml"), large, filepath.Join(root, "none.yaml"), os.DevNull}
	begin := time.Now()
	report := lint.Check(t.Context(), lint.Collect(t.Context(), paths, nil), lint.Options{})
	assert.Less(t, time.Since(begin), 5*time.Second)
	var errs []string
	for i := range report.Files {
		errs = append(errs, report.Files[i].Error)
	}
	require.Len(t, errs, 6)
	assert.Empty(t, errs[0])
	assert.Contains(t, errs[1], "line")
	assert.Contains(t, errs[2], "helm template")
	assert.Contains(t, errs[3], "larger than 16 MiB")
	assert.Contains(t, errs[4], "no such file")
	assert.NotEmpty(t, errs[5])
	assert.Equal(t, 1, report.Summary.Files)
	assert.Equal(t, 5, report.Summary.Unchecked)

	in := lint.Collect(t.Context(), []string{"-"}, broken{})
	assert.ErrorContains(t, in[0].Err, "input/output error")
	in = lint.Collect(t.Context(), []string{"-"}, io.LimitReader(zeros{}, 17<<20))
	assert.ErrorContains(t, in[0].Err, "larger than 16 MiB")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Empty(t, lint.Collect(ctx, paths, nil))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A pipe that is named is read: vllmctl lint <(helm template .).
func TestANamedPipeIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	go func() { _ = os.WriteFile(path, []byte(rule), 0o600) }()
	in := lint.Collect(t.Context(), []string{path}, nil)
	require.Len(t, in, 1)
	require.NoError(t, in[0].Err)
	assert.Equal(t, rule, string(in[0].Content))
}

func TestAPipeWithoutAWriterIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	in := lint.Collect(ctx, []string{path}, nil)
	require.Len(t, in, 1)
	assert.ErrorContains(t, in[0].Err, "interrupted")
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Let the reader end.
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A large dashboard on one line and a large file of rules are checked in linear time.
func TestLargeFilesAreCheckedSoon(t *testing.T) {
	var board strings.Builder
	board.WriteString(`{"title": "D", "panels": [`)
	for i := range 3000 {
		fmt.Fprintf(&board, `{"title": "P%d", "description": %q, "targets": [{"refId": "A", "expr": "sum(vllm:prompt_tokens_total)"}]},`, i, strings.Repeat("ä", 200))
	}
	board.WriteString(`{"panels": []}]}`)
	var rules strings.Builder
	rules.WriteString("groups:\n- name: a\n  rules:\n")
	for i := range 3000 {
		fmt.Fprintf(&rules, "  - record: a:r%d\n    expr: sum(rate(vllm:prompt_tokens_total[5m])) + a:r%d\n", i, i+1)
	}
	begin := time.Now()
	report := check(t, "board.json", board.String(), lint.Options{})
	assert.Equal(t, 3000, report.Summary.Errors)
	assert.Equal(t, 1, report.Files[0].Findings[2999].Line)
	report = check(t, "rules.yaml", rules.String(), lint.Options{})
	assert.Equal(t, 3000, report.Summary.Expressions)
	assert.Less(t, time.Since(begin), 30*time.Second)
	t.Log(time.Since(begin))
}

// Whatever the bytes are, a check and a fix end, and a fix of what was fixed does nothing.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(old))
	f.Add([]byte(rule))
	f.Add([]byte(`{"title": "D", "panels": [{"targets": [{"expr": "rate(vllm:num_preemptions[$__interval]) # vllmctl-lint: disable=x"}]}]}`))
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\ndata:\n  a.json: \"{\\\"panels\\\": [{\\\"targets\\\": [{\\\"expr\\\": \\\"vllm:gpu_cache_usage_perc\\\"}]}]}\"\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		defer time.AfterFunc(30*time.Second, func() { panic(fmt.Sprintf("hangs: %q", content)) }).Stop()
		report := check(t, "a.yaml", string(content), lint.Options{})
		report.Plan(t.Context(), lint.Options{})
		_ = report.Print(io.Discard, lint.Style{Source: true, Skipped: true})
		file := &report.Files[0]
		if err := file.Diff(io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, x := range file.Findings {
			if x.Line < 1 || x.Column < 1 || x.EndLine < x.Line {
				t.Fatalf("%v", x)
			}
		}
		if file.After == nil {
			return
		}
		again := check(t, "a.yaml", string(file.After), lint.Options{})
		again.Plan(t.Context(), lint.Options{})
		if again.Files[0].After != nil {
			t.Fatalf("%q becomes %q becomes %q", content, file.After, again.Files[0].After)
		}
	})
}

// expiring is a context that ends after it was asked a number of times.
type expiring struct {
	context.Context
	left int
}

func (e *expiring) Err() error {
	e.left--
	if e.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestACheckIsInterruptedWithinAFile(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n- name: a\n  rules:\n")
	for i := range 100 {
		fmt.Fprintf(&rules, "  - {record: 'a:b%d', expr: 'rate(vllm:num_preemptions[5m])'}\n", i)
	}
	inputs := []lint.Input{{Name: "a.yaml", Content: []byte(rules.String()), Listed: true}}
	report := lint.Check(&expiring{t.Context(), 10}, inputs, lint.Options{})
	assert.Contains(t, report.Files[0].Error, "interrupted")
	assert.Empty(t, report.Files[0].Findings, "half of the findings would look like all")
	assert.Zero(t, report.Summary.Errors)
	assert.Equal(t, status.Failed, report.Status(false))
}
