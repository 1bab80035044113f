package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
)

// transport answers requests without a network, so that a test can name any host, and
// can fail as networks do.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// scripted returns a client whose requests go to a function.
func scripted(t *testing.T, address string, answer transport, change ...func(*Settings)) *Client {
	t.Helper()
	return client(t, address, append([]func(*Settings){func(s *Settings) { s.HTTP = &http.Client{Transport: answer} }}, change...)...)
}

// reply is an answer with a declared length, unless a header says otherwise.
func reply(request *http.Request, code int, text string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: h, Request: request,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}

func withKey(s *Settings) {
	s.Headers = configopaque.MapList{{Name: "Authorization", Value: "Bearer hunter2"}}
}

// The configured headers go with every request, so a redirect must not lead to a host
// or over a connection that the configuration does not name.
func TestARedirectDoesNotCarryCredentialsAway(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		followed bool
	}{
		"another path":                {"http://vllm:8000/metrics", "http://vllm:8000/metrics/", true},
		"another path over TLS":       {"https://vllm/metrics", "https://vllm/metrics/", true},
		"to TLS on the same port":     {"http://vllm:8000/metrics", "https://vllm:8000/metrics", true},
		"away from TLS, same host":    {"https://vllm/metrics", "http://vllm/metrics", false},
		"away from TLS, same port":    {"https://vllm:8000/metrics", "http://vllm:8000/metrics", false},
		"another host":                {"http://vllm:8000/metrics", "http://other:8000/metrics", false},
		"another port":                {"http://vllm:8000/metrics", "http://vllm:9000/metrics", false},
		"another host over TLS":       {"https://vllm/metrics", "https://other/metrics", false},
		"a scheme that is not HTTP":   {"https://vllm/metrics", "gopher://vllm/metrics", false},
		"a subdomain of the own host": {"https://vllm/metrics", "https://a.vllm/metrics", false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			c := scripted(t, tt.from, func(request *http.Request) (*http.Response, error) {
				assert.Equal(t, "Bearer hunter2", request.Header.Get("Authorization"))
				asked = append(asked, request.URL.String())
				if len(asked) == 1 {
					return reply(request, http.StatusFound, "", "Location", tt.to), nil
				}
				return reply(request, http.StatusOK, body), nil
			}, withKey)
			_, err := c.Metrics(t.Context(), new(bytes.Buffer))
			if tt.followed {
				require.NoError(t, err)
				assert.Equal(t, []string{tt.from, tt.to}, asked)
				return
			}
			require.Error(t, err)
			assert.Equal(t, OutcomeRedirect, AsError(err).Outcome)
			assert.Contains(t, err.Error(), "write the final address in the endpoint")
			assert.Equal(t, []string{tt.from}, asked, "no second request")
		})
	}
}

// Each step is compared with the configured address, and not only the first.
func TestARedirectAwayFromTLSInTheSecondStepIsRefused(t *testing.T) {
	steps := []string{"https://vllm/a", "http://vllm/b"}
	var asked []string
	c := scripted(t, "https://vllm/metrics", func(request *http.Request) (*http.Response, error) {
		asked = append(asked, request.URL.String())
		return reply(request, http.StatusFound, "", "Location", steps[len(asked)-1]), nil
	}, withKey)
	_, err := c.Metrics(t.Context(), new(bytes.Buffer))
	assert.Equal(t, OutcomeRedirect, AsError(err).Outcome)
	assert.Equal(t, []string{"https://vllm/metrics", "https://vllm/a"}, asked)
}

func TestFiveRedirectsAreFollowedAndNoSixth(t *testing.T) {
	for _, n := range []int{5, 6} {
		requests := 0
		c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			requests++
			if requests > n {
				return reply(request, http.StatusOK, body), nil
			}
			return reply(request, http.StatusFound, "", "Location", fmt.Sprintf("/metrics/%d", requests)), nil
		})
		_, err := c.Metrics(t.Context(), new(bytes.Buffer))
		assert.Equal(t, 6, requests, "the first request and five more")
		if n == 5 {
			require.NoError(t, err)
			continue
		}
		assert.Equal(t, OutcomeRedirect, AsError(err).Outcome)
		assert.Contains(t, err.Error(), "more than 5 times")
	}
}

