package scrape

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

// canaryRig is a rig whose server answers canaries. A test scrapes it and sends canaries one
// after the other.
type canaryRig struct {
	*rig
	canary *canary
	// server is the origin of the scrapes.
	server Origin

	lock sync.Mutex
	at   time.Time
	// body answers /metrics, after that also is called.
	body string
	also func()
	// completion answers canaries, and models the list of models.
	completion, models http.HandlerFunc
	// sent are the requests that are not for metrics.
	sent []string
}

func (r *canaryRig) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.lock.Lock()
	body, also, completion, models := r.body, r.also, r.completion, r.models
	path := request.URL.Path
	if strings.HasPrefix(path, "/v1/") {
		r.sent = append(r.sent, request.Method+" "+path)
	}
	r.lock.Unlock()
	w.Header()["Date"] = nil // That of the machine is not that of the test.
	switch {
	case path == "/metrics" && body == "":
		w.WriteHeader(http.StatusInternalServerError)
	case path == "/metrics":
		if also != nil {
			also()
		}
		_, _ = io.WriteString(w, body)
	case path == "/v1/models":
		models(w, request)
	case strings.HasPrefix(path, "/v1/"):
		completion(w, request)
	default:
		http.NotFound(w, request)
	}
}

// newCanaryRig returns a rig whose server answers each canary at once.
func newCanaryRig(t *testing.T, change ...func(*Config)) *canaryRig {
	t.Helper()
	r := &canaryRig{at: firstScrape, completion: answers}
	r.models = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data": [{"id": "m"}]}`) }
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.rig = newRig(t, append([]func(*Config){func(cfg *Config) {
		cfg.Client.Endpoint = server.URL
		settings := DefaultCanary()
		settings.Model, settings.Timeout = "m", within
		cfg.Canary = configoptional.Some(settings)
	}}, change...)...)
	r.scraper.now = func() time.Time {
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.at
	}
	r.canary = newCanary(r.scraper, r.group.Config.Canary.Get())
	r.scraper.canary, r.server = r.canary, r.scraper.origin
	return r
}

func (r *canaryRig) pass(d time.Duration) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.at = r.at.Add(d)
}

// show sets the body.
func (r *canaryRig) show(body string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.body = body
}

// scrape scrapes a server that has generated so many tokens, 15 s after the last scrape. Further
// lines may be added to the body.
func (r *canaryRig) scrape(tokens int, lines ...string) pmetric.Metrics {
	r.t.Helper()
	r.show(idle(tokens) + strings.Join(lines, ""))
	return r.again()
}

// again scrapes the server once more, 15 s after the last scrape.
func (r *canaryRig) again() pmetric.Metrics {
	r.pass(15 * time.Second)
	out, _ := scrapeOnce(r.t.Context(), r.scraper)
	return out
}

// startedAt is the line of a process that started some seconds before the first scrape.
func startedAt(before int) string {
	return fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", firstScrape.Unix()-int64(before))
}

// requests are those that were sent since the last call, and turn lets one be sent if it is due.
func (r *canaryRig) turn() (requests []string) {
	r.canary.turn()
	r.lock.Lock()
	defer r.lock.Unlock()
	requests, r.sent = r.sent, nil
	return requests
}

// ready scrapes a server without traffic until a canary is due.
func (r *canaryRig) ready(lines ...string) {
	r.scrape(0, lines...)
	r.scrape(0, lines...)
}

// answer sets what answers canaries.
func (r *canaryRig) answer(with http.HandlerFunc) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.completion, r.scraper.origin = with, r.server
}

// sending is an origin that sends canaries in its own way.
type sending struct {
	Origin
	send func() (fetch.CanaryOutcome, error)
}

func (s sending) SendCanary(context.Context, fetch.Canary) (fetch.CanaryOutcome, error) {
	return s.send()
}

// standsStill lets each canary time out, after that also is done. It takes 15 s of the test's clock
// and none of the machine's, so that a slow machine changes nothing.
func (r *canaryRig) standsStill(also ...func()) {
	r.scraper.origin = sending{r.server, func() (fetch.CanaryOutcome, error) {
		r.pass(15 * time.Second)
		r.sent = append(r.sent, "POST /v1/completions")
		for _, do := range also {
			do()
		}
		return fetch.CanaryTimeout, nil
	}}
}
