package fetch

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Outcome is the result of a scrape.
type Outcome uint8

// The outcomes of a scrape.
const (
	OutcomeOK Outcome = iota
	OutcomeRefused
	OutcomeTimeout
	OutcomeCanceled
	OutcomeDNS
	OutcomeTLS
	OutcomePlainHTTP
	OutcomeReset
	OutcomeUnauthorized
	OutcomeForbidden
	OutcomeNotFound
	OutcomeServerError
	OutcomeStatus
	OutcomeRedirect
	OutcomeTooLarge
	OutcomeNotPrometheus
	OutcomeEmpty
	OutcomeOther
	outcomeEnd
)

var outcomeNames = [outcomeEnd]string{
	"ok", "refused", "timeout", "canceled", "dns", "tls", "plain_http", "reset", "unauthorized",
	"forbidden", "not_found", "server_error", "status", "redirect", "too_large",
	"not_prometheus", "empty", "other",
}

// String returns the outcome as the value of the attribute `outcome` in self-telemetry.
func (o Outcome) String() string { return outcomeNames[o] }

// Outcomes returns every outcome.
func Outcomes() []Outcome {
	out := make([]Outcome, outcomeEnd)
	for i := range out {
		out[i] = Outcome(i)
	}
	return out
}

// Error is a failed scrape. Its message says what happened and what to do. It never
// contains a header, or the query or user information of a URL.
type Error struct {
	Outcome Outcome
	Message string
	// Detail narrows some outcomes down, as "unknown_authority" does; empty for others.
	Detail string
	cause  error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

func newError(outcome Outcome, cause error, format string, args ...any) *Error {
	return &Error{Outcome: outcome, Message: fmt.Sprintf(format, args...), cause: cause}
}

// narrowed sets the detail.
func (e *Error) narrowed(detail string) *Error {
	e.Detail = detail
	return e
}

// saying returns the same failure with more words.
func (e *Error) saying(format string, args ...any) *Error {
	return newError(e.Outcome, e.cause, format, args...).narrowed(e.Detail)
}

// rejected is the beginning of the answer to a token that the Kubernetes
// authentication in front of an endpoint picker does not accept. The status is 500,
// which would suggest to look at the log of the picker.
const rejected = "Authentication failed"

// statusError explains an answer whose status is not 200.
func statusError(response *http.Response, credentials bool) *Error {
	code := response.StatusCode
	switch {
	case code == http.StatusUnauthorized && credentials:
		return newError(OutcomeUnauthorized, nil,
			"the server answered 401 Unauthorized: it does not accept the configured credentials; "+
				"check that they are current and of the right kind; an endpoint picker for example needs a bearer token")
	case code == http.StatusUnauthorized:
		return newError(OutcomeUnauthorized, nil,
			"the server answered 401 Unauthorized: it wants credentials and none are configured; set auth or headers for this target, "+
				"for an endpoint picker auth with a bearertokenauth extension whose filename is the token of a service account")
	case code == http.StatusForbidden:
		return newError(OutcomeForbidden, nil,
			"the server answered 403 Forbidden: the credentials are valid, but lack the permission for this path; an endpoint picker needs "+
				"a ClusterRole with the rule nonResourceURLs: [/metrics], verbs: [get], and a ClusterRoleBinding from it to the service account of the token")
	case code == http.StatusInternalServerError && begins(response, rejected):
		return newError(OutcomeUnauthorized, nil,
			"the server answered 500 because it could not verify the token: the token is expired, wrong or of another cluster, "+
				"or the server cannot reach the Kubernetes API; use auth with a bearertokenauth extension and filename, which reads a renewed token again")
	case code == http.StatusNotFound:
		return newError(OutcomeNotFound, nil,
			"the server answered 404 Not Found: there are no metrics at this path; vLLM serves them at /metrics of its API port")
	case code >= 500:
		return newError(OutcomeServerError, nil, "the server answered %s: look at its log", status(response))
	case code >= 300 && code < 400:
		return newError(OutcomeRedirect, nil, "the server answered %s without a usable address", status(response))
	}
	return newError(OutcomeStatus, nil, "the server answered %s instead of 200 OK", status(response))
}

// begins reports whether the body of a failed answer begins with a known text. The
// body is remote input, so no message repeats it.
func begins(response *http.Response, known string) bool {
	from, err := decompressed(response)
	if err != nil {
		return false
	}
	start := make([]byte, len(known))
	_, err = io.ReadFull(from, start)
	return err == nil && string(start) == known
}

// status returns the code with its standard text. The server's own text is remote
// input, so it is not repeated.
func status(response *http.Response) string {
	return fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

// tlsAlert is the operation of the net.OpError with which crypto/tls reports an alert
// of the other side. The type of the alert is exported for QUIC only.
const tlsAlert = "remote error"

// transportError explains why there is no answer, or only part of one.
func transportError(ctx context.Context, err error) *Error {
	failure := explained(ctx, err)
	var operation, inner *net.OpError
	if !errors.As(err, &operation) || operation.Op != "proxyconnect" {
		return failure
	}
	proxy := "the proxy"
	if errors.As(operation.Err, &inner) && inner.Addr != nil {
		proxy += " " + inner.Addr.String()
	}
	return failure.saying("%s, not the server (proxy_url, or HTTP_PROXY in the environment): %s", proxy, failure.Message)
}

// explained is transportError without a word about the proxy.
func explained(ctx context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	// A url.Error repeats the whole URL, which may hold secrets. The request of an
	// authenticator may have failed too, so that there are two of them.
	var urlError *url.Error
	for errors.As(err, &urlError) {
		err = urlError.Err
	}
	var (
		dns         *net.DNSError
		record      tls.RecordHeaderError
		operation   *net.OpError
		flateError  flate.CorruptInputError
		netTimeout  net.Error
		certificate = certificateError(err)
		isDeadline  = errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
		isTimeout   = errors.As(err, &netTimeout) && netTimeout.Timeout()
		isPlainHTTP = err != nil && err.Error() == "http: server gave HTTP response to HTTPS client"
	)
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return newError(OutcomeCanceled, err, "the scrape was canceled because the receiver stops")
	case errors.As(err, &dns):
		return newError(OutcomeDNS, err, "the host name does not resolve: %s; check the spelling and the DNS", remote.Text(dns.Err))
	case isDeadline || isTimeout:
		return newError(OutcomeTimeout, err,
			"the server did not answer within the timeout; it may be overloaded, or raise timeout for this target")
	case errors.Is(err, syscall.ECONNREFUSED):
		return newError(OutcomeRefused, err,
			"connection refused: nothing listens at this address; the server is down, still starting, or on another port")
	case certificate != nil:
		return certificate
	case errors.As(err, &record), isPlainHTTP:
		return newError(OutcomePlainHTTP, err, "TLS: the server speaks plain HTTP; write http:// in the endpoint")
	case errors.As(err, &operation) && operation.Op == tlsAlert:
		alert, detail := operation.Err.Error(), ""
		if strings.Contains(alert, "certificate") || strings.Contains(alert, "handshake failure") {
			detail = "client_certificate"
		}
		return newError(OutcomeTLS, err, "TLS: the server refused the handshake (%s); it may want a client certificate: set tls::cert_file and tls::key_file",
			remote.Text(alert)).narrowed(detail)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return newError(OutcomeOther, err, "there is no route to this address; check the network and the network policies")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return newError(OutcomeReset, err, "the connection was closed before the whole answer had arrived; the partial body was dropped")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &flateError):
		return newError(OutcomeNotPrometheus, err, "the body is not the gzip that its Content-Encoding declares; look at the server, or at a proxy in front of it").narrowed("gzip")
	case strings.Contains(err.Error(), "response headers exceeded"):
		return newError(OutcomeTooLarge, err, "the headers of the answer are larger than any server of metrics sends; is this the right address?")
	case notHTTP(err):
		return newError(OutcomeNotPrometheus, err, "the answer is not HTTP; is this the right port?")
	}
	return newError(OutcomeOther, err, "the request failed: %s", harmless(err))
}

