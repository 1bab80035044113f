package recording

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder writes files by name and returns where.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func open(t *testing.T, path string, options PlayerOptions) *Player {
	t.Helper()
	p, err := Open(path, options)
	require.NoError(t, err)
	return p
}

func get(p http.Handler, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return answer
}

func bodies(p http.Handler, n int) string {
	var got []string
	for range n {
		got = append(got, get(p, "/metrics").Body.String())
	}
	return strings.Join(got, " ")
}

func TestAFolderIsPlayedInTheOrderOfItsNames(t *testing.T) {
	dir := folder(t, map[string]string{
		"metrics.txt": "a", "metrics-2.txt": "b", "x.prom": "c", "notes.md": "no", "content-type": "text/plain",
	})
	assert.Equal(t, "a b c c c", bodies(open(t, dir, PlayerOptions{}), 5), "the last one stays")
	assert.Equal(t, "a b c a b", bodies(open(t, dir, PlayerOptions{Loop: true}), 5))
	assert.Equal(t, "b b", bodies(open(t, filepath.Join(dir, "metrics-2.txt"), PlayerOptions{}), 2), "one file")
}

func TestBodiesCanStayForATimeInsteadOfARequest(t *testing.T) {
	dir := folder(t, map[string]string{"1.txt": "a", "2.txt": "b"})
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	stays := open(t, dir, PlayerOptions{Every: 5 * time.Second, Clock: clock})
	loops := open(t, dir, PlayerOptions{Every: 5 * time.Second, Clock: clock, Loop: true})
	assert.Equal(t, "a a", bodies(stays, 2))
	assert.Equal(t, "a", bodies(loops, 1))
	now = now.Add(5 * time.Second)
	assert.Equal(t, "b b", bodies(stays, 2))
	now = now.Add(5 * time.Second)
	assert.Equal(t, "b", bodies(stays, 1))
	assert.Equal(t, "a", bodies(loops, 1))
}

func TestTheContentTypeIsTheOptionTheSidecarOrTheBodysOwn(t *testing.T) {
	const text, open2 = "a 1\n", "a 1\n# EOF\n"
	for _, c := range []struct {
		name    string
		files   map[string]string
		options PlayerOptions
		want    string
	}{
		{"plain text", map[string]string{"a.txt": text}, PlayerOptions{}, textMedia},
		{"OpenMetrics by its end", map[string]string{"a.txt": open2}, PlayerOptions{}, openMetricsMedia},
		{"folder's sidecar", map[string]string{"a.txt": open2, "content-type": "text/x\n"}, PlayerOptions{}, "text/x"},
		{"file's sidecar wins", map[string]string{"a.txt": text, "content-type": "text/x", "a.txt.content-type": "text/y\n"}, PlayerOptions{}, "text/y"},
		{"index wins", map[string]string{
			"a.txt": text, "a.txt.content-type": "text/y",
			"index.json": `{"scrapes":[{"file":"a.txt","status":200,"content_type":"text/z"}]}`,
		}, PlayerOptions{}, "text/z"},
		{"option wins", map[string]string{"a.txt": text, "content-type": "text/x"}, PlayerOptions{ContentType: "text/o"}, "text/o"},
	} {
		answer := get(open(t, folder(t, c.files), c.options), "/metrics")
		assert.Equal(t, c.want, answer.Header().Get("Content-Type"), c.name)
	}
}

func TestThePlayerAnswersHealthAndAVersionThatItKnows(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "a 1\n"})
	p := open(t, dir, PlayerOptions{})
	assert.Equal(t, 200, get(p, "/health").Code)
	assert.Equal(t, 404, get(p, "/version").Code)
	assert.Equal(t, 404, get(p, "/other").Code)
	assert.JSONEq(t, `{"version":"0.9.2"}`, get(open(t, dir, PlayerOptions{Version: "0.9.2"}), "/version").Body.String())
	require.NoError(t, os.Remove(filepath.Join(dir, "a.txt")))
	assert.Equal(t, 500, get(p, "/metrics").Code, "a file that went away")
}

func TestBodiesThatCannotBePlayedAreReported(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "nothing"), PlayerOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(t.TempDir(), PlayerOptions{})
	require.ErrorContains(t, err, "holds no *.txt or *.prom file")
	_, err = Open(folder(t, map[string]string{"a.txt": "", "index.json": "{"}), PlayerOptions{})
	require.ErrorContains(t, err, "index.json")
}

