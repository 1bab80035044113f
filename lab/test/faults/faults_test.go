package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

func testWorld(t *testing.T) *World {
	t.Helper()
	w := newWorld(t.TempDir(), "../../../testdata", 5*time.Minute, 3<<20)
	t.Cleanup(func() {
		began := time.Now()
		w.Close()
		assert.Less(t, time.Since(began), 20*time.Second, "a server did not end")
	})
	return w
}

// seen is what a plain HTTP client gets from a server.
type seen struct {
	status int
	body   string
	err    error
}

const (
	// patient is far above what a server that answers needs under the race detector on a busy machine.
	patient = 30 * time.Second
	// impatient ends the wait for a server that never completes its answer.
	impatient = time.Second
)

func look(t *testing.T, endpoint string, timeout time.Duration) seen {
	t.Helper()
	client := http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	response, err := client.Get(endpoint + "/metrics")
	if err != nil {
		return seen{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return seen{response.StatusCode, string(body), err}
}

func TestTheServersDoWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	w := testWorld(t)
	broken := func(text string) func(seen) bool {
		return func(s seen) bool { return s.err != nil && strings.Contains(s.err.Error(), text) }
	}
	status := func(code int) func(seen) bool { return func(s seen) bool { return s.err == nil && s.status == code } }
	says := func(text string) func(seen) bool {
		return func(s seen) bool { return s.err == nil && s.status == 200 && strings.Contains(s.body, text) }
	}
	large := func(s seen) bool { return s.err == nil && len(s.body) == 4<<20 }
	late := broken("Timeout")
	lateNames := []string{"interim answers", "silent", "late", "drip", "drip of headers", "silent handshake"}
	want := map[string]func(seen) bool{
		"refused": broken("connection refused"), "reset": broken("reset"), "reset in the body": broken("reset"),
		"silent": late, "late": late, "drip": late, "drip of headers": late,
		"endless headers": broken("headers exceeded"), "long Content-Length": broken("unexpected EOF"), "chunk without end": broken("unexpected EOF"),
		"endless body": large, "endless line": large, "gzip bomb": large,
		"half of a gzip stream": broken("unexpected EOF"), "gzip by name only": broken("gzip"),
		"status 401": status(401), "status 403": status(403), "status 404": status(404), "status 500": status(500), "status 503": status(503),
		"redirect loop": status(302), "redirect to a file": status(302), "empty body": says(""), "HTML": says("<html>"), "JSON": says("{"),
		"switching protocols": status(101), "not HTTP": broken("malformed"), "interim answers": broken(""),
		"expired certificate": broken("certificate"), "unknown authority": broken("certificate"), "newline in a certificate": broken("certificate"),
		"plain HTTP behind https": broken("HTTP response to HTTPS"), "TLS behind http": status(400), "silent handshake": late,
		"NaN and Inf": says("NaN"), "duplicate series": says("} 2\n"), "flapping": says("vllm:prompt_tokens_total"),
		"cut body": says(" 2005000\n"), "restart each scrape": says("process_start_time_seconds"),
	}
	found := 0
	for _, section := range All() {
		for _, f := range section.Faults {
			if f.Heavy || want[f.Name] == nil {
				continue
			}
			found++
			g, err := f.Begin(w)
			require.NoError(t, err, f.Name)
			timeout := patient
			if slices.Contains(lateNames, f.Name) {
				timeout = impatient
			}
			s := look(t, g.Target["endpoint"].(string), timeout)
			assert.True(t, want[f.Name](s), "%s: status %d, %d bytes, %v", f.Name, s.status, len(s.body), s.err)
		}
	}
	assert.Len(t, want, found, "a name that no fault has")
}

// What the collector cannot see is worth no run: the bodies stay below the limit
// that the world has, and the cut body is cut within its number.
func TestTheSizesOfTheBodies(t *testing.T) {
	t.Parallel()
	w := testWorld(t)
	for _, f := range sizeFaults() {
		g, err := f.Begin(w)
		require.NoError(t, err)
		first, second := look(t, g.Target["endpoint"].(string), patient), look(t, g.Target["endpoint"].(string), patient)
		require.NoError(t, first.err, f.Name)
		if strings.Contains(f.What, "limit of a body") || strings.Contains(f.What, "fill") {
			assert.LessOrEqual(t, len(first.body), w.BodyLimit, f.Name)
			assert.Greater(t, len(first.body), w.BodyLimit/20, f.Name)
		}
		if strings.Contains(f.What, "other") {
			assert.NotEqual(t, first.body, second.body, f.Name)
		}
	}
	for _, f := range identityFaults()[:1] {
		g, err := f.Begin(w)
		require.NoError(t, err)
		for range 2 {
			look(t, g.Target["endpoint"].(string), patient)
		}
		assert.True(t, strings.HasSuffix(look(t, g.Target["endpoint"].(string), patient).body, "} 200"))
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, f := range find(regexp.MustCompile("")) {
		assert.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		assert.NotEmpty(t, f.What)
		assert.NotNil(t, f.Begin)
	}
	assert.Greater(t, len(names), 60)
}

// A run that was good fails with each of these changes.
func TestEachBarCanBeMissed(t *testing.T) {
	t.Parallel()
	const limit = 512 << 20
	good := func() *Result {
		return &Result{Fault: &Fault{Says: says("refused")}, Reads: 9, Peak: limit - 1, Stop: time.Second, Sentence: "refused", LogBytes: 100}
	}
	assert.Empty(t, good().Failures(limit))
	for name, change := range map[string]func(r *Result){
		"never read": func(r *Result) { r.Reads = 0 },
		"lost":       func(r *Result) { r.Lost = 1 },
		"skipped":    func(r *Result) { r.Skipped = 1 },
		"memory":     func(r *Result) { r.Peak = limit + 1 },
		"killed":     func(r *Result) { r.Killed = "it was" },
		"late":       func(r *Result) { r.Stop = mostStop + 1 },
		"exit":       func(r *Result) { r.Exit = errors.New("exit status 1") },
		"log":        func(r *Result) { r.LogBytes = mostLog + 1 },
		"silence":    func(r *Result) { r.Sentence = "" },
		"forged":     func(r *Result) { r.Log = "a\n" + forged },
		"panic":      func(r *Result) { r.Log = "\npanic: x" },
		"wrong":      func(r *Result) { r.Wrong = errors.New("the number is wrong") },
	} {
		r := good()
		change(r)
		assert.Len(t, r.Failures(limit), 1, name)
	}
	silent := good()
	silent.Fault.Says, silent.Sentence = nil, ""
	assert.Empty(t, silent.Failures(limit))
}

func TestLostAndSkippedScrapes(t *testing.T) {
	t.Parallel()
	s := newSink()
	for _, n := range []float64{1, 2, 4} {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", "a")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(servedMetric)
		m.SetEmptySum().DataPoints().AppendEmpty().SetDoubleValue(n)
		s.take(&fleet.Request{Metrics: md})
	}
	assert.Equal(t, 1, s.lost("a", 4), "the third")
	assert.Equal(t, 3, s.lost("a", 6), "and the last two")
	assert.Equal(t, 4, s.lost("b", 4))

	began := time.Unix(1000, 0)
	n := &neighbor{}
	for _, second := range []float64{0, 2, 4.5, 6, 12} {
		n.times = append(n.times, began.Add(time.Duration(second*float64(time.Second))))
	}
	assert.Equal(t, 2, n.skipped(2*time.Second), "at 8 and 10")
}

func TestTheSentence(t *testing.T) {
	t.Parallel()
	log := "2026-11-22T11:35:34.351Z\tinfo\tvllmreceiver/x.go:1\tStarts\t{\"target\": \"127.0.0.1:1\"}\n" +
		"2026-11-22T11:35:34.351Z\twarn\tvllmreceiver/x.go:279\tScraping failed\t{\"target\": \"127.0.0.1:2\", \"error\": \"connection refused\"}\n" +
		"\tgithub.com/stack/trace\n"
	assert.Equal(t, "warn: Scraping failed: connection refused", sentence(log, "127.0.0.1:2", says("REFUSED")))
	assert.Empty(t, sentence(log, "127.0.0.1:1", says("refused")), "of another target")
	assert.Empty(t, sentence(log, "127.0.0.1:2", says("timeout")))
	assert.Empty(t, sentence(log, "", says("stack")), "a stack trace is not a sentence")
	assert.Equal(t, "b", afterStart("a Everything is ready. Begin running and processing data.b"))
}

func TestThePage(t *testing.T) {
	t.Parallel()
	shipped, err := LoadShipped("../../../examples/kubernetes/base/agent", "daemonset.yaml")
	require.NoError(t, err)
	all := All()
	f := &all[0].Faults[0]
	page := Page(Runs{shipped, map[string]*Result{f.Name: {Fault: f, Reads: 21, Lost: 2, Peak: 100 << 20, Stop: time.Second, Sentence: "a | b"}}},
		Runs{}, "2026-11-22")
	assert.Contains(t, page, fmt.Sprintf("| %s | 100 | a \\| b |", f.Name))
	assert.Contains(t, page, "2 of 21 scrapes of the working servers did not arrive")
	assert.Contains(t, page, "Lost: 2 of 21.")
	assert.Contains(t, page, ", 2026-11-22.")
	assert.Contains(t, page, "0 of 1 runs meet all bars")
}

func TestTheHeadOfASentence(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"warn: Scraping failed: the server answered 401 Unauthorized: it wants credentials; set auth": "the server answered 401 Unauthorized",
		"warn: Scraping failed: the server redirects more than 5 times":                               "the server redirects more than 5 times",
		"warn: Scraping failed: the body is larger than limits::body_size (8 bytes) and was dropped":  "the body is larger than limits::body_size",
		"a | b": "a | b",
	} {
		assert.Equal(t, want, brief(sentence))
	}
}

func TestAPortWhereNothingListensStaysSo(t *testing.T) {
	t.Parallel()
	w := testWorld(t)
	addr, err := w.FreeAddr()
	require.NoError(t, err)
	_, err = net.DialTimeout("tcp", addr, patient)
	require.ErrorContains(t, err, "refused")
	_, err = net.Listen("tcp", addr)
	require.Error(t, err, "another server got the port")
}
