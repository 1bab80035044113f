// Package fetch asks a server over HTTP for its metrics, its health and its
// version. No other package of the receiver sends HTTP requests to servers. It
// limits what a server can make the collector read.
package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Accept asks for the text format only. With anything more, prometheus_client
// from 0.23 on may answer OpenMetrics whose samples have an underscore where
// their TYPE line has a colon.
const Accept = "text/plain;version=0.0.4"

// acceptExemplars prefers OpenMetrics, the only format with exemplars.
const acceptExemplars = "application/openmetrics-text;version=1.0.0," + Accept + ";q=0.5"

// DefaultPath is where vLLM serves its metrics.
const DefaultPath = "/metrics"

// sideLimit is the most bytes that are read of an answer of /version.
const sideLimit = 64 << 10

// Client scrapes one target. It is not safe for concurrent use.
type Client struct {
	settings Settings
	http     *http.Client
	// scrape is the request for the metrics without its context; nil if it cannot be made,
	// with the reason in invalid. exemplars is the same with another Accept, once it is needed.
	scrape, exemplars *http.Request
	invalid           error
}

// Settings are the settings of a Client.
type Settings struct {
	// HTTP is the client with its TLS, authentication and proxy.
	HTTP *http.Client
	// Headers are added to every request.
	Headers configopaque.MapList
	// Credentials is true where HTTP or Headers add credentials to requests. It
	// changes only the text of an error.
	Credentials bool
	// URL is the full address of the metrics.
	URL url.URL
	// Timeout is the deadline of one fetch; 0 means no deadline.
	Timeout time.Duration
	// Limit is the largest body in bytes, after decompression.
	Limit int64
	// Gzip asks the server to compress its answers. Without it, it is asked not to:
	// prometheus_client compresses in the event loop that serves the requests of users.
	Gzip bool
	// Places are shared by all targets; nil means no limit.
	Places Places
	// Recorder records the requests; nil without one.
	Recorder *Recorder
}

// New returns a client for one target.
func New(s Settings) *Client {
	// A redirect to another host, or from https to http, would send the configured
	// headers there, and they may hold a secret.
	httpClient := *s.HTTP
	httpClient.Timeout = 0
	if s.Recorder != nil {
		s.Recorder.next, httpClient.Transport = httpClient.Transport, s.Recorder
	}
	httpClient.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if reason := remote.Redirect(request.URL, via[0].URL, len(via), "the endpoint"); reason != "" {
			return newError(OutcomeRedirect, nil, "the server %s", reason)
		}
		return nil
	}
	c := &Client{settings: s, http: &httpClient}
	c.scrape, c.invalid = c.metricsRequest(Accept)
	return c
}

func (c *Client) metricsRequest(accept string) (*http.Request, error) {
	encoding := "identity"
	if c.settings.Gzip {
		encoding = "gzip"
	}
	return c.request(c.settings.URL, accept, encoding)
}

// Answer describes a body.
type Answer struct {
	ContentType string
	// Time is when the server answered, by its own clock and in whole seconds; zero if
	// the server does not report it.
	Time time.Time
	// Open is true where the server did not declare the end of the body. Such a body
	// may be truncated without an error.
	Open bool
	// Release frees the place of a large body. Call it when the body is not needed
	// any more.
	Release func()
}

