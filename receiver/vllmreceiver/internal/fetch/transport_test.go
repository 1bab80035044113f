package fetch

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
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
			_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
	_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
			_, err = c.Metrics(t.Context(), new(bytes.Buffer), false)
		}
		require.NoError(t, err)
		assert.True(t, asked)
	}
}

// The request for the metrics is kept. An authenticator that writes into the request that it is
// given, although net/http forbids that, finds the configured headers in each scrape and not
// what it wrote itself.
func TestAnAuthenticatorCannotChangeTheNextRequest(t *testing.T) {
	scrapes := 0
	c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
		scrapes++
		request.Header.Add("Authorization", "Bearer short-lived")
		request.Header.Del("Accept")
		assert.Equal(t, []string{"Bearer short-lived"}, request.Header.Values("Authorization"))
		assert.Equal(t, "7", request.Header.Get("X-Tenant"))
		request.Header.Del("X-Tenant")
		return reply(request, http.StatusOK, body), nil
	}, func(s *Settings) { s.Headers = configopaque.MapList{{Name: "X-Tenant", Value: "7"}} })
	for range 3 {
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
		require.NoError(t, err)
	}
	assert.Equal(t, 3, scrapes)
}

// A server that compresses its answers compresses its errors too.
func TestARejectedTokenIsRecognisedInACompressedAnswer(t *testing.T) {
	for _, text := range []string{"Authentication failed", "Authentication faile", ""} {
		c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
			return reply(request, http.StatusInternalServerError, zipped(t, text), "Content-Encoding", "gzip"), nil
		}, func(s *Settings) { s.Gzip = true })
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
		want := OutcomeServerError
		if text == rejected {
			want = OutcomeUnauthorized
		}
		assert.Equal(t, want, AsError(err).Outcome, text)
	}
}

// Every request has the deadline of the settings, and none where they have none.
func TestEveryRequestHasTheDeadline(t *testing.T) {
	for name, ask := range map[string]func(*Client) error{
		"metrics": func(c *Client) error { _, err := c.Metrics(t.Context(), new(bytes.Buffer), false); return err },
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
			answer, err := c.Metrics(t.Context(), &got, false)
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
		answer, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
		require.NoError(t, err)
		assert.Len(t, places, want, size)
		answer.Release()
	}
	c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
		return reply(request, http.StatusOK, strings.Repeat("\n", 2<<20)), nil
	}, func(s *Settings) { s.Limit, s.Places = 4<<20, NewPlaces(1) })
	for range 2 {
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
		assert.Equal(t, OutcomeEmpty, AsError(err).Outcome, "an empty body gives its place back")
	}
}

func TestTheBufferOfTheScrapeBeforeIsEmptied(t *testing.T) {
	c := scripted(t, "http://vllm:8000/metrics", func(request *http.Request) (*http.Response, error) {
		return reply(request, http.StatusOK, body), nil
	})
	got := bytes.NewBufferString("what the scrape before has left")
	_, err := c.Metrics(t.Context(), got, false)
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
			answer, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
			require.NoError(t, err)
			assert.True(t, tt.want.Equal(answer.Time), "%v", answer.Time)
		})
	}
}
