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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
		_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
		"no such host":      {&net.DNSError{Err: "no such host", Name: "hunter2", IsNotFound: true}, OutcomeDNS, "does not resolve: no such host; check"},
		"DNS timeout":       {&net.DNSError{Err: "i/o timeout", IsTimeout: true}, OutcomeDNS, "does not resolve: i/o timeout"},
		"deadline":          {context.DeadlineExceeded, OutcomeTimeout, "did not answer within the timeout"},
		"network timeout":   {netError{true}, OutcomeTimeout, "did not answer within the timeout"},
		"another failure":   {netError{false}, OutcomeOther, "the request failed: the network"},
		"refused":           {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, OutcomeRefused, "nothing listens"},
		"no host":           {&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, OutcomeOther, "no route to this address"},
		"no network":        {&net.OpError{Op: "dial", Err: syscall.ENETUNREACH}, OutcomeOther, "no route to this address"},
		"a handshake":       {&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, OutcomeTLS, "refused the handshake (tls: certificate required)"},
		"another operation": {&net.OpError{Op: "read", Err: errors.New("strange")}, OutcomeOther, "the request failed: read: strange"},
		"reset":             {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, OutcomeReset, "partial body was dropped"},
		"broken pipe":       {&net.OpError{Op: "write", Err: syscall.EPIPE}, OutcomeReset, "partial body was dropped"},
		"end":               {io.EOF, OutcomeReset, "partial body was dropped"},
		"unexpected end":    {io.ErrUnexpectedEOF, OutcomeReset, "partial body was dropped"},
		"no gzip":           {gzip.ErrHeader, OutcomeNotPrometheus, "not the gzip"},
		"gzip checksum":     {gzip.ErrChecksum, OutcomeNotPrometheus, "not the gzip"},
		"a proxy": {
			&net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 3128}, Err: syscall.ECONNREFUSED}},
			OutcomeRefused, "the proxy 10.0.0.7:3128, not the server (proxy_url, or HTTP_PROXY in the environment): connection refused",
		},
		"plain HTTP":         {errors.New("http: server gave HTTP response to HTTPS client"), OutcomePlainHTTP, "write http:// in the endpoint"},
		"long headers":       {errors.New("net/http: server response headers exceeded 10 bytes; aborted"), OutcomeTooLarge, "the headers of the answer"},
		"not HTTP":           {errors.New(`malformed HTTP response "SSH"`), OutcomeNotPrometheus, "the answer is not HTTP"},
		"a greeting":         {errors.New("readLoopPeekFailLocked: %!w(<nil>)"), OutcomeNotPrometheus, "the answer is not HTTP"},
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
			_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
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
		"a greeting":          {err: errors.New("readLoopPeekFailLocked: %!w(<nil>)"), want: true},
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
			_, err := c.Metrics(t.Context(), new(bytes.Buffer), false)
			require.Error(t, err)
			assert.Equal(t, tt.want && scheme == "http", strings.HasSuffix(err.Error(), hint), "%s over %s: %v", name, scheme, err)
		}
	}
}

// The endpoint of a user who left out the port is another server, or none.
func TestAFailureAtAnEndpointWithoutAPortNamesThePortOfVLLM(t *testing.T) {
	refused := func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }
	missing := func(request *http.Request) (*http.Response, error) {
		return reply(request, http.StatusNotFound, body), nil
	}
	for _, c := range []struct {
		address string
		answer  func(*http.Request) (*http.Response, error)
		hints   bool
	}{
		{"http://vllm/metrics", refused, true},
		{"http://vllm/metrics", missing, true},
		{"http://vllm:80/metrics", refused, false},
		{"https://vllm/metrics", missing, false},
	} {
		_, err := scripted(t, c.address, c.answer).Metrics(t.Context(), new(bytes.Buffer), false)
		require.Error(t, err)
		assert.Equal(t, c.hints, strings.Contains(err.Error(), "8000"), "%s: %v", c.address, err)
	}
}

func TestTheTextsOfTheOutcomes(t *testing.T) {
	want := []string{
		"ok", "refused", "timeout", "canceled", "dns", "tls", "plain_http", "reset", "unauthorized", "forbidden", "not_found",
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
