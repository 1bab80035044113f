// Command cataloggen reads the catalogue, metadata.yaml at the root of the
// repository, and writes what is made from it: the table of internal/catalog,
// the references for users of the receiver and of the processor (metrics.md of
// each), and the table of derived metrics in the root's README.md.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	files, err := generated(root)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(root, path), files[path], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the content of every generated file by its path below root.
func generated(root string) (map[string][]byte, error) {
	source := filepath.Join(root, "metadata.yaml")
	content, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	doc, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for path, generate := range map[string]func(*document) ([]byte, error){
		filepath.Join("internal", "catalog", "catalog_generated.go"): goTable,
		filepath.Join("receiver", "vllmreceiver", "metrics.md"):      receiverReference,
		filepath.Join("processor", "vllmprocessor", "metrics.md"):    processorReference,
		"README.md": func(d *document) ([]byte, error) { return readmeWith(d, readme) },
	} {
		if files[path], err = generate(doc); err != nil {
			return nil, err
		}
	}
	return files, nil
}
