package promapi

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Settings are the settings of a Client.
type Settings struct {
	// HTTP is the client with its TLS and authentication.
	HTTP *http.Client
	// URL is the address before /api/v1.
	URL url.URL
	// Deadline is for one request with its answer, MaxAnswer for the bytes of one answer
	// after decompression. Zeros mean the defaults.
	Deadline  time.Duration
	MaxAnswer int64
	// Patience is for how long a server that is busy or away is asked again.
	Patience time.Duration
	// Sleep waits; tests replace it. It returns an error if ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
}

// The defaults of the Settings.
const (
	DefaultDeadline  = 2 * time.Minute
	DefaultMaxAnswer = 64 << 20
	DefaultPatience  = 2 * time.Minute
)

// Client asks one server. It is safe for concurrent use.
type Client struct {
	settings Settings
	http     *http.Client

	mu       sync.Mutex
	warnings map[string]bool
	read     int64
	queries  int
	retries  int
	// large counts series that were left out because of their labels.
	large int
	// answered is true once the server answered anything.
	answered bool
}

// maxWarnings is how many different warnings of the server are kept.
const maxWarnings = 20

// New returns a client.
func New(s Settings) *Client {
	if s.Deadline <= 0 {
		s.Deadline = DefaultDeadline
	}
	if s.MaxAnswer <= 0 {
		s.MaxAnswer = DefaultMaxAnswer
	}
	if s.Patience <= 0 {
		s.Patience = DefaultPatience
	}
	if s.Sleep == nil {
		s.Sleep = sleep
	}
	own := *s.HTTP
	// A redirect to another host would send the credentials there.
	own.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if request.URL.Host != via[0].URL.Host || via[0].URL.Scheme == "https" && request.URL.Scheme != "https" || len(via) > 5 {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &Client{settings: s, http: &own, warnings: map[string]bool{}}
}

// Stats are what a client has done.
type Stats struct {
	// Bytes is the size of all answers after decompression.
	Bytes            int64
	Queries, Retries int
	// Large is the number of series that were left out, because their labels are larger than 16 KiB.
	Large int
	// Warnings are those of the server, printable, in no order.
	Warnings []string
}

// Stats returns what the client has done.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{Bytes: c.read, Queries: c.queries, Retries: c.retries, Large: c.large}
	for w := range c.warnings {
		s.Warnings = append(s.Warnings, w)
	}
	return s
}

// Series returns the label sets of a selector between two times.
func (c *Client) Series(ctx context.Context, selector string, from, to time.Time) ([]labels.Labels, error) {
	asked, err := c.asked(selector)
	if err != nil {
		return nil, err
	}
	parameters := url.Values{"match[]": {selector}, "start": {unix(from)}, "end": {unix(to)}}
	var out []labels.Labels
	err = c.ask(ctx, "series", parameters, func() { out = out[:0] }, func(it *jsoniter.Iterator) error {
		builder := labels.NewScratchBuilder(16)
		for it.ReadArray() {
			readLabels(it, &builder)
			if one := builder.Labels(); asked(one) {
				out = append(out, one)
			}
		}
		return nil
	})
	return out, err
}

// Samples returns the raw samples of a selector with from <= time < to, which both are
// whole milliseconds. The samples of a series are in the order of their times, each time
// once. The answer is bounded by MaxAnswer.
func (c *Client) Samples(ctx context.Context, selector string, from, to time.Time) ([]Series, error) {
	// Prometheus 2 includes the left end of a range and Prometheus 3 does not. So the query
	// is for the last millisecond before to, and what is before from is dropped.
	asked, err := c.asked(selector)
	if err != nil {
		return nil, err
	}
	at, length := to.Add(-time.Millisecond), to.Sub(from).Milliseconds()
	parameters := url.Values{
		"query": {selector + "[" + strconv.FormatInt(length, 10) + "ms]"}, "time": {unix(at)},
		"timeout": {strconv.FormatFloat(c.settings.Deadline.Seconds(), 'f', -1, 64) + "s"},
		// Of Thanos: no downsampled values, and an error where a part is missing.
		"max_source_resolution": {"0s"}, "partial_response": {"false"},
	}
	var out []Series
	err = c.ask(ctx, "query", parameters, func() { out = nil }, func(it *jsoniter.Iterator) error {
		var err error
		out, err = readMatrix(it, from.UnixMilli(), to.UnixMilli(), asked)
		return err
	})
	return out, err
}

// largest is how large the labels of a series may be, in bytes.
const largest = 16 << 10

