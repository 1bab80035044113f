// Command cataloggen reads the catalogue, metadata.yaml at the root of the
// repository, and writes what is made from it: the table of internal/catalog
// and the reference for users, receiver/vllmreceiver/metrics.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "root of the repository, where metadata.yaml lies")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "cataloggen:", err)
		os.Exit(1)
	}
}

// run writes nothing unless the whole catalogue is sound.
func run(root string) error {
	source := filepath.Join(root, "metadata.yaml")
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	doc, err := parse(content)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	table, err := goTable(doc)
	if err != nil {
		return err
	}
	reference, err := markdown(doc)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "internal", "catalog", "catalog_generated.go"), table, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "receiver", "vllmreceiver", "metrics.md"), reference, 0o644)
}
