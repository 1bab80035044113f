// Command chartgen writes what the Helm charts and the sample for the operator have in common
// with examples/kubernetes: the collector configurations, the rules and dashboards, and the
// tables of values in the charts' pages. Helm reads only files inside of a chart, so they are
// copies, the dashboards without their indentation. lab/test/kubernetes starts it, after the rules and dashboards are written.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// The folders of the charts, and what is copied into them from elsewhere.
const (
	chart      = "examples/helm/otelcol-vllm"
	sidecar    = "examples/helm/otelcol-vllm-sidecar"
	manifests  = "examples/kubernetes"
	rules      = "content/rules/suffixed"
	dashboards = "content/grafana/suffixed"
)

// copies are the files of the charts by their paths, and where they come from. A mode of the
// chart has the receivers of the overlay with the same name.
var copies = map[string]string{
	chart + "/files/collector.yaml":            manifests + "/base/collector/collector.yaml",
	chart + "/files/exporter.yaml":             manifests + "/base/collector/exporter.yaml",
	chart + "/files/scrape/exporter.yaml":      manifests + "/components/scrape/exporter.yaml",
	chart + "/files/agent/receivers.yaml":      manifests + "/base/agent/receivers.yaml",
	chart + "/files/gateway/receivers.yaml":    manifests + "/base/gateway/receivers.yaml",
	chart + "/files/pool/processors.yaml":      manifests + "/base/pool/processors.yaml",
	chart + "/files/pool/receivers.yaml":       manifests + "/components/inference-pool/receivers.yaml",
	chart + "/files/pool-label/receivers.yaml": manifests + "/components/label/receivers.yaml",
	chart + "/files/shards/receivers.yaml":     manifests + "/components/shards/receivers.yaml",
	chart + "/files/probes.yaml":               manifests + "/components/pool-probes/probes.yaml",
	chart + "/files/content/vllm.yaml":         rules + "/vllm.yaml",
	sidecar + "/files/collector.yaml":          manifests + "/base/sidecar/collector.yaml",
	sidecar + "/files/probes.yaml":             manifests + "/components/sidecar-probes/probes.yaml",
}

// poolLabel are the parts of the configuration of the overlay pool-label, which the samples
// for other charts and for the operator have as one.
var poolLabel = []string{
	manifests + "/base/collector/collector.yaml",
	manifests + "/base/collector/exporter.yaml",
	manifests + "/base/pool/processors.yaml",
	manifests + "/components/label/receivers.yaml",
}

// embedded are the files with a configuration inside, and the extensions that it leaves out.
var embedded = map[string][]string{
	"examples/helm/upstream-values.yaml": nil,
	// The operator takes the address of all probes from one of the extensions with the type
	// health_check, and does not say which.
	"examples/operator/collector.yaml": {"health_check/ready"},
}

func main() {
	root := flag.String("root", ".", "the root of the repository")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "chartgen:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := generated(root)
	if err != nil {
		return err
	}
	stale, err := staleFiles(root, files)
	if err != nil {
		return err
	}
	for name, data := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	for _, name := range stale {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the content of every generated file by its path below root.
func generated(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, name)) }
	boards, err := filepath.Glob(filepath.Join(root, dashboards, "*.json"))
	if err != nil || len(boards) == 0 {
		return nil, fmt.Errorf("no dashboards in %s: %w", dashboards, err)
	}
	for _, board := range boards {
		name := filepath.Base(board)
		text, err := read(dashboards + "/" + name)
		if err != nil {
			return nil, err
		}
		var small bytes.Buffer
		if err := json.Compact(&small, text); err != nil {
			return nil, fmt.Errorf("%s: %w", board, err)
		}
		files[chart+"/files/content/"+name] = append(small.Bytes(), '\n')
	}
	for name, from := range copies {
		if files[name], err = read(from); err != nil {
			return nil, err
		}
	}
	var parts [][]byte
	for _, name := range poolLabel {
		part, err := read(name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	for name, without := range embedded {
		page, err := read(name)
		if err != nil {
			return nil, err
		}
		config, err := merged(parts, without)
		if err != nil {
			return nil, err
		}
		if files[name], err = embed(page, config); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range presets {
		example, err := read("examples/backends/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		if files[chart+"/files/backends/"+name+".yaml"], err = preset(example); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, folder := range []string{chart, sidecar} {
		values, err := read(folder + "/values.yaml")
		if err != nil {
			return nil, err
		}
		page, err := read(folder + "/README.md")
		if err != nil {
			return nil, err
		}
		if files[folder+"/README.md"], err = documented(page, values); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	return files, nil
}

// staleFiles returns the files in the charts' folders of copies that are not written any more.
func staleFiles(root string, files map[string][]byte) ([]string, error) {
	var stale []string
	for _, folder := range []string{chart, sidecar} {
		for _, pattern := range []string{"files/*", "files/*/*"} {
			found, err := filepath.Glob(filepath.Join(root, folder, pattern))
			if err != nil {
				return nil, err
			}
			for _, file := range found {
				info, err := os.Stat(file)
				if err != nil {
					return nil, err
				}
				inside, err := filepath.Rel(root, file)
				if err != nil {
					return nil, err
				}
				if name := path.Clean(filepath.ToSlash(inside)); !info.IsDir() && files[name] == nil {
					stale = append(stale, name)
				}
			}
		}
	}
	slices.Sort(stale)
	return stale, nil
}
