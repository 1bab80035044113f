package promapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
)

// Kind is what a caller can do about an error.
type Kind uint8

// The kinds of errors.
const (
	// Final errors stay: wrong credentials, a wrong address, an invalid query.
	Final Kind = iota
	// TooMuch means that the server or this program refuses the size of the answer: a
	// shorter period may be answered.
	TooMuch
	// Busy errors may pass: the server is overloaded, restarts or was not reached.
	Busy
)

// Error is a failed request.
type Error struct {
	Kind Kind
	// Message is a sentence without its period, printable whatever the server sent.
	Message string
	cause   error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// As returns err as an *Error; nil if it is none.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

func newError(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), cause: cause}
}

// maxRemoteText is how many bytes of a server's text an error repeats.
const maxRemoteText = 300

// statusError returns the error of an answer that is not a success. text is what the
// server says about it.
func statusError(status int, errorType, text string) *Error {
	says := ""
	if text = Printable(text); text != "" {
		says = ": " + text
	}
	lower := strings.ToLower(text)
	large := strings.Contains(lower, "too many samples") || strings.Contains(lower, "too large") ||
		strings.Contains(lower, "exceed") || strings.Contains(lower, "limit") || strings.Contains(lower, "too many")
	switch {
	case status == http.StatusUnauthorized:
		return newError(Final, nil, "the server wants credentials (401)%s; use --token-file or --header", says)
	case status == http.StatusForbidden:
		return newError(Final, nil, "the server rejects these credentials (403)%s; they need permission to query", says)
	case status == http.StatusNotFound:
		return newError(Final, nil, "there is no query API at this address (404)%s; give the address before /api/v1, for example https://mimir/prometheus", says)
	case status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity && (large || errorType == "execution" || errorType == "timeout"):
		return newError(TooMuch, nil, "the server limits the samples in one answer (%d)%s", status, says)
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && large:
		// Both may mean a limit of the query as well as of the load.
		return newError(Busy, nil, "the server has reached a limit (%d)%s", status, says)
	case status == http.StatusGatewayTimeout, status == http.StatusServiceUnavailable && errorType == "timeout":
		return newError(TooMuch, nil, "the server did not finish the query in time (%d)%s", status, says)
	case status >= http.StatusInternalServerError:
		return newError(Busy, nil, "the server fails (%d)%s", status, says)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		return newError(Final, nil, "the server redirects to another host (%d), which would get the credentials; write the final address", status)
	}
	if large && errorType != "bad_data" {
		return newError(TooMuch, nil, "the server limits the samples in one answer (%d)%s", status, says)
	}
	return newError(Final, nil, "the server rejects the query (%d)%s", status, says)
}

// transportError returns the error of a request that got no answer.
func transportError(ctx context.Context, err error) *Error {
	if known := As(err); known != nil {
		return known
	}
	var dns *net.DNSError
	var urlError *url.Error
	text := err
	if errors.As(err, &urlError) {
		// The address may contain a secret.
		text = urlError.Err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return newError(Final, context.Canceled, "the command was interrupted")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return newError(Final, context.Canceled, "the command was interrupted")
		}
		return newError(TooMuch, err, "the server did not answer within the deadline")
	case errors.As(err, &dns):
		return newError(Final, err, "the name %s cannot be resolved", Printable(dns.Name))
	case strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:"):
		return newError(Final, err, "TLS fails: %s; see --ca-file", Printable(text.Error()))
	}
	return newError(Busy, err, "the server cannot be reached: %s", Printable(text.Error()))
}

// Printable returns text of a server as one printable line of a bounded length.
func Printable(text string) string { return plain.Text(strings.TrimSpace(text), maxRemoteText) }
