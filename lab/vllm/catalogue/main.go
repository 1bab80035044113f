// Program catalogue compares the catalogue with the metric families in the source of releases: of vLLM
// (lab/vllm/families.tsv, "make vllm-families") and of llm-d-router (lab/vllm/router.tsv, "make router-families").
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
)

func main() {
	path := flag.String("table", "lab/vllm/families.tsv", "the `file` with the families of the releases that were read")
	add := flag.String("add", "", "merge this `file`, which families.py has printed, into the table")
	checkout := flag.String("source", "", "merge the families of the Go source in this `folder` into the table")
	release := flag.String("release", "", "the `name` of the release in that folder")
	flag.Parse()
	findings, err := work(*path, *add, *checkout, *release)
	if err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		os.Exit(2)
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
	fmt.Println("the catalogue agrees with the source of all releases in", *path)
}

func work(path, add, checkout, release string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := readTable(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if add != "" {
		content, err := os.ReadFile(add)
		if err != nil {
			return nil, err
		}
		if err := t.add(bytes.NewReader(content)); err != nil {
			return nil, err
		}
	}
	if checkout != "" {
		if err := t.addSource(os.DirFS(checkout), release); err != nil {
			return nil, err
		}
	}
	if add != "" || checkout != "" {
		var merged bytes.Buffer
		if err := t.write(&merged); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, merged.Bytes(), 0o600); err != nil {
			return nil, err
		}
	}
	return compare(t), nil
}

// addSource merges what a checkout defines, and writes to stderr what only the running program knows.
func (t *table) addSource(tree fs.FS, release string) error {
	s, err := readSource(tree)
	if err != nil {
		return err
	}
	families := s.families()
	if len(families) == 0 {
		return errors.New("the source defines no metrics")
	}
	for _, f := range families {
		t.merge(release, f)
	}
	for _, complaint := range s.complaints {
		fmt.Fprintln(os.Stderr, "unresolved:", complaint)
	}
	return nil
}