func TestRequestsCarryTheConfiguredHeadersAndHost(t *testing.T) {
	for path, accept := range map[string]string{"/metrics": Accept, "/health": "*/*", "/version": "application/json"} {
		asked := false
		c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			asked = true
			assert.Equal(t, http.MethodGet, request.Method)
			assert.Equal(t, path, request.URL.Path)
			assert.Equal(t, accept, request.Header.Get("Accept"))
			assert.Equal(t, "otelcol-vllm", request.Header.Get("User-Agent"))
			assert.Equal(t, "7", request.Header.Get("X-Tenant"))
			assert.Equal(t, "llama.example", request.Host)
			return reply(request, http.StatusOK, `{"version": "1"}`), nil
		}, func(s *Settings) {
			s.Headers = configopaque.MapList{{Name: "X-Tenant", Value: "7"}, {Name: "host", Value: "llama.example"}}
		})
		var err error
		switch path {
		case "/health":
			_, err = c.Health(t.Context())
		case "/version":
			_, err = c.Version(t.Context())
		default:
			_, err = c.Metrics(t.Context(), new(bytes.Buffer))
		}
		require.NoError(t, err)
		assert.True(t, asked)
	}
}

// Every request has the deadline of the settings, and none where they have none.
func TestEveryRequestHasTheDeadline(t *testing.T) {
	for name, ask := range map[string]func(*Client) error{
		"metrics": func(c *Client) error { _, err := c.Metrics(t.Context(), new(bytes.Buffer)); return err },
		"health":  func(c *Client) error { _, err := c.Health(t.Context()); return err },
		"version": func(c *Client) error { _, err := c.Version(t.Context()); return err },
	} {
		for _, timeout := range []time.Duration{0, time.Minute} {
			var left time.Duration
			var bounded bool
			c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				var at time.Time
				at, bounded = request.Context().Deadline()
				left = time.Until(at)
				return reply(request, http.StatusOK, `{"version": "1"}`), nil
			}, func(s *Settings) { s.Timeout = timeout; s.HTTP.Timeout = time.Nanosecond })
			require.NoError(t, ask(c), "%s: the timeout of the client itself does not count", name)
			assert.Equal(t, timeout > 0, bounded, name)
			if bounded {
				assert.InDelta(t, time.Minute, left, float64(30*time.Second), name)
			}
		}
	}
}

func TestHealthAndVersionAreAskedNextToTheMetrics(t *testing.T) {
	for address, want := range map[string]string{
		"http://vllm:8000/metrics":                  "http://vllm:8000/health",
		"http://vllm:8000/metrics/":                 "http://vllm:8000/health",
		"http://vllm:8000/m1/metrics?token=hunter2": "http://vllm:8000/m1/health",
		"http://vllm:8000/a%2Fb/metrics":            "http://vllm:8000/a/b/health",
		"http://vllm:8000/prometheus":               "http://vllm:8000/health",
		"http://vllm:8000/metricsx":                 "http://vllm:8000/health",
	} {
		var got string
		c := scripted(t, address, func(request *http.Request) (*http.Response, error) {
			got = request.URL.String()
			return reply(request, http.StatusOK, ""), nil
		})
		_, err := c.Health(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, got, address)
	}
}

// Only 200 is healthy. An answer of another code is an answer, and no answer is an
// error: the caller reports both as not healthy.
func TestHealthIsTrueOnlyFor200(t *testing.T) {
	for code, want := range map[int]bool{200: true, 201: false, 204: false, 404: false, 500: false, 503: false} {
		c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			return reply(request, code, "anything"), nil
		})
		healthy, err := c.Health(t.Context())
		require.NoError(t, err, code)
		assert.Equal(t, want, healthy, code)
	}
	c := scripted(t, "http://vllm:8000/metrics", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
	healthy, err := c.Health(t.Context())
	assert.False(t, healthy)
	assert.Equal(t, OutcomeRefused, AsError(err).Outcome)
}

func TestVersionIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		code         int
		answer, want string
		outcome      Outcome
	}{
		"spaces around it":           {200, `{"version": " 0.20.0\n"}`, "0.20.0", OutcomeOK},
		"only spaces":                {200, `{"version": " "}`, "", OutcomeOther},
		"100 characters":             {200, `{"version": "` + strings.Repeat("9", 100) + `"}`, strings.Repeat("9", 100), OutcomeOK},
		"101 characters":             {200, `{"version": "` + strings.Repeat("9", 101) + `"}`, "", OutcomeOther},
		"more than 64 KiB before it": {200, `{"a": "` + strings.Repeat("a", 64<<10) + `", "version": "1"}`, "", OutcomeOther},
		"less than 64 KiB before it": {200, `{"a": "` + strings.Repeat("a", 60<<10) + `", "version": "1"}`, "1", OutcomeOK},
		"not a string":               {200, `{"version": 1}`, "", OutcomeOther},
		"404":                        {404, `{"version": "1"}`, "", OutcomeNotFound},
		"401":                        {401, ``, "", OutcomeUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				return reply(request, tt.code, tt.answer), nil
			})
			version, err := c.Version(t.Context())
			assert.Equal(t, tt.want, version)
			if tt.outcome == OutcomeOK {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, tt.outcome, AsError(err).Outcome)
		})
	}
	c := scripted(t, "http://vllm:8000/metrics", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
	_, err := c.Version(t.Context())
	assert.Equal(t, OutcomeRefused, AsError(err).Outcome)
}

