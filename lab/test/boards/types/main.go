// The types program writes a TypeScript file that assigns each dashboard of a directory to
// Grafana's published type of dashboards. "make boards" lets tsc compile it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
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

// head names the type. Values of enumerations stand in JSON as their strings, so Loose
// replaces each enumeration of strings by its values. Annotation adds the fields that the
// data source Prometheus has, for which nothing is published. Nothing else is weakened.
const head = `import type { AnnotationQuery, Dashboard, DataQuery } from '@grafana/schema';

type Loose<T> = T extends string ? ` + "`${T}`" + ` : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;
type Annotation = AnnotationQuery<DataQuery & { expr: string; interval?: string }> &
  { titleFormat?: string; textFormat?: string; tagKeys?: string; useValueForTime?: boolean };
type Board = Omit<Loose<Dashboard>, 'annotations'> & { annotations: { list: Loose<Annotation>[] } };
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
		return errors.New("there is no dashboard")
	}
	_, err = to.Write(out.Bytes())
	return err
}
