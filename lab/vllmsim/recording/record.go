package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options are how to record.
type Options struct {
	// URL is a base URL or that of the metrics themselves; /metrics is added
	// where it has no path.
	URL string
	// Dir receives the recording. It is created; it must not hold one already.
	Dir string
	// Every is the distance between scrapes, For the length of the recording.
	Every, For time.Duration
	// Wait is how long a server that does not answer yet is waited for; with 0 the
	// first attempt must have an answer.
	Wait time.Duration
	// Report receives failures and their end, once each.
	Report func(message string)
}

const (
	maxBody    = 64 << 20
	maxScrapes = 100_000
	maxBytes   = 4 << 30
)

// Record scrapes until the time is over or ctx ends, which is not an error. It
// returns how many bodies were written, and an error when there were none or
// the folder cannot be written.
func Record(ctx context.Context, o Options) (bodies int, err error) {
	target, err := o.check()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(o.Dir, IndexName)); err == nil {
		return 0, fmt.Errorf("%s already holds a recording; choose another folder", o.Dir)
	}
	shown := *target
	shown.User, shown.RawQuery = nil, ""
	// One connection per scrape: on a kept one, http.Client would silently repeat
	// a request that broke.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	r := recorder{
		Options: o, target: target, index: Index{URL: shown.String()},
		client: &http.Client{Transport: transport, Timeout: min(max(o.Every, time.Second), 30*time.Second)},
	}
	defer r.client.CloseIdleConnections()
	return r.run(ctx)
}

func (o Options) check() (*url.URL, error) {
	target, err := url.Parse(o.URL)
	if err != nil || (target.Scheme != "http" && target.Scheme != "https") || target.Host == "" {
		return nil, fmt.Errorf("URL %q: want http://host:port or https://host:port", o.URL)
	}
	if target.Path == "" || target.Path == "/" {
		target.Path = "/metrics"
	}
	if o.Wait < 0 || o.Wait > o.For {
		return nil, fmt.Errorf("waiting for %s while recording for %s: want a wait of at least 0 and within the recording", o.Wait, o.For)
	}
	if o.Every < 10*time.Millisecond || o.For <= 0 {
		return nil, fmt.Errorf("recording for %s every %s: want a length above 0 and a distance of at least 10ms", o.For, o.Every)
	}
	if o.For/o.Every > maxScrapes {
		return nil, fmt.Errorf("recording for %s every %s would make more than %d files", o.For, o.Every, maxScrapes)
	}
	return target, nil
}

type recorder struct {
	Options
	target *url.URL
	client *http.Client
	index  Index
	failed string // The failure under way, in words.
	asked  bool   // Whether /version was asked for.
	bodies int
	bytes  int
}

func (r *recorder) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, r.For)
	defer cancel()
	ticker := time.NewTicker(r.Every)
	defer ticker.Stop()
	began := time.Now()
	for {
		if err := r.scrape(ctx); err != nil {
			return r.bodies, err
		}
		if r.bodies == 0 && time.Since(began) >= r.Wait {
			return 0, r.nothing()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
			if ctx.Err() == nil {
				continue
			}
		}
		if r.bodies == 0 {
			return 0, r.nothing()
		}
		return r.bodies, nil
	}
}

// nothing returns the error that no attempt had an answer. The folder is left as it was, so
// that the next recording can use it.
func (r *recorder) nothing() error {
	failure := r.failed
	if failure == "" {
		failure = "no attempt was made"
	}
	err := fmt.Errorf("nothing was recorded from %s: %s; check that the server runs and that the address is right, "+
		"or wait for it with -wait", r.index.URL, failure)
	if removed := os.Remove(filepath.Join(r.Dir, IndexName)); removed != nil && !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// scrape makes one attempt and adds it to the recording. Its error is one of
// writing; what goes wrong with the server becomes part of the recording.
func (r *recorder) scrape(ctx context.Context) error {
	began := time.Now()
	body, status, contentType, err := r.get(ctx, r.target)
	if err != nil && ctx.Err() != nil && !errors.Is(err, errTooLarge) {
		return nil // The recording is over; this attempt does not count.
	}
	scrape := Scrape{Time: began.UTC(), Status: status, ContentType: contentType, Seconds: time.Since(began).Seconds()}
	switch {
	case err != nil:
		scrape.Error = explain(err)
		r.report(scrape.Error)
	default:
		if r.bytes += len(body); r.bytes > maxBytes {
			return fmt.Errorf("the recording exceeds %d GiB", maxBytes>>30)
		}
		scrape.File = fmt.Sprintf("%06d.txt", len(r.index.Scrapes)+1)
		if err := os.WriteFile(filepath.Join(r.Dir, scrape.File), body, 0o644); err != nil {
			return err
		}
		r.bodies++
		if status == http.StatusOK {
			r.report("")
			r.askVersion(ctx)
		} else {
			r.report(fmt.Sprintf("the server answers %d %s", status, http.StatusText(status)))
		}
	}
	r.index.Scrapes = append(r.index.Scrapes, scrape)
	return r.index.write(r.Dir)
}

func (r *recorder) report(failure string) {
	switch {
	case failure == r.failed:
		return
	case failure == "":
		r.Report("the server answers again")
	default:
		r.Report("scrape failed: " + failure)
	}
	r.failed = failure
}

// askVersion requests the server's version, once.
func (r *recorder) askVersion(ctx context.Context) {
	if r.asked {
		return
	}
	r.asked = true
	at := *r.target
	at.Path, at.RawQuery = "/version", ""
	body, status, _, err := r.get(ctx, &at)
	var answer struct {
		Version string `json:"version"`
	}
	if err == nil && status == http.StatusOK && json.Unmarshal(body, &answer) == nil {
		r.index.VLLMVersion = answer.Version
	}
}

var errTooLarge = fmt.Errorf("the body exceeds %d MiB", maxBody>>20)

func (r *recorder) get(ctx context.Context, at *url.URL) (body []byte, status int, contentType string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, 0, "", err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, 0, "", err
	}
	defer response.Body.Close()
	contentType = response.Header.Get("Content-Type")
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLarge
	}
	return body, response.StatusCode, contentType, err
}

// explain drops the request line that http.Client puts before its errors; it
// would repeat the URL with everything in it.
func explain(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return "no answer in time"
		}
		err = wrapped.Err
	}
	return strings.TrimSpace(err.Error())
}