// certificateError explains why the certificate of a server is not accepted; nil for another
// error. The text
// of a certificate is remote input. The message does not contain the current time, so
// that it is the same for every scrape and is logged once.
func certificateError(err error) *Error {
	var (
		unknownCA x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore):
		return newError(OutcomeTLS, err, "TLS: the server's certificate, or one of its authorities, is not valid before %s; "+
			"check the clocks of this machine and of the authority", invalid.Cert.NotBefore.UTC().Format(time.RFC3339)).narrowed("not_yet_valid")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return newError(OutcomeTLS, err, "TLS: the server's certificate, or one of its authorities, expired at %s; "+
			"renew it on the server, and restart the server if it does not read the new one by itself", invalid.Cert.NotAfter.UTC().Format(time.RFC3339)).narrowed("expired")
	case errors.As(err, &invalid):
		return newError(OutcomeTLS, err, "TLS: the server's certificate cannot be used: %s; the server needs another one", remote.Text(invalid.Error()))
	case errors.As(err, &hostname):
		return newError(OutcomeTLS, err, "TLS: the server's certificate is for another host: %s; "+
			"write a name of the certificate in the endpoint, or set tls::server_name_override to it", remote.Text(hostname.Error())).narrowed("other_host")
	case errors.As(err, &unknownCA):
		return newError(OutcomeTLS, err, "TLS: the server's certificate is signed by an unknown authority; set tls::ca_file to the certificate of that authority").narrowed("unknown_authority")
	case errors.As(err, &verify):
		return newError(OutcomeTLS, err, "TLS: the server's certificate could not be verified: %s", remote.Text(err.Error()))
	}
	return nil
}

// notHTTP reports whether net/http says that the other side does not speak HTTP. Its
// errors have no type of their own. The first text is about an answer; the second one is
// about bytes that arrive before the request is sent, as the greeting of an SSH or mail
// server does. Which of them appears depends on which side is faster.
func notHTTP(err error) bool {
	return strings.Contains(err.Error(), "malformed HTTP") || strings.Contains(err.Error(), "readLoopPeekFailLocked: %!w(<nil>)")
}

// hinted adds what the endpoint suggests. A plain request to a server that speaks TLS gets a
// closed connection, an alert instead of HTTP, or 400; one to a port that is not vLLM's gets
// nothing, or an answer of another server.
func (c *Client) hinted(failure *Error) *Error {
	answer := failure.cause != nil && notHTTP(failure.cause)
	switch failure.Outcome {
	case OutcomeRefused, OutcomeTimeout, OutcomeNotFound:
		if c.settings.URL.Scheme == "http" && c.settings.URL.Port() == "" {
			return failure.saying("at port 80, because the endpoint has no port: %s; write the port in the endpoint, for vLLM 8000 by default", failure.Message)
		}
	}
	if c.settings.URL.Scheme != "http" || (failure.Outcome != OutcomeReset && failure.Outcome != OutcomeStatus && !answer) {
		return failure
	}
	return failure.saying("%s; if the server speaks TLS, write https:// in the endpoint", failure.Message)
}

// harmless returns the text of an unknown error, unless it may contain an address or
// text of the server.
func harmless(err error) string {
	text := err.Error()
	if len(text) > 200 || strings.Contains(text, "://") || strings.ContainsAny(text, "\"@") || !remote.Printable(text) {
		return "it or its answer was malformed, at the server, a proxy or the authenticator"
	}
	return text
}
