// The types program writes a TypeScript file that assigns each dashboard of a directory to
// Grafana's published type of dashboards. "make boards" lets tsc compile it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "types: name the directory of the dashboards")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.DirFS(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "types:", err)
		os.Exit(1)
	}
}

// Grafana's generated types require some fields that Grafana itself fills in where they are
// missing; types are compared as published, without weakening them.
const head = `import type { Dashboard, Panel, RowPanel } from '@grafana/schema';

type Board = Omit<Dashboard, 'panels'> & { panels: (Panel | RowPanel)[] };
`

func write(to io.Writer, from fs.FS) error {
	var out bytes.Buffer
	out.WriteString(head)
	count := 0
	err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		content, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		var board any
		if err := json.Unmarshal(content, &board); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		count++
		fmt.Fprintf(&out, "\n// %s\nexport const board%d: Board = %s;\n", path, count, strings.TrimSpace(string(content)))
		return nil
	})
	if err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("there is no dashboard")
	}
	_, err = to.Write(out.Bytes())
	return err
}