// Metrics reads the metrics into body, and asks for exemplars or for the text format only. An
// error is always an *Error.
func (c *Client) Metrics(ctx context.Context, body *bytes.Buffer, exemplars bool) (Answer, error) {
	body.Reset()
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	if c.invalid != nil {
		return Answer{}, transportError(ctx, c.invalid)
	}
	request := c.scrape
	if exemplars {
		if c.exemplars == nil {
			c.exemplars, _ = c.metricsRequest(acceptExemplars) // as valid as the other
		}
		request = c.exemplars
	}
	response, err := c.do(ctx, request)
	if err != nil {
		return Answer{}, c.hinted(transportError(ctx, err))
	}
	defer closeBody(response)
	if response.StatusCode != http.StatusOK {
		return Answer{}, c.hinted(statusError(response, c.settings.Credentials))
	}
	contentType := response.Header.Get("Content-Type")
	if media := otherMedia(contentType); media != "" {
		return Answer{}, newError(OutcomeNotPrometheus, nil,
			"the answer is %s, not Prometheus text: the endpoint is not a metrics endpoint", media)
	}
	from, err := decompressed(response)
	if err != nil {
		return Answer{}, transportError(ctx, err)
	}
	release, err := c.read(ctx, from, body)
	if err != nil {
		return Answer{}, transportError(ctx, err)
	}
	if int64(body.Len()) > c.settings.Limit {
		release()
		return Answer{}, newError(OutcomeTooLarge, nil,
			"the body is larger than limits::body_size (%d bytes) and was dropped; raise the limit if this server really is that large", c.settings.Limit)
	}
	if len(bytes.TrimSpace(body.Bytes())) == 0 {
		release()
		return Answer{}, newError(OutcomeEmpty, nil,
			"the body is empty: the server may run with --disable-log-stats, or PROMETHEUS_MULTIPROC_DIR is not writable")
	}
	return Answer{ContentType: contentType, Time: serverTime(response.Header), Open: isOpen(response), Release: release}, nil
}

// otherMedia returns the media type of an answer that has no metrics; empty for others.
func otherMedia(contentType string) string {
	if strings.HasPrefix(contentType, "text/plain") {
		return ""
	}
	if media, _, err := mime.ParseMediaType(contentType); err == nil && (media == "text/html" || media == "application/json") {
		return media
	}
	return ""
}

// decompressed returns the body of an answer without its compression. A proxy may compress
// though it was asked not to, so the header decides.
func decompressed(response *http.Response) (io.Reader, error) {
	switch encodingOf(response) {
	case "", "identity":
		return response.Body, nil
	case "gzip":
		unpacked, err := gzip.NewReader(response.Body)
		if errors.Is(err, io.EOF) {
			return http.NoBody, nil
		}
		return unpacked, err
	}
	return nil, newError(OutcomeNotPrometheus, nil,
		"the server compressed its answer by a method that was not asked for; only gzip is understood")
}

// encodingOf returns the compression of an answer in the spelling of this package.
func encodingOf(response *http.Response) string {
	encoding := strings.ToLower(response.Header.Get("Content-Encoding"))
	if encoding == "x-gzip" {
		return "gzip"
	}
	return encoding
}

// serverTime returns the time of the server's clock in an answer; zero without one.
// In the answer of a cache the Date is the time when it was stored, so it is ignored.
func serverTime(header http.Header) time.Time {
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil || at.Year() < 1970 || at.Year() > 2200 || header.Get("Age") != "" {
		return time.Time{}
	}
	return at
}

// read reads a body up to one byte beyond the limit. A large body first waits for a
// place. Its memory is then allocated at once, because growing it step by step would
// take twice as much.
func (c *Client) read(ctx context.Context, from io.Reader, body *bytes.Buffer) (release func(), err error) {
	if _, err := body.ReadFrom(io.LimitReader(from, min(smallBody, c.settings.Limit+1))); err != nil {
		return nil, err
	}
	if body.Len() < smallBody {
		return func() {}, nil
	}
	release, failure := c.settings.Places.take(ctx)
	if failure != nil {
		return nil, failure
	}
	rest := c.settings.Limit + 1 - int64(body.Len())
	body.Grow(int(rest) + bytes.MinRead)
	if _, err := body.ReadFrom(io.LimitReader(from, rest)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// isOpen reports whether only the end of the connection ends the body. A
// Content-Length, chunks, HTTP/2 and the trailer of gzip all declare the end, and
// net/http returns an error if such a body is truncated.
func isOpen(response *http.Response) bool {
	return response.ProtoMajor == 1 && response.ContentLength < 0 && !response.Uncompressed && encodingOf(response) != "gzip" &&
		!slices.Contains(response.TransferEncoding, "chunked")
}

// Health reports whether /health answers 200. It returns an error if there is no
// answer.
func (c *Client) Health(ctx context.Context) (bool, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	response, err := c.get(ctx, c.sibling("/health"), "*/*")
	if err != nil {
		return false, transportError(ctx, err)
	}
	defer closeBody(response)
	return response.StatusCode == http.StatusOK, nil
}

// Load returns how many requests /load says that the server works on. vLLM counts them with
// --enable-server-load-tracking only, and answers 0 without.
func (c *Client) Load(ctx context.Context) (float64, error) {
	var answer struct {
		Load *float64 `json:"server_load"`
	}
	if err := c.side(ctx, "/load", &answer); err != nil {
		return 0, err
	}
	if answer.Load == nil || !(*answer.Load >= 0) {
		return 0, newError(OutcomeOther, nil, "/load did not answer JSON with server_load")
	}
	return *answer.Load, nil
}

// Version returns the version that /version answers, for example "0.20.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	var answer struct {
		Version string `json:"version"`
	}
	if err := c.side(ctx, "/version", &answer); err != nil {
		return "", err
	}
	version := strings.TrimSpace(answer.Version)
	if version == "" || len(version) > 100 || !remote.Printable(version) {
		return "", newError(OutcomeOther, nil, "/version did not answer JSON with a version")
	}
	return version, nil
}

