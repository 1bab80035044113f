// Command cataloggen reads the catalogue, metadata.yaml at the root of the
// repository, and the diagnosis, internal/catalog/diagnosis.yaml. It writes the
// tables of internal/catalog, the lists of metrics of the receiver and the processor
// (metrics.md of each), and the generated parts of the pages below docs.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

func main() {
	root := flag.String("root", ".", "root of the repository, where metadata.yaml lies")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "cataloggen:", err)
		os.Exit(1)
	}
}

// run writes nothing unless the whole catalogue is valid.
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
	content, err := os.ReadFile(filepath.Join(root, "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	doc, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("metadata.yaml: %w", err)
	}
	if content, err = os.ReadFile(filepath.Join(root, "internal", "catalog", "diagnosis.yaml")); err != nil {
		return nil, err
	}
	diagnosed, err := parseDiagnosis(content, doc)
	if err != nil {
		return nil, fmt.Errorf("diagnosis.yaml: %w", err)
	}
	if content, err = os.ReadFile(filepath.Join(root, "internal", "catalog", "defects.yaml")); err != nil {
		return nil, err
	}
	known, err := parseDefects(content, doc)
	if err != nil {
		return nil, fmt.Errorf("defects.yaml: %w", err)
	}
	if content, err = os.ReadFile(filepath.Join(root, "internal", "catalog", "decisions.yaml")); err != nil {
		return nil, err
	}
	all := &knowledge{catalogue: doc, diagnosed: diagnosed, defects: known}
	decided, err := parseDecisions(content, all)
	if err != nil {
		return nil, fmt.Errorf("decisions.yaml: %w", err)
	}
	files := map[string][]byte{}
	for path, write := range map[string]func(*document) ([]byte, error){
		"internal/catalog/catalog_generated.go": goTable,
		"receiver/vllmreceiver/metrics.md": func(*document) ([]byte, error) {
			return receiverReference(doc, known)
		},
		"processor/vllmprocessor/metrics.md": func(*document) ([]byte, error) {
			return processorReference(all, decided)
		},
		"internal/catalog/diagnosis_generated.go": func(*document) ([]byte, error) {
			return goDiagnosis(diagnosed)
		},
		"internal/catalog/defects_generated.go": func(*document) ([]byte, error) {
			return goDefects(known)
		},
		"internal/catalog/decisions_generated.go": func(*document) ([]byte, error) {
			return goDecisions(decided)
		},
	} {
		if files[path], err = write(doc); err != nil {
			return nil, err
		}
	}
	manifest, err := os.ReadFile(filepath.Join(root, "examples", "builder", "checkout.yaml"))
	if err != nil {
		return nil, err
	}
	pages := pageParts(doc, diagnosed)
	pages[wrongPage] = known.wrongParts()
	pages["docs/start/own-collector.md"] = map[string]string{"checkout-manifest": "```yaml\n" + string(manifest) + "```\n"}
	for path, parts := range pages {
		page, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, fmt.Errorf("%w: the generated parts of this page have no place", err)
		}
		if files[path], err = pageparts.Replace(page, parts); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !namesMetricsOnly(path) {
			continue
		}
		if err := unknownMetrics(doc, files[path]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return files, nil
}
