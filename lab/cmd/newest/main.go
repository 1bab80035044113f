// Program newest tries a release of the Collector, the newest one if none is given, and prints what
// of the manifests is missing there or does not build. It changes nothing in the checkout. It fails
// where the release is newer than ours and builds whole with our components: then we can move.
//
//	newest [-core v0.162.0] [-dir build/newest] builder-config.yaml...
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// core is a module that each release of the Collector has, and contrib one that each release of
// contrib has: what says which release is the newest.
const (
	core    = "go.opentelemetry.io/collector/otelcol"
	contrib = "github.com/open-telemetry/opentelemetry-collector-contrib/"
	ours    = "github.com/otelcol-vllm/otelcol-vllm"
)

// gomod is the line of a manifest that names a component.
var gomod = regexp.MustCompile(`(?m)^ *- gomod: (\S+) (v\S+)`)

// component is an upstream module of a manifest with the version that we have, and the one to try.
type component struct{ module, ours, tried string }

func main() {
	release := flag.String("core", "", "release of core to try, v0.162.0 for example; empty: the newest")
	dir := flag.String("dir", "build/newest", "folder for what is tried")
	flag.Parse()
	if err := run(*release, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "newest:", err)
		os.Exit(1)
	}
}

func run(release, dir string, manifests []string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if release == "" {
		if release = newest(dir, core, ""); release == "" {
			return fmt.Errorf("the registry lists no version of %s", core)
		}
	}
	components, own, err := read(dir, release, manifests)
	if err != nil {
		return err
	}
	current := ""
	for _, c := range components {
		if strings.HasPrefix(c.module, "go.opentelemetry.io/") && semver.Major(c.ours) == "v0" {
			current = c.ours
		}
	}
	fmt.Printf("core %s (ours %s), %d components\n", release, current, len(components))
	var whole []component
	for _, c := range components {
		if why := try(filepath.Join(dir, "one"), release, []component{c}, nil, "mod", "tidy"); why != "" {
			fmt.Printf("missing  %s %s (ours %s)\n         %s\n", c.module, c.tried, c.ours, why)
			continue
		}
		whole = append(whole, c)
		fmt.Printf("resolves %s %s (ours %s)\n", c.module, c.tried, c.ours)
	}
	for _, packages := range [][]string{nil, own} {
		for _, command := range [][]string{{"mod", "tidy"}, {"build", "-o", os.DevNull, "."}} {
			if why := try(filepath.Join(dir, "all"), release, whole, packages, command...); why != "" {
				fmt.Printf("the %d that resolve do not build with %d of our packages: %s\n", len(whole), len(packages), why)
				return nil
			}
		}
	}
	fmt.Printf("the %d that resolve build with our %d packages\n", len(whole), len(own))
	if len(whole) == len(components) && semver.Compare(release, current) > 0 {
		return fmt.Errorf("%s builds whole, and ours is %s: docs/development.md says how to move", release, current)
	}
	return nil
}

// read returns the upstream components of all manifests, each with its version in the release, and
// the packages of our own.
func read(dir, release string, manifests []string) (all []component, own []string, err error) {
	for _, name := range manifests {
		content, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return nil, nil, err
		}
		for _, match := range regexp.MustCompile(`(?m)^ *import: (\S+)`).FindAllSubmatch(content, -1) {
			own = append(own, string(match[1]))
		}
		for _, match := range gomod.FindAllSubmatch(content, -1) {
			c := component{module: string(match[1]), ours: string(match[2])}
			if c.module == ours || slices.ContainsFunc(all, func(o component) bool { return o.module == c.module }) {
				continue
			}
			c.tried = version(dir, release, c)
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, nil, errors.New("no upstream component in the manifests")
	}
	slices.Sort(own)
	return all, slices.Compact(own), nil
}