// A body of the limit is read, and one byte more is refused, on both sides of the size
// from which a body waits for a place.
func TestTheLimitOfABodyIsExact(t *testing.T) {
	for _, limit := range []int{1000, 1 << 20, 3 << 20} {
		for _, more := range []int{0, 1} {
			text := strings.Repeat("x", limit+more)
			places := NewPlaces(1)
			c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				return reply(request, http.StatusOK, text), nil
			}, func(s *Settings) { s.Limit, s.Places = int64(limit), places })
			var got bytes.Buffer
			answer, err := c.Metrics(t.Context(), &got)
			if more > 0 {
				assert.Equal(t, OutcomeTooLarge, AsError(err).Outcome, limit)
				assert.Contains(t, err.Error(), fmt.Sprintf("limits::body_size (%d bytes)", limit))
				assert.Empty(t, places, "the place is free again")
				continue
			}
			require.NoError(t, err, limit)
			assert.Equal(t, text, got.String())
			if limit >= 1<<20 {
				assert.Len(t, places, 1, "held until it is released")
			}
			answer.Release()
			assert.Empty(t, places)
		}
	}
}

func TestABodyOfAMegabyteNeedsAPlace(t *testing.T) {
	assert.False(t, IsLarge(1048575))
	assert.True(t, IsLarge(1048576))
	for size, want := range map[int]int{1048575: 0, 1048576: 1} {
		places := NewPlaces(1)
		c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			return reply(request, http.StatusOK, strings.Repeat("x", size)), nil
		}, func(s *Settings) { s.Limit, s.Places = 2<<20, places })
		answer, err := c.Metrics(t.Context(), new(bytes.Buffer))
		require.NoError(t, err)
		assert.Len(t, places, want, size)
		answer.Release()
	}
	c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
		return reply(request, http.StatusOK, strings.Repeat("\n", 2<<20)), nil
	}, func(s *Settings) { s.Limit, s.Places = 4<<20, NewPlaces(1) })
	for range 2 {
		_, err := c.Metrics(t.Context(), new(bytes.Buffer))
		assert.Equal(t, OutcomeEmpty, AsError(err).Outcome, "an empty body gives its place back")
	}
}

func TestTheBufferOfTheScrapeBeforeIsEmptied(t *testing.T) {
	c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
		return reply(request, http.StatusOK, body), nil
	})
	got := bytes.NewBufferString("what the scrape before has left")
	_, err := c.Metrics(t.Context(), got)
	require.NoError(t, err)
	assert.Equal(t, body, got.String())
}

// The time of the server's clock is used to find out when its process began.
func TestTheTimeOfTheServer(t *testing.T) {
	at := time.Date(2026, time.June, 1, 10, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		header []string
		want   time.Time
	}{
		"a date":             {[]string{"Date", "Mon, 01 Jun 2026 10:00:00 GMT"}, at},
		"none":               {nil, time.Time{}},
		"not a date":         {[]string{"Date", "yesterday"}, time.Time{}},
		"of a cache":         {[]string{"Date", "Mon, 01 Jun 2026 10:00:00 GMT", "Age", "7"}, time.Time{}},
		"1970":               {[]string{"Date", "Thu, 01 Jan 1970 00:00:00 GMT"}, time.Unix(0, 0).UTC()},
		"before 1970":        {[]string{"Date", "Wed, 31 Dec 1969 23:59:59 GMT"}, time.Time{}},
		"2200":               {[]string{"Date", "Wed, 31 Dec 2200 23:59:59 GMT"}, time.Date(2200, time.December, 31, 23, 59, 59, 0, time.UTC)},
		"beyond nanoseconds": {[]string{"Date", "Thu, 01 Jan 2201 00:00:00 GMT"}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				return reply(request, http.StatusOK, body, tt.header...), nil
			})
			answer, err := c.Metrics(t.Context(), new(bytes.Buffer))
			require.NoError(t, err)
			assert.True(t, tt.want.Equal(answer.Time), "%v", answer.Time)
		})
	}
}

