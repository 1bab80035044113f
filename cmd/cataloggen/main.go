// Command cataloggen reads the catalogue, metadata.yaml at the root of the
// repository, and the diagnosis, internal/catalog/diagnosis.yaml, and writes what
// is made from them: the tables of internal/catalog, the references for users of
// the receiver and of the processor (metrics.md of each), the table of derived
// metrics in the root's README.md, and the generated parts of docs/diagnosis.md and
// docs/reference/naming.md.
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
	read := func(path ...string) ([]byte, error) {
		return os.ReadFile(filepath.Join(root, filepath.Join(path...)))
	}
	content, err := read("metadata.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("metadata.yaml: %w", err)
	}
	if content, err = read("internal", "catalog", "diagnosis.yaml"); err != nil {
		return nil, err
	}
	diagnosed, err := parseDiagnosis(content, doc)
	if err != nil {
		return nil, fmt.Errorf("diagnosis.yaml: %w", err)
	}
	readme, err := read("README.md")
	if err != nil {
		return nil, err
	}
	guide, err := read("docs", "diagnosis.md")
	if err != nil {
		return nil, err
	}
	naming, err := read("docs", "reference", "naming.md")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for path, generate := range map[string]func(*document) ([]byte, error){
		filepath.Join("internal", "catalog", "catalog_generated.go"): goTable,
		filepath.Join("receiver", "vllmreceiver", "metrics.md"):      receiverReference,
		filepath.Join("processor", "vllmprocessor", "metrics.md"):    processorReference,
		"README.md": func(d *document) ([]byte, error) { return readmeWith(d, readme) },
		filepath.Join("internal", "catalog", "diagnosis_generated.go"): func(*document) ([]byte, error) {
			return goDiagnosis(diagnosed)
		},
		filepath.Join("docs", "reference", "naming.md"):    func(d *document) ([]byte, error) { return namingWith(d, naming) },
		filepath.Join("docs", "diagnosis.md"): func(d *document) ([]byte, error) { return diagnosed.guideWith(d, guide) },
	} {
		if files[path], err = generate(doc); err != nil {
			return nil, err
		}
	}
	return files, nil
}
