package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
)

// Tap stands between the collector and a program. For each scrape of the collector it scrapes the
// program itself before and after, as a Prometheus without OpenMetrics does.
type Tap struct {
	target  *url.URL
	forward *httputil.ReverseProxy
	mu      sync.Mutex
	scrapes []scrape
	version string
}

// scrape is one scrape of the collector, with those around it.
type scrape struct{ before, page, after audit.Page }

// NewTap returns a tap on the page of metrics at an address.
func NewTap(address string) (*Tap, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if target.Path == "" {
		target.Path = "/metrics"
	}
	root := *target
	root.Path = "/"
	return &Tap{target: target, forward: httputil.NewSingleHostReverseProxy(&root)}, nil
}

// Path is that of the page.
func (t *Tap) Path() string { return t.target.Path }

// Alive says why the program does not answer; nil if it does.
func (t *Tap) Alive() error {
	_, err := t.get(t.target.String(), http.Header{})
	return err
}

// patience is how long the program may take for a page.
const patience = 10 * time.Second

// gap is the time between two of the three scrapes, in which a program at work does something.
const gap = 100 * time.Millisecond

func (t *Tap) get(address string, header http.Header) (page audit.Page, err error) {
	request, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err != nil {
		return page, err
	}
	for _, name := range []string{"Accept", "Authorization"} {
		if value := header.Get(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		return page, err
	}
	defer response.Body.Close()
	page = audit.Page{ContentType: response.Header.Get("Content-Type")}
	if page.Body, err = io.ReadAll(response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", address, response.Status)
	}
	return page, err
}

func (t *Tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case t.target.Path:
	case "/version":
		answer, err := t.get(t.target.Scheme+"://"+t.target.Host+"/version", r.Header)
		var says struct{ Version string }
		if err == nil && json.Unmarshal(answer.Body, &says) == nil {
			t.mu.Lock()
			t.version = says.Version
			t.mu.Unlock()
		}
		fallthrough
	default:
		t.forward.ServeHTTP(w, r)
		return
	}
	own := r.Header.Clone()
	own.Set("Accept", "text/plain;version=0.0.4")
	var s scrape
	for _, get := range []struct {
		to     *audit.Page
		header http.Header
	}{{&s.before, own}, {&s.page, r.Header}, {&s.after, own}} {
		page, err := t.get(t.target.String(), get.header)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		*get.to = page
		time.Sleep(gap)
	}
	if r.Context().Err() != nil {
		return
	}
	t.mu.Lock()
	t.scrapes = append(t.scrapes, s)
	t.mu.Unlock()
	w.Header().Set("Content-Type", s.page.ContentType)
	_, _ = w.Write(s.page.Body)
}

// seen returns the scrapes so far, and what the program says of its version.
func (t *Tap) seen() ([]scrape, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scrapes, t.version
}

// history hands out pages to a Prometheus, with the times of the collector's scrapes. So it evaluates
// the same samples at the same times. A page is handed out twice, in case that one scrape is too slow.
type history struct {
	mu    sync.Mutex
	pages []audit.Page
	asked int
}

func (h *history) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked/2 < len(h.pages) {
		page := h.pages[h.asked/2]
		w.Header().Set("Content-Type", page.ContentType)
		_, _ = w.Write(page.Body)
	}
	h.asked++
}

// done reports whether Prometheus has asked for all pages and twice more, so that it has stored them.
func (h *history) done() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked > 2*len(h.pages)+2
}

// counted is a series that is added to each page, so that those in Prometheus can be counted.
const counted = "harness_page"

// stamped is a page whose samples have a time. Exemplars are left out.
func stamped(page audit.Page, at time.Time) audit.Page {
	open := strings.HasPrefix(page.ContentType, "application/openmetrics-text")
	stamp := fmt.Sprintf(" %d", at.UnixMilli())
	if open {
		stamp = fmt.Sprintf(" %.3f", float64(at.UnixMilli())/1e3)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# TYPE %[1]s gauge\n%[1]s 1%[2]s\n", counted, stamp)
	for line := range bytes.Lines(page.Body) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 && line[0] != '#' {
			if open {
				line, _, _ = bytes.Cut(line, []byte(" # {"))
			}
			line = append(bytes.Clone(line), stamp...)
		}
		out.Write(append(bytes.Clone(line), '\n'))
	}
	return audit.Page{Body: out.Bytes(), ContentType: page.ContentType}
}