func TestWhichAnswersAreNotPrometheus(t *testing.T) {
	for name, tt := range map[string]struct {
		header []string
		words  string
	}{
		"HTML":                   {[]string{"Content-Type", "text/html; charset=utf-8"}, "text/html, not Prometheus text"},
		"JSON":                   {[]string{"Content-Type", "application/json"}, "application/json, not Prometheus text"},
		"a compression":          {[]string{"Content-Encoding", "zstd"}, "only gzip is understood"},
		"no type":                {nil, ""},
		"a type that is damaged": {[]string{"Content-Type", "text/html; ="}, ""},
		"another type":           {[]string{"Content-Type", "application/octet-stream"}, ""},
		"the identity encoding":  {[]string{"Content-Encoding", "identity"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				return reply(request, http.StatusOK, body, tt.header...), nil
			})
			_, err := c.Metrics(t.Context(), new(bytes.Buffer))
			if tt.words == "" {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, OutcomeNotPrometheus, AsError(err).Outcome)
			assert.Contains(t, err.Error(), tt.words)
		})
	}
}

func TestTheMessageForAStatus(t *testing.T) {
	for _, tt := range []struct {
		code        int
		credentials bool
		want        Outcome
		words       string
	}{
		{401, true, OutcomeUnauthorized, "it does not accept the configured credentials"},
		{401, false, OutcomeUnauthorized, "none are configured"},
		{403, true, OutcomeForbidden, "ClusterRoleBinding"},
		{299, false, OutcomeStatus, "instead of 200 OK"},
		{300, false, OutcomeRedirect, "300 Multiple Choices without a usable address"},
		{304, false, OutcomeRedirect, "304 Not Modified without a usable address"},
		{399, false, OutcomeRedirect, "without a usable address"},
		{400, false, OutcomeStatus, "400 Bad Request instead of 200 OK"},
		{404, false, OutcomeNotFound, "/metrics of its API port"},
		{499, false, OutcomeStatus, "instead of 200 OK"},
		{500, false, OutcomeServerError, "500 Internal Server Error: look at its log"},
		{599, false, OutcomeServerError, "look at its log"},
	} {
		c := scripted(t, "https://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			return reply(request, tt.code, "hunter2"), nil
		}, func(s *Settings) { s.Credentials = tt.credentials })
		_, err := c.Metrics(t.Context(), new(bytes.Buffer))
		require.Error(t, err, tt.code)
		assert.Equal(t, tt.want, AsError(err).Outcome, tt.code)
		assert.Contains(t, err.Error(), tt.words, tt.code)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, err.Error(), "write https://", "it is https already")
	}
}

// netError is an error of a network that reports whether it is a timeout.
type netError struct{ timeout bool }

func (netError) Error() string     { return "the network" }
func (e netError) Timeout() bool   { return e.timeout }
func (e netError) Temporary() bool { return e.timeout }

