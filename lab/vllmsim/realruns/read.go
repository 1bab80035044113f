package realruns

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of what is read. The largest recording has 3,700 rows and 5,500 requests.
const (
	maxBytes = 64 << 20
	maxRows  = 200_000
	maxRuns  = 1_000
	maxField = 4096
	// maxTime is a week in seconds.
	maxTime = 7 * 24 * 3600
	// maxNumber keeps sums of counters exact.
	maxNumber = 1 << 50
)

// Names of the files of a folder.
const (
	indexName      = "index.csv"
	requestsSuffix = "-requests.csv"
	seriesSuffix   = "-series.csv"
)

// ErrAbsent means that a folder has no recordings.
var ErrAbsent = errors.New("no recordings")

// SharedVersion is the version of vLLM of those recordings in the shared data that have no
// index to name it: its README does.
const SharedVersion = "0.19.0"

// Folders returns the folders with recordings below the folder of shared data.
func Folders(shared string) []string {
	return []string{filepath.Join(shared, "profiles", "series"), filepath.Join(shared, "profiles", "runs")}
}

// ReadFolder reads the recordings of a folder, in the order of its index, or of their names
// without one. version is that of recordings which do not name theirs. The error is ErrAbsent
// where there are none.
func ReadFolder(folder, version string) ([]*Recording, error) {
	index, err := readIndex(filepath.Join(folder, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return readUnindexed(folder, version)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range index {
		series, err := first(folder, r.Name+".csv", r.Name+".csv.gz")
		if err != nil {
			return nil, err
		}
		if err := r.read(folder, series); err != nil {
			return nil, err
		}
		if r.Version == "" {
			r.Version = version
		}
	}
	if len(index) == 0 {
		return nil, fmt.Errorf("%s: %w", folder, ErrAbsent)
	}
	return index, nil
}

func readUnindexed(folder, version string) ([]*Recording, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", folder, ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	var out []*Recording
	for _, entry := range entries {
		name, series := strings.CutSuffix(strings.TrimSuffix(entry.Name(), ".gz"), seriesSuffix)
		if !series {
			continue
		}
		if len(out) == maxRuns {
			return nil, fmt.Errorf("%s has more than %d recordings", folder, maxRuns)
		}
		r := &Recording{Name: name, Version: version}
		if err := r.read(folder, filepath.Join(folder, entry.Name())); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: %w", folder, ErrAbsent)
	}
	return out, nil
}

// readIndex reads names, versions and what happened.
func readIndex(path string) ([]*Recording, error) {
	var out []*Recording
	known := map[string]bool{}
	err := readTable(path, maxRuns, []string{"name"}, func(row *record) error {
		r := &Recording{
			Name: row.text("name"), Model: row.text("model"), Version: row.text("vllm"),
			Label: row.text("label"), Note: row.text("note"), Capacity: row.optional("kv_cache_tokens"),
		}
		switch {
		case !plain(r.Name):
			return fmt.Errorf("the name %q is not one of letters, digits, dots, dashes and underscores", r.Name)
		case known[r.Name]:
			return fmt.Errorf("the name %q is there twice", r.Name)
		}
		if !(r.Capacity > 0) {
			r.Capacity = 0
		}
		known[r.Name] = true
		out = append(out, r)
		return row.err
	})
	return out, err
}

// plain reports whether a name can be that of a file in the folder of the index.
func plain(name string) bool {
	other := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_", r))
	}
	return name != "" && name[0] != '.' && len(name) <= 100 && !strings.ContainsFunc(name, other)
}

// read reads the rows of a recording and the requests beside them.
func (r *Recording) read(folder, series string) error {
	if err := r.readRows(series); err != nil {
		return err
	}
	requests, err := first(folder, r.Name+requestsSuffix, r.Name+requestsSuffix+".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.readRequests(requests)
}

func (r *Recording) readRows(path string) error {
	err := readTable(path, maxRows, []string{"t_s", "running", "waiting"}, func(row *record) error {
		n := len(r.Rows)
		now := Row{
			At: row.number("t_s"), Running: row.number("running"), Waiting: row.number("waiting"),
			Usage: row.optional("kv_usage_pct") / 100, Queries: row.counter("prefix_cache_queries_total"),
			Hits: row.counter("prefix_cache_hits_total"), Preempted: row.counter("preemptions_total"),
			Finished: row.counter("requests_finished_total"),
		}
		if row.has("prompt_tokens_total") && row.has("generation_tokens_total") {
			now.Prompt, now.Generated = row.counter("prompt_tokens_total"), row.counter("generation_tokens_total")
		} else {
			// Rates over the time since the row before.
			if !row.has("prompt_tokens_per_s") || !row.has("generation_tokens_per_s") {
				return errors.New("want the columns prompt_tokens_total and generation_tokens_total, or the same with _per_s")
			}
			now.Prompt, now.Generated = row.counter("prompt_tokens_per_s"), row.counter("generation_tokens_per_s")
			var before Row
			if n > 0 {
				before = r.Rows[n-1]
			}
			now.Prompt = before.Prompt + now.Prompt*(now.At-before.At)
			now.Generated = before.Generated + now.Generated*(now.At-before.At)
		}
		switch {
		case row.err != nil:
			return row.err
		case n > 0 && now.At <= r.Rows[n-1].At:
			return fmt.Errorf("t_s %v is not after %v of the row before", now.At, r.Rows[n-1].At)
		case now.At < 0 || now.At > maxTime:
			return fmt.Errorf("t_s %v is not between 0 and a week in seconds", now.At)
		case now.Running < 0 || now.Waiting < 0 || now.Usage < 0 || now.Usage > 1:
			return errors.New("a gauge is not possible: running and waiting are 0 or more, kv_usage_pct is 0 to 100")
		}
		r.Counts = Counts{
			Usage: r.Counts.Usage || !math.IsNaN(now.Usage), Lookups: row.has("prefix_cache_queries_total"),
			Preemptions: row.has("preemptions_total"), Finished: row.has("requests_finished_total"),
		}
		r.Rows = append(r.Rows, now)
		return nil
	})
	if err == nil && len(r.Rows) < 2 {
		return fmt.Errorf("%s: want two rows or more", path)
	}
	return err
}

func (r *Recording) readRequests(path string) error {
	err := readTable(path, maxRows, []string{"prompt_tokens", "output_tokens"}, func(row *record) error {
		q := Request{
			Prompt: row.number("prompt_tokens"), Output: row.number("output_tokens"),
			Queued: math.NaN(), Scheduled: math.NaN(),
		}
		if row.has("sent_s") {
			q.Sent = row.number("sent_s")
			q.First, q.Last = q.Sent+row.number("ttft_ms")/1000, q.Sent+row.number("latency_ms")/1000
		} else {
			q.Sent, q.First, q.Last = row.number("arrival_s"), row.number("first_token_s"), row.number("last_token_s")
			q.Queued, q.Scheduled = row.number("queued_s"), row.number("scheduled_s")
			r.Counts.Phases = true
		}
		switch {
		case row.err != nil:
			return row.err
		case q.First < q.Sent || q.Last < q.First-1e-3 || math.Abs(q.Sent) > maxTime || q.Last > 2*maxTime:
			return errors.New("the times of a request are not in order: sent, first token, last token")
		case q.Scheduled < q.Queued || q.Scheduled > q.First:
			return errors.New("the times of a request are not in order: queued, scheduled, first token")
		case q.Prompt < 0 || q.Output < 1:
			return errors.New("a request has fewer than 0 prompt tokens, or no output token")
		}
		r.Requests = append(r.Requests, q)
		return nil
	})
	slices.SortStableFunc(r.Requests, func(a, b Request) int {
		switch {
		case a.First < b.First:
			return -1
		case a.First > b.First:
			return 1
		}
		return 0
	})
	return err
}

// first returns the first of these files of a folder that exists.
func first(folder string, names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %w", filepath.Join(folder, names[0]), fs.ErrNotExist)
}

// record is one row of a table.
type record struct {
	columns map[string]int
	fields  []string
	err     error
}

// readTable reads a CSV file, plain or compressed, and calls add for each row.
func readTable(path string, most int, needed []string, add func(*record) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	fail := func(line int, err error) error { return fmt.Errorf("%s, line %d: %w", path, line, err) }
	var content io.Reader = bufio.NewReader(io.LimitReader(file, maxBytes))
	if strings.HasSuffix(path, ".gz") {
		unpacked, err := gzip.NewReader(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		content = unpacked
	}
	limited := &io.LimitedReader{R: content, N: maxBytes}
	table := csv.NewReader(limited)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return fail(1, err)
	}
	row := &record{columns: map[string]int{}}
	for i, name := range header {
		row.columns[strings.TrimSpace(name)] = i
	}
	for _, name := range needed {
		if !row.has(name) {
			return fail(1, fmt.Errorf("the column %s is missing", name))
		}
	}
	for line := 2; ; line++ {
		row.fields, err = table.Read()
		switch {
		case limited.N <= 0:
			return fmt.Errorf("%s has more than %d MB", path, maxBytes>>20)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case line > most+1:
			return fmt.Errorf("%s has more than %d rows", path, most)
		}
		if err := add(row); err != nil {
			return fail(line, err)
		}
	}
}

func (r *record) has(column string) bool {
	_, has := r.columns[column]
	return has
}

// text returns a field without control characters, at most maxField bytes.
func (r *record) text(column string) string {
	i, has := r.columns[column]
	if !has {
		return ""
	}
	field := strings.ToValidUTF8(r.fields[i], "?")
	if len(field) > maxField {
		field = strings.ToValidUTF8(field[:maxField], "")
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, field))
}

// optional is NaN where the column or its field is missing.
func (r *record) optional(column string) float64 {
	if i, has := r.columns[column]; !has || r.fields[i] == "" {
		return math.NaN()
	}
	return r.number(column)
}

// counter is a number that is not below 0; 0 where the column is missing.
func (r *record) counter(column string) float64 {
	if !r.has(column) {
		return 0
	}
	v := r.number(column)
	if v < 0 && r.err == nil {
		r.err = fmt.Errorf("%s is below 0", column)
	}
	return v
}

func (r *record) number(column string) float64 {
	i, has := r.columns[column]
	if !has {
		r.fail(fmt.Errorf("the column %s is missing", column))
		return 0
	}
	v, err := strconv.ParseFloat(r.fields[i], 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > maxNumber {
		r.fail(fmt.Errorf("%s is %.40q, want a number", column, r.fields[i]))
		return 0
	}
	return v
}

func (r *record) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
