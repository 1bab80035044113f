package fleet

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Save writes what a run has found into a folder: as JSON, and in other files.
func Save(folder, name string, result any, files map[string][]byte) error {
	content, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return err
	}
	return write(folder, name, append(content, '\n'), files, 0o600)
}

// WritePage writes the generated parts of a page, and other files beside it.
func WritePage(page string, parts map[string]string, files map[string][]byte) error {
	content, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if content, err = pageparts.Replace(content, parts); err != nil {
		return err
	}
	return write(filepath.Dir(page), filepath.Base(page), content, files, 0o644)
}

func write(folder, name string, content []byte, files map[string][]byte, mode os.FileMode) error {
	for other, content := range files {
		if err := os.WriteFile(filepath.Join(folder, other), content, mode); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, name), content, mode)
}