// version returns the version of a component that belongs to a release of core. Modules of core have
// v0.161.0 or, where they are stable, v1.67.0; those of contrib v0.161.0 or v0.161.1, or numbers of
// their own, of which the newest is tried. A registry may list too few versions, so the version that
// follows from the rule is tried where none is listed.
func version(dir, release string, c component) string {
	minor := strings.Split(strings.TrimPrefix(release, "v"), ".")[1]
	stable := 0
	if _, err := fmt.Sscan(minor, &stable); err != nil {
		return release
	}
	stable -= 94
	for _, prefix := range []string{fmt.Sprintf("v1.%d.", stable), "v0." + minor + "."} {
		if strings.HasPrefix(c.module, contrib) && strings.HasPrefix(prefix, "v1.") {
			continue
		}
		if v := newest(dir, c.module, prefix); v != "" {
			return v
		}
	}
	switch own := newest(dir, c.module, ""); {
	case semver.Major(c.ours) == "v1":
		return fmt.Sprintf("v1.%d.0", stable)
	case semver.Major(own) == "v1":
		return own
	}
	return "v0." + minor + ".0"
}

// newest returns the highest version of a module that the registry lists and that begins with the
// prefix, or "". Versions before a release do not count.
func newest(dir, module, prefix string) string {
	output, err := command(dir, "list", "-m", "-versions", "-f", "{{range .Versions}}{{.}} {{end}}", module)
	if err != nil {
		return ""
	}
	all := slices.DeleteFunc(strings.Fields(output), func(v string) bool {
		return !strings.HasPrefix(v, prefix) || semver.Prerelease(v) != "" || semver.Build(v) != ""
	})
	if len(all) == 0 {
		return ""
	}
	return slices.MaxFunc(all, semver.Compare)
}

// try makes a program of core, the components and packages of ours, runs a command of Go on it, and
// returns in a line why it does not work, or "". "mod tidy" comes first: it starts a new go.mod.
func try(dir, release string, components []component, own []string, arguments ...string) string {
	if arguments[0] == "mod" {
		var module, program strings.Builder
		fmt.Fprintf(&module, "module tried\n\nrequire %s %s\n", core, release)
		fmt.Fprintf(&program, "package main\n\nimport _ %q\n", core)
		for _, c := range components {
			fmt.Fprintf(&module, "require %s %s\n", c.module, c.tried)
			fmt.Fprintf(&program, "import _ %q\n", c.module)
		}
		if own != nil {
			checkout, err := os.Getwd()
			if err != nil {
				return err.Error()
			}
			fmt.Fprintf(&module, "replace %s => %s\n", ours, checkout)
		}
		for _, p := range own {
			fmt.Fprintf(&program, "import _ %q\n", p)
		}
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o750),
			os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module.String()), 0o600),
			os.WriteFile(filepath.Join(dir, "main.go"), []byte(program.String()+"\nfunc main() {}\n"), 0o600)); err != nil {
			return err.Error()
		}
	}
	if output, err := command(dir, arguments...); err != nil {
		return reason(output)
	}
	if linked, err := command(dir, "list", "-m", "-f", "{{.Version}}", core); err != nil || strings.TrimSpace(linked) != release {
		return "needs core " + strings.TrimSpace(linked)
	}
	return ""
}

// command runs Go in a folder, outside of our workspace. It may fetch the version of Go that the
// modules ask for.
func command(dir string, arguments ...string) (string, error) {
	c := exec.Command("go", arguments...) //nolint:gosec // the arguments are ours
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOTOOLCHAIN=auto")
	output, err := c.CombinedOutput()
	return string(output), err
}

// unavailable is a module that the registry refuses, as Go says it.
var unavailable = regexp.MustCompile(`(\S+@v[^\s:]+): (?:reading \S+|invalid version|unrecognized)`)

// reason returns what is wrong in the output of Go, in a line: the modules that are not available,
// or its first lines that are no progress.
func reason(output string) string {
	var found []string
	for _, match := range unavailable.FindAllStringSubmatch(output, -1) {
		found = append(found, match[1]+" is not available")
	}
	if found == nil {
		for line := range strings.Lines(output) {
			if !strings.HasPrefix(line, "go: downloading ") && !strings.HasPrefix(line, "#") {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	return strings.Join(found[:min(len(found), 5)], "; ")
}
