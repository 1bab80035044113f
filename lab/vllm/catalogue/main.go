// Program catalogue compares the catalogue with the metric families in the source of vLLM's
// releases, lab/vllm/families.tsv. "make vllm-families" starts it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	path := flag.String("table", "lab/vllm/families.tsv", "the `file` with the families of the releases that were read")
	add := flag.String("add", "", "merge this `file`, which families.py has printed, into the table")
	flag.Parse()
	findings, err := work(*path, *add)
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

func work(path, add string) ([]string, error) {
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
