package soak

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// runtimeTraces make Go's runtime write what it knows to standard error: the heap after each
// collection, and every few seconds all goroutines.
const runtimeTraces = "gctrace=1,schedtrace=5000,scheddetail=1"

// trace reads what the runtime writes.
type trace struct {
	mu sync.Mutex
	// heap is the live heap after the last collection in MiB, goroutines the number of the last
	// complete list. Both are -1 before the first.
	heap, goroutines int
	counting         int
	collections      int
	// alarms are the first lines that no healthy program writes.
	alarms []string
}

func newTrace() *trace { return &trace{heap: -1, goroutines: -1, counting: -1} }

var (
	collection = regexp.MustCompile(`^gc \d+ @.*, \d+->\d+->(\d+) MB, `)
	goroutine  = regexp.MustCompile(`^ {2}G\d+: status=(\d+)`)
	alarm      = regexp.MustCompile(`DATA RACE|^panic: |^fatal error: |\[recovered\]|^goroutine \d+ .*\[running\]`)
)

// dead is the status of a goroutine that has ended and is kept to be used again, idle of one
// that was just allocated.
const idle, dead = "0", "6"

// line takes one line of standard error.
func (t *trace) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := goroutine.FindStringSubmatch(text); g != nil {
		if t.counting >= 0 && g[1] != dead && g[1] != idle {
			t.counting++
		}
		return
	}
	switch {
	case strings.HasPrefix(text, "SCHED "):
		// A list is complete when the next one begins.
		if t.counting > 0 {
			t.goroutines = t.counting
		}
		t.counting = 0
	case collection.MatchString(text):
		if heap, err := strconv.Atoi(collection.FindStringSubmatch(text)[1]); err == nil {
			t.heap = heap
			t.collections++
		}
	case alarm.MatchString(text):
		if len(t.alarms) < mostExamples {
			t.alarms = append(t.alarms, text)
		}
	}
}

// restarted forgets the numbers of the process before.
func (t *trace) restarted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heap, t.goroutines, t.counting = -1, -1, -1
}

func (t *trace) numbers() (heap, goroutines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heap, t.goroutines
}

// logbook counts the lines of the collector's log.
type logbook struct {
	mu    sync.Mutex
	ready int
	// exact counts lines without their time; kinds counts them without fields and numbers.
	exact, kinds map[string]int
	levels       map[string]int
	alarms       []string
	errors       map[string]string
}

func newLogbook() *logbook {
	return &logbook{exact: map[string]int{}, kinds: map[string]int{}, levels: map[string]int{}, errors: map[string]string{}}
}

var (
	entry  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(\w+)\t(.*)$`)
	number = regexp.MustCompile(`\d+`)
)

// mostLines is how many different lines are kept; further ones are not counted.
const mostLines = 200000

// line takes one line of the log. Lines without a time belong to the entry before, as a stack
// trace does.
func (l *logbook) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if alarm.MatchString(text) && len(l.alarms) < mostExamples {
		l.alarms = append(l.alarms, text)
	}
	found := entry.FindStringSubmatch(text)
	if found == nil {
		return
	}
	level, rest := found[1], found[2]
	if strings.Contains(rest, "Everything is ready. Begin running and processing data.") {
		l.ready++
	}
	l.levels[level]++
	kind := kindOf(level, rest)
	if len(l.exact) < mostLines || l.exact[rest] > 0 {
		l.exact[rest]++
	}
	l.kinds[kind]++
	if level != "debug" && level != "info" && l.errors[kind] == "" {
		l.errors[kind] = text
	}
}

// kindOf is a line without its fields, and without the numbers in its sentence and its place.
func kindOf(level, rest string) string {
	if at := strings.LastIndex(rest, "\t{"); at >= 0 {
		rest = rest[:at]
	}
	return level + " " + strings.ReplaceAll(number.ReplaceAllString(rest, "#"), "\t", " ")
}

func (l *logbook) starts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// repetition is a line and how often it was written.
type repetition struct {
	Count int    `json:"count"`
	Line  string `json:"line"`
}

// most returns the lines that were written most often, the most frequent first.
func most(counts map[string]int, n int) []repetition {
	lines := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var out []repetition
	for _, line := range lines[:min(n, len(lines))] {
		out = append(out, repetition{counts[line], line})
	}
	return out
}

// tail reads a file that grows, by whole lines.
type tail struct {
	file *os.File
	in   *bufio.Reader
	rest string
}

func newTail(name string) (*tail, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the soak cannot read the collector's output: %w", err)
	}
	return &tail{file: file, in: bufio.NewReaderSize(file, 1<<20)}, nil
}

// read passes all complete lines that were written since the last call.
func (t *tail) read(take func(string)) {
	for {
		text, err := t.in.ReadString('\n')
		if err != nil {
			t.rest += text
			return
		}
		take(strings.TrimSuffix(t.rest+text, "\n"))
		t.rest = ""
	}
}
