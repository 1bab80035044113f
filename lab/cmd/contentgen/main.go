// Command contentgen writes what the project ships besides programs: rules, dashboards and
// the runbooks of alerts. They are defined in cmd/vllmctl/content; one package below it
// writes each format. A file below content/ that no builder writes is removed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/board"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/datadog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
)

// parts return what is generated inside of pages that are otherwise written by hand: the text by the
// path of the page and the name of the part.
var parts = []func() map[string]map[string]string{
	rulefile.PageParts,
	datadog.Parts,
	board.Parts,
}

// owned are the patterns of the paths that only builders write. A file that matches and that no
// builder writes any more is removed.
var owned = []string{"content/*", "content/*/*", "content/*/*/*", "docs/runbooks/VLLM*.md"}

func main() {
	root := flag.String("root", ".", "root of the repository")
	spellings := flag.String("spellings", "", "write only rules and dashboards, in these `spellings`: a list with commas of dotted, unsuffixed, wire and suffixed")
	to := flag.String("to", "build/content", "the `folder` that -spellings writes")
	flag.Parse()
	do := func() error { return run(*root) }
	if *spellings != "" {
		do = func() error { return write(*to, strings.Split(*spellings, ",")) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "contentgen:", err)
		os.Exit(1)
	}
}

// write writes rules and dashboards in the given spellings into a folder.
func write(folder string, names []string) error {
	var spellings []spelling.Spelling
	for _, name := range names {
		to := spelling.Spelling(name)
		if to != spelling.Suffixed && !slices.Contains(shipped.Others, to) {
			return fmt.Errorf("there is no spelling %q; write dotted, unsuffixed, wire or suffixed", name)
		}
		spellings = append(spellings, to)
	}
	return shipped.WriteIn(folder, spellings...)
}

// run writes nothing unless all content is valid.
func run(root string) error {
	files, err := generated(root, content.Groups())
	if err != nil {
		return err
	}
	if err := shipped.Write(root, files); err != nil {
		return err
	}
	stale, err := staleFiles(root, files)
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the content of every generated file by its path below root. A gap in one of the
// alerts is an error.
func generated(root string, alerts []content.Group) (map[string][]byte, error) {
	if err := content.Gaps(alerts); err != nil {
		return nil, err
	}
	files, err := shipped.Committed()
	if err != nil {
		return nil, err
	}
	for _, build := range parts {
		for name, texts := range build() {
			page, ok := files[name]
			if !ok {
				var err error
				if page, err = os.ReadFile(filepath.Join(root, name)); err != nil {
					return nil, fmt.Errorf("%w: the generated parts of this page have no place", err)
				}
			}
			page, err := pageparts.Replace(page, texts)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			files[name] = page
		}
	}
	return files, nil
}

// staleFiles returns the files that only builders write and that none has written. A README is
// written by hand.
func staleFiles(root string, files map[string][]byte) ([]string, error) {
	var stale []string
	for _, dir := range []string{"content", "docs/runbooks"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() || path.Base(name) == "README.md" || files[name] != nil {
				return err
			}
			if slices.ContainsFunc(owned, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
				stale = append(stale, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return stale, nil
}
