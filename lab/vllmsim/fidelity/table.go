package fidelity

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// row is a line of a table with named columns.
type row struct {
	columns map[string]int
	cells   []string
	at      string
	err     *error
}

// text returns a cell.
func (r row) text(column string) string {
	i, ok := r.columns[column]
	if !ok {
		r.fail(fmt.Errorf("%s: there is no column %q", r.at, column))
		return ""
	}
	return r.cells[i]
}

// number returns a cell that is a number; an empty one is 0.
func (r row) number(column string) float64 {
	text := r.text(column)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.fail(fmt.Errorf("%s: column %s: %q is not a number", r.at, column, text))
		return 0
	}
	return v
}

func (r row) whole(column string) int { return int(math.Round(r.number(column))) }

func (r row) fail(err error) {
	if *r.err == nil {
		*r.err = err
	}
}

// maxTable bounds what is read of one table, in bytes.
const maxTable = 256 << 20

// each calls use with each row of a table of the reference data.
func (d *data) each(name string, use func(row)) (err error) {
	path := filepath.Join(d.profiles, name)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		from = unzipped
	}
	in := csv.NewReader(io.LimitReader(from, maxTable))
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	columns := map[string]int{}
	for i, name := range head {
		columns[name] = i
	}
	var failed error
	for failed == nil {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		line, _ := in.FieldPos(0)
		use(row{columns, cells, fmt.Sprintf("%s:%d", path, line), &failed})
	}
	return failed
}
