package discover

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPollReadsAtOnceAndThenInEachInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		up := make(chan []*targetgroup.Group, 10)
		began := time.Now()
		var reads []time.Duration
		go poll(ctx, 10*time.Second, up, func(context.Context) ([]*targetgroup.Group, bool) {
			reads = append(reads, time.Since(began))
			return nil, len(reads) != 2
		})
		time.Sleep(25 * time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, reads)
		assert.Len(t, up, 2, "the second read reported no change")
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.Len(t, reads, 3, "ended")
	})
}

// The reader of the channel may end first.
func TestPollEndsWhileItSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			poll(ctx, time.Second, make(chan []*targetgroup.Group), func(context.Context) ([]*targetgroup.Group, bool) { return nil, true })
		}()
		synctest.Wait()
		cancel()
		<-ended
	})
}

// sources returns the sources of the groups and how many targets each has.
func sources(groups []*targetgroup.Group) map[string]int {
	out := map[string]int{}
	for _, g := range groups {
		out[filepath.Base(g.Source)] = len(g.Targets)
	}
	return out
}

func TestFilesAreReadWhenTheyChangeAndAfterTheInterval(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	write := func(text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	write(`[{"targets": ["a:1"]}, {"targets": ["b:1", "b:2"]}]`)
	// Like a file that is removed between the search and the check.
	require.NoError(t, os.Symlink(filepath.Join(dir, "absent"), filepath.Join(dir, "dangling.json")))
	logged := &logCounter{}
	d := &fileDiscoverer{
		patterns: []string{filepath.Join(dir, "*.json"), filepath.Join(dir, "a.*")}, interval: time.Hour,
		logger: slog.New(logged), files: map[string]*listedFile{},
	}
	now := time.Now()
	assert.Equal(t, map[string]int{"a.json:0": 1, "a.json:1": 2}, sources(d.look(now)))
	assert.Empty(t, d.look(now.Add(59*time.Minute)), "unchanged")
	assert.Len(t, d.look(now.Add(time.Hour)), 2, "the interval is over")
	assert.Empty(t, d.look(now.Add(time.Hour+time.Minute)))

	write(`[{"targets": ["a:1", "c:1"]}]`)
	assert.Equal(t, map[string]int{"a.json:0": 2, "a.json:1": 0}, sources(d.look(now.Add(2*time.Hour))), "an empty group ends the former one")
	assert.Zero(t, logged.n)
	write(`[`)
	assert.Empty(t, d.look(now.Add(3*time.Hour)))
	assert.Empty(t, d.look(now.Add(4*time.Hour)))
	assert.Equal(t, 1, logged.n, "the same error is logged once")
	require.NoError(t, os.Remove(name))
	assert.Equal(t, map[string]int{"a.json:0": 0}, sources(d.look(now.Add(5*time.Hour))))
	assert.Empty(t, d.look(now.Add(6*time.Hour)))
	assert.Empty(t, d.files, "removed files are forgotten")
}

// A file is read again after each change that a file system reports: another file under
// the same name, another size or another time.
func TestWhichFilesHaveChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.json")
	at := time.Date(2026, time.June, 1, 10, 0, 0, 0, time.UTC)
	write := func(path, target string, at time.Time) {
		require.NoError(t, os.WriteFile(path, []byte(`[{"targets": ["`+target+`"]}]`), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	write(name, "a:1", at)
	d := &fileDiscoverer{patterns: []string{name}, interval: time.Hour, logger: slog.New(slog.DiscardHandler), files: map[string]*listedFile{}}
	now := time.Now()
	require.Len(t, d.look(now), 1)
	require.Empty(t, d.look(now))
	write(name, "a:1", at.Add(time.Second))
	assert.Len(t, d.look(now), 1, "another time")
	write(name, "a:12", at.Add(time.Second))
	assert.Len(t, d.look(now), 1, "another size")
	next := filepath.Join(dir, "next")
	write(next, "b:12", at.Add(time.Second))
	require.NoError(t, os.Rename(next, name))
	assert.Len(t, d.look(now), 1, "another file")
	assert.Empty(t, d.look(now))
}

// logCounter counts the records of a log.
type logCounter struct{ n int }

func (*logCounter) Enabled(context.Context, slog.Level) bool    { return true }
func (l *logCounter) Handle(context.Context, slog.Record) error { l.n++; return nil }
func (l *logCounter) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l *logCounter) WithGroup(string) slog.Handler             { return l }

func TestTheFilesSendOnlyChanges(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(name, []byte("[{targets: ['a:1']}]"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		d := &fileDiscoverer{patterns: []string{name}, interval: time.Hour, logger: slog.New(slog.DiscardHandler), files: map[string]*listedFile{}}
		ctx, cancel := context.WithCancel(t.Context())
		up := make(chan []*targetgroup.Group, 100)
		go d.Run(ctx, up)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		assert.Len(t, up, 1)
		require.NoError(t, os.WriteFile(name, []byte("[{targets: ['a:1', 'b:1']}]"), 0o600))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		assert.Len(t, up, 2, "a change is seen within a second")
		cancel()
		synctest.Wait()
	})
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := readList(filepath.Join(dir, "absent.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = readList(dir)
	require.ErrorContains(t, err, "not a regular file")
	for name, text := range map[string]string{"a.JSON": `[{"targets": ["a:1"]}]`, "a.yml": "- targets: ['a:1']"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		groups, err := readList(file)
		require.NoError(t, err)
		require.Len(t, groups, 1)
		assert.EqualValues(t, file, groups[0].Labels["__meta_filepath"])
	}
}

// Each answer replaces the last one, so a group that is missing has ended.
func TestAnAnswerWithFewerGroupsEndsTheOthers(t *testing.T) {
	t.Parallel()
	answer, kind, code := `[{"targets": ["a:1"]}, {"targets": ["b:1"]}, {"targets": ["c:1"]}]`, "application/json", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		assert.Equal(t, "application/json", request.Header.Get("Accept"))
		assert.Equal(t, "otelcol-vllm", request.Header.Get("User-Agent"))
		assert.Equal(t, "60", request.Header.Get("X-Prometheus-Refresh-Interval-Seconds"))
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	d := &httpDiscoverer{url: server.URL, client: server.Client(), interval: time.Minute, logger: slog.New(slog.DiscardHandler)}
	lengths := func() []int {
		groups, changed := d.read(t.Context())
		require.True(t, changed)
		var out []int
		for i, g := range groups {
			assert.Equal(t, sourceOf(server.URL, i), g.Source)
			if len(g.Targets) > 0 {
				assert.EqualValues(t, server.URL, g.Labels["__meta_url"])
			}
			out = append(out, len(g.Targets))
		}
		return out
	}
	assert.Equal(t, []int{1, 1, 1}, lengths())
	answer = `[{"targets": ["a:1", "b:1"]}]`
	assert.Equal(t, []int{2, 0, 0}, lengths())
	assert.Equal(t, []int{2}, lengths(), "an end is sent once")
	for _, broken := range []struct {
		answer, kind string
		code         int
	}{
		{`[]`, "application/json", http.StatusNotFound},
		{`[]`, "text/html", http.StatusOK},
		{`[]`, "application/json; charset=latin1", http.StatusOK},
		{`[`, "application/json", http.StatusOK},
	} {
		answer, kind, code = broken.answer, broken.kind, broken.code
		_, changed := d.read(t.Context())
		assert.False(t, changed, "%v", broken)
	}
	answer, kind, code = `[]`, `application/json; charset="UTF-8"`, http.StatusOK
	assert.Equal(t, []int{0}, lengths(), "an empty list is a list; the broken ones have changed nothing")
}