// asked returns a test of whether a selector asked for a series. A server that ignores it is not believed: all of its
// series for each of the targets would not fit into memory.
func (c *Client) asked(selector string) (func(labels.Labels) bool, error) {
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	if err != nil {
		return nil, newError(Final, err, "%s is not a selector", Printable(selector))
	}
	return func(l labels.Labels) bool {
		for _, m := range matchers {
			if !m.Matches(l.Get(m.Name)) {
				return false
			}
		}
		if l.ByteSize() > largest {
			c.mu.Lock()
			c.large++
			c.mu.Unlock()
			return false
		}
		return true
	}, nil
}

// unix writes a time as the API reads it.
func unix(t time.Time) string {
	ms := t.UnixMilli()
	return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64)
}

// attempts is how often a request is made at most, and firstAttempts how often while the
// server has never answered: then the address is wrong, more often than that the server
// restarts.
const (
	attempts      = 8
	firstAttempts = 3
)

// ask makes a request, again while the server is busy. begin is called before each answer
// is read, and data reads its field data.
func (c *Client) ask(ctx context.Context, path string, parameters url.Values, begin func(), data func(*jsoniter.Iterator) error) error {
	wait, waited := 500*time.Millisecond, time.Duration(0)
	for attempt := 1; ; attempt++ {
		begin()
		retryAfter, err := c.once(ctx, path, parameters, data)
		known := As(err)
		if err == nil || known == nil || known.Kind != Busy || attempt >= c.attempts() || waited >= c.settings.Patience {
			return err
		}
		// Half of the time is random, so that several readers do not come together.
		pause := wait/2 + rand.N(wait/2)
		pause = min(max(pause, retryAfter), c.settings.Patience-waited)
		if err := c.settings.Sleep(ctx, pause); err != nil {
			return newError(Final, context.Canceled, "the command was interrupted")
		}
		waited += pause
		wait = min(2*wait, 20*time.Second)
		c.mu.Lock()
		c.retries++
		c.mu.Unlock()
	}
}

func (c *Client) attempts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		return attempts
	}
	return firstAttempts
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// longestURL is how long the parameters may be in the address. Longer ones are posted,
// which some proxies do not allow.
const longestURL = 4000

func (c *Client) once(ctx context.Context, path string, parameters url.Values, data func(*jsoniter.Iterator) error) (retryAfter time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Deadline)
	defer cancel()
	address, encoded := c.settings.URL, parameters.Encode()
	address.Path = strings.TrimSuffix(address.Path, "/") + "/api/v1/" + path
	var request *http.Request
	if len(encoded) <= longestURL {
		if address.RawQuery != "" {
			encoded = address.RawQuery + "&" + encoded
		}
		address.RawQuery = encoded
		request, err = http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	} else {
		request, err = http.NewRequestWithContext(ctx, http.MethodPost, address.String(), strings.NewReader(encoded))
	}
	if err != nil {
		return 0, newError(Final, err, "the address of the server is not valid")
	}
	if request.Method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "application/json")
	if onThisMachine(address.Hostname()) {
		// Compression costs more there than it saves.
		request.Header.Set("Accept-Encoding", "identity")
	}
	c.mu.Lock()
	c.queries++
	c.mu.Unlock()
	response, err := c.http.Do(request)
	if err != nil {
		return 0, transportError(ctx, err)
	}
	defer response.Body.Close()
	c.mu.Lock()
	c.answered = true
	c.mu.Unlock()
	if s, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && s > 0 {
		retryAfter = time.Duration(min(s, 60)) * time.Second
	}
	body := &limited{from: response.Body, left: c.settings.MaxAnswer}
	err = c.answer(response, body, data)
	c.mu.Lock()
	c.read += c.settings.MaxAnswer - body.left
	c.mu.Unlock()
	switch {
	case body.exceeded:
		return 0, newError(TooMuch, nil, "the answer is larger than %s; give a larger --max-answer, or choose fewer targets with --match", humanize.IBytes(uint64(c.settings.MaxAnswer)))
	case body.failed != nil && !errors.Is(body.failed, io.EOF):
		// A connection that was cut is the cause of whatever was then found in the JSON.
		return retryAfter, transportError(ctx, body.failed)
	}
	return retryAfter, err
}

// onThisMachine reports whether a host is on the loopback.
func onThisMachine(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// limited reads at most a number of bytes and keeps why it ended.
type limited struct {
	from     io.Reader
	left     int64
	exceeded bool
	failed   error
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.exceeded = true
		return 0, io.ErrUnexpectedEOF
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if err != nil {
		l.failed = err
	}
	return n, err
}