// Each error that net/http may return, with its outcome and message. The text of an unknown
// error is repeated only if it can contain neither an address nor remote input.
func TestTheMessageForAFailedRequest(t *testing.T) {
	const malformedWords = "it or its answer was malformed, at the server, a proxy or the authenticator"
	for name, tt := range map[string]struct {
		err   error
		want  Outcome
		words string
	}{
		"no such host":       {&net.DNSError{Err: "no such host", Name: "hunter2", IsNotFound: true}, OutcomeDNS, "does not resolve: no such host; check"},
		"DNS timeout":        {&net.DNSError{Err: "i/o timeout", IsTimeout: true}, OutcomeDNS, "does not resolve: i/o timeout"},
		"deadline":           {context.DeadlineExceeded, OutcomeTimeout, "did not answer within the timeout"},
		"network timeout":    {netError{true}, OutcomeTimeout, "did not answer within the timeout"},
		"another failure":    {netError{false}, OutcomeOther, "the request failed: the network"},
		"refused":            {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, OutcomeRefused, "nothing listens"},
		"no host":            {&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, OutcomeOther, "no route to this address"},
		"no network":         {&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, OutcomeOther, "no route to this address"},
		"a handshake":        {&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, OutcomeTLS, "refused the handshake (tls: certificate required)"},
		"another operation":  {&net.OpError{Op: "read", Err: errors.New("strange")}, OutcomeOther, "the request failed: read: strange"},
		"reset":              {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, OutcomeReset, "partial body was dropped"},
		"broken pipe":        {&net.OpError{Op: "write", Err: syscall.EPIPE}, OutcomeReset, "partial body was dropped"},
		"end":                {io.EOF, OutcomeReset, "partial body was dropped"},
		"unexpected end":     {io.ErrUnexpectedEOF, OutcomeReset, "partial body was dropped"},
		"no gzip":            {gzip.ErrHeader, OutcomeNotPrometheus, "not the gzip"},
		"gzip checksum":      {gzip.ErrChecksum, OutcomeNotPrometheus, "not the gzip"},
		"plain HTTP":         {errors.New("http: server gave HTTP response to HTTPS client"), OutcomeTLS, "write http:// in the endpoint"},
		"long headers":       {errors.New("net/http: server response headers exceeded 10 bytes; aborted"), OutcomeTooLarge, "the headers of the answer"},
		"not HTTP":           {errors.New(`malformed HTTP response "SSH"`), OutcomeNotPrometheus, "the answer is not HTTP"},
		"an address":         {errors.New("oauth2: cannot fetch http://user:hunter2@idp"), OutcomeOther, malformedWords},
		"a quotation":        {errors.New(`bad header "hunter2"`), OutcomeOther, malformedWords},
		"user information":   {errors.New("hunter2@idp"), OutcomeOther, malformedWords},
		"two lines":          {errors.New("a\nhunter2"), OutcomeOther, malformedWords},
		"200 characters":     {errors.New(strings.Repeat("a", 200)), OutcomeOther, "the request failed: " + strings.Repeat("a", 200)},
		"201 characters":     {errors.New(strings.Repeat("a", 201)), OutcomeOther, malformedWords},
		"two nested queries": {&url.Error{Op: "Get", URL: "http://idp?hunter2", Err: &url.Error{URL: "http://a?hunter2", Err: syscall.ECONNREFUSED}}, OutcomeRefused, "nothing listens"},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, "https://vllm:8000/metrics?key=hunter2", func(*http.Request) (*http.Response, error) { return nil, tt.err })
			_, err := c.Metrics(t.Context(), new(bytes.Buffer))
			require.Error(t, err)
			assert.Equal(t, tt.want, AsError(err).Outcome)
			assert.Contains(t, err.Error(), tt.words)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "write https://", "it is https already")
		})
	}
}

// A plain request that fails as one to a server with TLS does gets a hint; other
// failures do not.
func TestWhichFailuresHintAtTLS(t *testing.T) {
	const hint = "; if the server speaks TLS, write https:// in the endpoint"
	for name, tt := range map[string]struct {
		err  error
		code int
		want bool
	}{
		"a closed connection": {err: io.EOF, want: true},
		"not HTTP":            {err: errors.New("malformed HTTP response"), want: true},
		"400":                 {code: 400, want: true},
		"refused":             {err: syscall.ECONNREFUSED},
		"a timeout":           {err: context.DeadlineExceeded},
		"404":                 {code: 404},
		"503":                 {code: 503},
	} {
		for _, scheme := range []string{"http", "https"} {
			c := scripted(t, scheme+"://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				return reply(request, tt.code, ""), nil
			})
			_, err := c.Metrics(t.Context(), new(bytes.Buffer))
			require.Error(t, err)
			assert.Equal(t, tt.want && scheme == "http", strings.HasSuffix(err.Error(), hint), "%s over %s: %v", name, scheme, err)
		}
	}
}

func TestTheTextsOfTheOutcomes(t *testing.T) {
	want := []string{
		"ok", "refused", "timeout", "canceled", "dns", "tls", "reset", "unauthorized", "forbidden", "not_found",
		"server_error", "status", "redirect", "too_large", "not_prometheus", "empty", "other",
	}
	var got []string
	for _, o := range Outcomes() {
		got = append(got, o.String())
	}
	assert.Equal(t, want, got)
}

// An error of another package has an outcome too.
func TestAsErrorOfAnUnknownError(t *testing.T) {
	e := AsError(errors.New("strange"))
	assert.Equal(t, OutcomeOther, e.Outcome)
	assert.Equal(t, "the request failed: strange", e.Message)
	known := newError(OutcomeDNS, io.EOF, "words")
	assert.Same(t, known, AsError(fmt.Errorf("wrapped: %w", known)))
	require.ErrorIs(t, known, io.EOF)
}
