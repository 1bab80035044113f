package soak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The lines are as Go 1.26 writes them.
func TestTracesOfTheRuntimeAreRead(t *testing.T) {
	tr := newTrace()
	heap, goroutines := tr.numbers()
	assert.Equal(t, []int{-1, -1}, []int{heap, goroutines})
	for _, line := range []string{
		"  G1: status=4(select) m=nil lockedm=nil", // The end of a list that began before.
		"SCHED 1012ms: gomaxprocs=2 idleprocs=1 threads=4 spinningthreads=0",
		"  P0: status=0 schedtick=958 syscalltick=0 m=nil runqsize=0 gfreecnt=0 timerslen=1",
		"  M3: p=nil curg=nil mallocing=0 throwing=0",
		"  G1: status=4(sleep) m=nil lockedm=nil",
		"  G10: status=6() m=nil lockedm=nil",
		"  G11: status=0() m=nil lockedm=nil",
		"  G20: status=2(chan receive (nil chan)) m=3 lockedm=nil",
		"gc 3 @1.003s 0%: 0.10+0.13+0.002 ms clock, 0.21+0/0.047/0.12+0.005 ms cpu, 40->51->37 MB, 74 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)",
	} {
		tr.line(line)
	}
	heap, goroutines = tr.numbers()
	assert.Equal(t, 37, heap)
	assert.Equal(t, -1, goroutines, "the list is not complete")
	tr.line("SCHED 6012ms: gomaxprocs=2")
	_, goroutines = tr.numbers()
	assert.Equal(t, 2, goroutines)
	assert.Empty(t, tr.alarms)

	tr.restarted()
	heap, goroutines = tr.numbers()
	assert.Equal(t, []int{-1, -1}, []int{heap, goroutines})
}

// A program of which the number of goroutines is known writes its traces.
func TestTheTracesOfARealProgramAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a program")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte(`package main
import ("runtime"; "time")
var kept []byte
func main() {
	for range 300 { go func() { select {} }() }
	kept = make([]byte, 50<<20)
	runtime.GC()
	time.Sleep(1500 * time.Millisecond)
	runtime.KeepAlive(kept)
}`), 0o600))
	program := filepath.Join(dir, "program")
	require.NoError(t, exec.CommandContext(t.Context(), "go", "build", "-o", program, file).Run())
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "GODEBUG="+strings.ReplaceAll(runtimeTraces, "5000", "400"))
	output, err := cmd.CombinedOutput()
	require.NoError(t, err)
	tr := newTrace()
	for line := range strings.Lines(string(output)) {
		tr.line(strings.TrimSuffix(line, "\n"))
	}
	heap, goroutines := tr.numbers()
	// Besides there is the main goroutine, and those of the runtime.
	assert.GreaterOrEqual(t, goroutines, 301)
	assert.Less(t, goroutines, 330)
	assert.InDelta(t, 50, heap, 3)
}

func TestAlarmsAreFound(t *testing.T) {
	tr := newTrace()
	for _, line := range []string{"WARNING: DATA RACE", "panic: runtime error: index out of range", "fatal error: concurrent map writes", "goroutine 7 gp=0x1 m=0 [running]:", "all is well"} {
		tr.line(line)
	}
	assert.Len(t, tr.alarms, 4)
}

func TestLinesOfTheLogAreCounted(t *testing.T) {
	l := newLogbook()
	const place = "\tinfo\tvllmreceiver/failurelog.go:61\tScraping works again after 12 s\t"
	for _, line := range []string{
		"2026-11-25T19:17:01.123Z" + place + `{"endpoint": "http://127.1.0.1:8000"}`,
		"2026-11-25T19:17:02.123Z" + place + `{"endpoint": "http://127.1.0.2:8000"}`,
		"2026-11-25T19:17:03.123Z" + place + `{"endpoint": "http://127.1.0.2:8000"}`,
		"2026-11-25T19:17:03.123Z\terror\tx/y.go:1\tIt fails\t{\"n\": 1}",
		"a line of a stack trace",
		"2026-11-25T19:17:04.123Z\tinfo\tservice@v0.158.0/service.go:1\tEverything is ready. Begin running and processing data.",
	} {
		l.line(line)
	}
	assert.Equal(t, []repetition{{3, "info vllmreceiver/failurelog.go:# Scraping works again after # s"}}, most(l.kinds, 1))
	assert.Equal(t, 2, most(l.exact, 1)[0].Count)
	assert.Equal(t, map[string]int{"info": 4, "error": 1}, l.levels)
	assert.Equal(t, 1, l.starts())
}

func TestATailPassesWholeLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	tl, err := newTail(file)
	require.NoError(t, err)
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	var lines []string
	for _, text := range []string{"one\ntw", "o\n", "", "three"} {
		_, err := out.WriteString(text)
		require.NoError(t, err)
		tl.read(func(line string) { lines = append(lines, line) })
	}
	require.NoError(t, out.Close())
	assert.Equal(t, []string{"one", "two"}, lines)
}