// backend answers /metrics by turns of a script: a status, or 0 for a
// connection that breaks.
func backend(t *testing.T, script ...int) *httptest.Server {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"version":"0.20.0"}`))
			return
		}
		turn := int(n.Add(1)) - 1
		status := script[min(turn, len(script)-1)]
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "text/plain; version=1.0.0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("turn " + r.URL.Path + "\n"))
	}))
	t.Cleanup(s.Close)
	return s
}

type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func TestARecordingPlaysBackAsItWas(t *testing.T) {
	s := backend(t, 200, 503, 0, 200)
	dir := filepath.Join(t.TempDir(), "new", "recording")
	var reported reports
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report := func(line string) {
		reported.add(line)
		if line == "the server answers again" {
			cancel() // As Ctrl-C does.
		}
	}
	n, err := Record(ctx, Options{URL: s.URL, Dir: dir, Every: 10 * time.Millisecond, For: 20 * time.Second, Report: report})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, n, 3)
	assert.Equal(t, []string{
		"scrape failed: the server answers 503 Service Unavailable", "scrape failed: EOF", "the server answers again",
	}, reported.lines)

	index, err := ReadIndex(dir)
	require.NoError(t, err)
	assert.Equal(t, s.URL+"/metrics", index.URL)
	assert.Equal(t, "0.20.0", index.VLLMVersion)
	require.GreaterOrEqual(t, len(index.Scrapes), 4)
	assert.Equal(t, "000001.txt", index.Scrapes[0].File)
	assert.Equal(t, "EOF", index.Scrapes[2].Error)
	assert.Empty(t, index.Scrapes[2].File)
	assert.False(t, index.Scrapes[1].Time.Before(index.Scrapes[0].Time))

	p := open(t, dir, PlayerOptions{})
	first, second := get(p, "/metrics"), get(p, "/metrics")
	assert.Equal(t, 200, first.Code)
	assert.Equal(t, "turn /metrics\n", first.Body.String())
	assert.Equal(t, "text/plain; version=1.0.0", first.Header().Get("Content-Type"))
	assert.Equal(t, 503, second.Code)
	assert.JSONEq(t, `{"version":"0.20.0"}`, get(p, "/version").Body.String())

	_, err = Record(t.Context(), Options{URL: s.URL, Dir: dir, Every: time.Second, For: time.Second, Report: reported.add})
	assert.ErrorContains(t, err, "already holds a recording")
}

func TestARecordingEndsAfterItsTimeAndKeepsAGivenPath(t *testing.T) {
	s := backend(t, 200)
	dir := t.TempDir()
	n, err := Record(t.Context(), Options{
		URL: s.URL + "/custom?token=secret", Dir: dir, Every: 10 * time.Millisecond, For: 100 * time.Millisecond, Report: func(string) {},
	})
	require.NoError(t, err)
	assert.Positive(t, n)
	index, err := ReadIndex(dir)
	require.NoError(t, err)
	assert.Equal(t, s.URL+"/custom", index.URL, "what may be secret is left out")
	raw, err := os.ReadFile(filepath.Join(dir, "000001.txt"))
	require.NoError(t, err)
	assert.Equal(t, "turn /custom\n", string(raw))
}

func TestRecordingNothingIsAnErrorWithItsCause(t *testing.T) {
	s := backend(t, 200)
	address := s.URL
	s.Close()
	for name, wait := range map[string]time.Duration{"at once": 0, "after a wait": 50 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var reported reports
			dir := t.TempDir()
			began := time.Now()
			_, err := Record(t.Context(), Options{
				URL: address, Dir: dir, Every: 10 * time.Millisecond, For: 10 * time.Minute, Wait: wait, Report: reported.add,
			})
			require.ErrorContains(t, err, "nothing was recorded from "+address+"/metrics")
			require.ErrorContains(t, err, "connection refused; check that the server runs")
			assert.Len(t, reported.lines, 1, "the same failure is reported once")
			assert.GreaterOrEqual(t, time.Since(began), wait)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left, "the next recording can use the folder")
		})
	}
}

func TestAServerThatStartsLaterIsWaitedFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	dir := t.TempDir()
	refused := make(chan struct{}, 1)
	go func() {
		<-refused
		again, err := net.Listen("tcp", address)
		if !assert.NoError(t, err) {
			return
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("vllm:num_requests_running 1\n"))
		}))
		_ = server.Listener.Close()
		server.Listener = again
		server.Start()
		t.Cleanup(server.Close)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	n, err := Record(ctx, Options{
		URL: "http://" + address, Dir: dir, Every: 10 * time.Millisecond, For: time.Minute, Wait: time.Minute,
		Report: func(message string) {
			switch {
			case strings.HasPrefix(message, "scrape failed"):
				refused <- struct{}{}
			case message == "the server answers again":
				cancel()
			}
		},
	})
	require.NoError(t, err)
	assert.Positive(t, n)
	index, err := ReadIndex(dir)
	require.NoError(t, err)
	assert.Contains(t, index.Scrapes[0].Error, "refused", "the start is part of the recording")
}

func TestRecordingsThatCannotWorkAreRefused(t *testing.T) {
	good := Options{URL: "http://127.0.0.1:1", Dir: "unused", Every: time.Second, For: time.Minute}
	for want, change := range map[string]func(*Options){
		"want http://host:port":  func(o *Options) { o.URL = "127.0.0.1:8000" },
		"URL \"ftp://a\"":        func(o *Options) { o.URL = "ftp://a" },
		"at least 10ms":          func(o *Options) { o.Every = time.Millisecond },
		"length above 0":         func(o *Options) { o.For = 0 },
		"more than 100000 files": func(o *Options) { o.Every, o.For = 10*time.Millisecond, time.Hour },
	} {
		o := good
		change(&o)
		_, err := Record(t.Context(), o)
		assert.ErrorContains(t, err, want)
	}
}
