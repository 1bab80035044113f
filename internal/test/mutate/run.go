package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A verdict says what the tests did with a mutation.
type verdict int

const (
	survived verdict = iota
	killedByOwn
	killedByParent
)

func (v verdict) String() string {
	return [...]string{"survived", "killed by its own package", "killed by the parent"}[v]
}

// suite is the tests of one package, and how long they take without a mutation.
type suite struct {
	path  string
	short bool
}

// parentOf returns the folder of the package whose tests also protect a folder: a
// component's, for what is below its internal folder.
func parentOf(dir string) (string, bool) {
	parent, _, below := strings.Cut(filepath.ToSlash(dir), "/internal/")
	return parent, below
}

// suites returns the tests that run against a mutation of a file, in their order.
func suites(file string) []suite {
	dir := filepath.ToSlash(filepath.Dir(file))
	all := []suite{{path: "./" + dir}}
	if parent, ok := parentOf(dir); ok {
		all = append(all, suite{path: "./" + parent, short: true})
	}
	return all
}

// runner runs tests in the module at root.
type runner struct {
	root    string
	allowed map[suite]time.Duration
}

// measure runs a suite without a mutation. The tests must pass, and what they need
// decides how long they may take with one.
func (r *runner) measure(ctx context.Context, s suite) error {
	began := time.Now()
	o, out := r.test(ctx, s, "", 10*time.Minute)
	if o != passed {
		return fmt.Errorf("the tests of %s fail without a mutation:\n%s", s.path, out)
	}
	r.allowed[s] = time.Minute + 4*time.Since(began)
	return nil
}

// An outcome is how the tests of a suite ended.
type outcome int

const (
	passed outcome = iota
	failed
	timedOut
)

// test runs a suite. Vet is off, so that only a test
// can kill.
func (r *runner) test(ctx context.Context, s suite, overlay string, allowed time.Duration) (o outcome, out []byte) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", allowed.String()}
	if s.short {
		args = append(args, "-short")
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	// The compiler needs time of its own.
	ctx, cancel := context.WithTimeout(ctx, allowed+2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", append(args, s.path)...) //nolint:gosec // the packages of this module
	command.Dir = r.root
	// A test program that outlives "go test" must not hold its output open.
	command.WaitDelay = 5 * time.Second
	out, err := command.CombinedOutput()
	switch {
	case err == nil:
		return passed, out
	case ctx.Err() != nil, bytes.Contains(out, []byte("panic: test timed out after")):
		return timedOut, out
	default:
		return failed, out
	}
}

// overlay writes the mutated file and an overlay that puts it in the place of the
// original one, into a folder.
func (r *runner) overlay(dir string, m mutation) (string, error) {
	original := filepath.Join(r.root, m.file)
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, filepath.Base(original))
	if err := os.WriteFile(mutated, m.apply(source), 0o644); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o644)
}

// compiles reports whether the product compiles with a mutation.
func (r *runner) compiles(ctx context.Context, m mutation) (bool, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.overlay(dir, m)
	if err != nil {
		return false, err
	}
	command := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+filepath.ToSlash(filepath.Dir(m.file))) //nolint:gosec // the packages of this module
	command.Dir = r.root
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && bytes.Contains(out, []byte(filepath.Base(m.file)+":")):
		return false, nil
	default:
		return false, fmt.Errorf("go build with %s: %w: %s", m, err, bytes.TrimSpace(out))
	}
}

// judge runs the tests against a mutation until one fails. It also reports whether that
// one did not end in time.
func (r *runner) judge(ctx context.Context, m mutation) (v verdict, late bool, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return survived, false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.overlay(dir, m)
	if err != nil {
		return survived, false, err
	}
	for i, s := range suites(m.file) {
		o, _ := r.test(ctx, s, overlay, r.allowed[s])
		if ctx.Err() != nil {
			return survived, false, ctx.Err()
		}
		if o != passed {
			return killedByOwn + verdict(i), o == timedOut, nil
		}
	}
	return survived, false, nil
}
