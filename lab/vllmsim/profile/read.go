// Package profile reads measured step times of GPUs and models.
//
// A file is CSV, with or without gzip, with the columns gpu, model, tp, dtype, component, x,
// y and ms, in any order and with any others. Each row is the time of one part of a step for
// one pair of arguments:
//
//	component          x                                        y
//	gemm               tokens of the step
//	lm_head            sequences that sample a token
//	decode_attention   sequences that generate                  their mean context in tokens
//	prefill_attention  new tokens of a chunk of a prompt        tokens before it
//	allreduce          tokens of the step
//
// The length of a step is their sum, with prefill_attention for each chunk, and what the
// host takes; engine.Tables says what is between and beyond the points, and how clock and
// bandwidth act. allreduce can be missing at tp 1. A column vllm has the version of the
// measurement; of several versions the latest counts.
package profile

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const (
	// mostBytes bounds a file after decompression.
	mostBytes = 64 << 20
	// leastNumber is below any time and any argument that can be measured.
	leastNumber = 1e-9
	// mostKept bounds the profiles that the process keeps.
	mostKept = 64
)

// request is what was asked for, with the state of the file.
type request struct {
	path, gpu, model string
	tp               int
	dtype            string
	size, modified   int64
}

var (
	lock sync.Mutex
	kept = map[request]engine.Model{}
)

// Read returns the model of a GPU and a model that a file has measurements of. The words of
// gpu and model must all be in the names of the file: "h100_sxm" finds "H100-80G-SXM". tp
// 0 takes the only number of GPUs, or else 1; dtype "" takes the only one, or else bf16. The
// process keeps what it has read.
func Read(path, gpu, model string, tp int, dtype string) (engine.Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return engine.Model{}, fmt.Errorf("profile: %w", err)
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	key := request{path, gpu, model, tp, dtype, info.Size(), info.ModTime().UnixNano()}
	lock.Lock()
	defer lock.Unlock()
	if m, known := kept[key]; known {
		return m, nil
	}
	card, parts, err := read(path, gpu, model, tp, dtype)
	if err != nil {
		return engine.Model{}, err
	}
	tables, err := engine.NewTables(parts)
	if err != nil {
		return engine.Model{}, fmt.Errorf("%s: %s %s, tp %d, %s: %w", path, card.GPU, card.Model, card.TP, card.DType, err)
	}
	name := fmt.Sprintf("%s %s tp%d %s", card.GPU, card.Model, card.TP, card.DType)
	m := engine.Measured(name, card, tables)
	if len(kept) >= mostKept {
		clear(kept)
	}
	kept[key] = m
	return m, nil
}

// read returns the measurements of the card that is asked for.
func read(path, gpu, model string, tp int, dtype string) (engine.Card, engine.Parts, error) {
	var none engine.Parts
	f, err := os.Open(path) // #nosec G304 -- the user names the file
	if err != nil {
		return engine.Card{}, none, fmt.Errorf("profile: %w", err)
	}
	defer func() { _ = f.Close() }()
	table, err := readTable(path, f)
	if err != nil {
		return engine.Card{}, none, err
	}
	chosen, err := choose(table.cards, gpu, model, tp, dtype)
	if err != nil {
		return engine.Card{}, none, fmt.Errorf("%s: %w", path, err)
	}
	parts, err := table.parts(chosen)
	if err == nil && chosen.TP > 1 && len(parts.AllReduce) == 0 {
		err = fmt.Errorf("%s: %s %s, tp %d, %s: no row of the component allreduce, which several GPUs need",
			path, chosen.GPU, chosen.Model, chosen.TP, chosen.DType)
	}
	return chosen.Card, parts, err
}

// versioned is a card and the version of vLLM that it was measured with.
type versioned struct {
	engine.Card
	version string
}

// table is a file: its rows by card, with what is read only of the card that is chosen.
type table struct {
	path  string
	cards []versioned // In the order of the file.
	rows  map[versioned][]row
}

type row struct {
	line                int
	component, x, y, ms string
}

var columns = []string{"gpu", "model", "tp", "dtype", "component", "x", "y", "ms"}