// side reads the JSON that another path of the server answers.
func (c *Client) side(ctx context.Context, path string, answer any) error {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	response, err := c.get(ctx, c.sibling(path), "application/json")
	if err != nil {
		return transportError(ctx, err)
	}
	defer closeBody(response)
	if response.StatusCode != http.StatusOK {
		return statusError(response, c.settings.Credentials)
	}
	from, err := decompressed(response)
	if err != nil {
		return transportError(ctx, err)
	}
	if err := json.NewDecoder(io.LimitReader(from, sideLimit)).Decode(answer); err != nil {
		return newError(OutcomeOther, err, "%s did not answer JSON as vLLM does", path)
	}
	return nil
}

// Close closes the connections that are kept for the next scrape. The transport of a
// middleware may not support this; then they close after idle_conn_timeout.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// deadline limits the time of one fetch, including its body, so that a server that
// sends slowly cannot delay a scrape for long.
func (c *Client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.settings.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.settings.Timeout)
}

func (c *Client) get(ctx context.Context, address url.URL, accept string) (*http.Response, error) {
	request, err := c.request(address, accept, "identity")
	if err != nil {
		return nil, err
	}
	return c.do(ctx, request)
}

// do sends a request that may be sent again later.
func (c *Client) do(ctx context.Context, request *http.Request) (*http.Response, error) {
	if _, own := c.http.Transport.(*http.Transport); own && c.http.Jar == nil {
		return c.http.Do(request.WithContext(ctx))
	}
	// The client adds cookies to the headers that it is given, and an authenticator may change
	// the request as well.
	return c.http.Do(request.Clone(ctx))
}

// request returns a request without its context.
func (c *Client) request(address url.URL, accept, encoding string) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodGet, address.String(), http.NoBody) //nolint:noctx // do adds it
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", encoding)
	request.Header.Set("User-Agent", "otelcol-vllm")
	for name, value := range c.settings.Headers.Iter {
		request.Header.Set(name, string(value))
		if strings.EqualFold(name, "Host") {
			request.Host = string(value)
		}
	}
	return request, nil
}

// sibling returns the URL of another path of the same server. It keeps the path
// prefix that a proxy may put before /metrics.
func (c *Client) sibling(path string) url.URL {
	address := c.settings.URL
	address.RawQuery = ""
	address.RawPath = ""
	if prefix, ok := strings.CutSuffix(strings.TrimSuffix(address.Path, "/"), DefaultPath); ok {
		address.Path = prefix + path
	} else {
		address.Path = path
	}
	return address
}

// closeBody does not read the rest of the body: a server that sends slowly would
// delay the scrape until its deadline.
func closeBody(response *http.Response) { _ = response.Body.Close() }

// AsError returns the outcome and the text of a failed fetch.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return newError(OutcomeOther, err, "the request failed: %s", harmless(err))
}