func readTable(path string, from io.Reader) (*table, error) {
	buffered := bufio.NewReader(from)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("%s: not gzip: %w", path, err)
		}
		text = unzipped
	}
	limited := &io.LimitedReader{R: text, N: mostBytes + 1}
	lines := csv.NewReader(limited)
	lines.ReuseRecord = true
	header, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: no header of columns: %w", path, err)
	}
	at := map[string]int{}
	for i, name := range header {
		// Spreadsheets begin a file with a byte order mark.
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if _, twice := at[name]; twice && slices.Contains(columns, name) {
			return nil, fmt.Errorf("%s:1: column %q is there twice: want it once", path, name)
		}
		at[name] = i
	}
	for _, name := range columns {
		if _, there := at[name]; !there {
			return nil, fmt.Errorf("%s:1: column %q is missing: want %s", path, name, strings.Join(columns, ", "))
		}
	}
	version, versions := at["vllm"]
	t := &table{path: path, rows: map[versioned][]row{}}
	for {
		record, err := lines.Read()
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("%s: more than %d MiB: a profile has a few thousand rows", path, mostBytes>>20)
		case errors.Is(err, io.EOF):
			if len(t.cards) == 0 {
				return nil, fmt.Errorf("%s: no row below the header", path)
			}
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		line, _ := lines.FieldPos(0)
		tp, err := strconv.Atoi(record[at["tp"]])
		if err != nil || tp < 1 || tp > 1024 {
			return nil, fmt.Errorf("%s:%d: tp: want a whole number from 1 to 1024, not %q", path, line, record[at["tp"]])
		}
		card := versioned{Card: engine.Card{
			GPU: strings.Clone(record[at["gpu"]]), Model: strings.Clone(record[at["model"]]), DType: strings.Clone(record[at["dtype"]]), TP: tp,
		}}
		if versions {
			card.version = strings.Clone(record[version])
		}
		if _, known := t.rows[card]; !known {
			t.cards = append(t.cards, card)
		}
		t.rows[card] = append(t.rows[card], row{
			line, strings.Clone(record[at["component"]]), strings.Clone(record[at["x"]]), strings.Clone(record[at["y"]]), strings.Clone(record[at["ms"]]),
		})
	}
}

// parts reads the numbers of a card.
func (t *table) parts(card versioned) (engine.Parts, error) {
	var p engine.Parts
	into := map[string]*[]engine.Point{
		"gemm": &p.Products, "lm_head": &p.Head, "allreduce": &p.AllReduce, "decode_attention": &p.Decode, "prefill_attention": &p.Prefill,
	}
	for _, r := range t.rows[card] {
		points := into[r.component]
		if points == nil {
			return p, fmt.Errorf("%s:%d: component: unknown %q: want gemm, lm_head, decode_attention, prefill_attention or allreduce",
				t.path, r.line, r.component)
		}
		two := r.component == "decode_attention" || r.component == "prefill_attention"
		var point engine.Point
		for _, n := range []struct {
			name, text string
			least      float64
			into       *float64
		}{{"x", r.x, math.SmallestNonzeroFloat64, &point.X}, {"y", r.y, 0, &point.Y}, {"ms", r.ms, math.SmallestNonzeroFloat64, &point.Seconds}} {
			if n.name == "y" && !two {
				if n.text != "" {
					return p, fmt.Errorf("%s:%d: y: %s has one argument: want nothing, not %q", t.path, r.line, r.component, n.text)
				}
				continue
			}
			v, err := strconv.ParseFloat(strings.TrimSpace(n.text), 64)
			if err != nil || !(v >= n.least && v <= 1e12) {
				want := "a number above 0"
				if n.least == 0 {
					want = "a number of at least 0"
				}
				return p, fmt.Errorf("%s:%d: %s: want %s, not %q", t.path, r.line, n.name, want, n.text)
			}
			if v > 0 && v < leastNumber {
				return p, fmt.Errorf("%s:%d: %s: want a number of at least %v, not %q", t.path, r.line, n.name, leastNumber, n.text)
			}
			*n.into = v
		}
		point.Seconds /= 1000
		*points = append(*points, point)
	}
	return p, nil
}
