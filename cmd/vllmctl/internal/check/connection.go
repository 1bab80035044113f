package check

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// soon is how early the end of a certificate is reported.
const soon = 14 * 24 * time.Hour

// judgeConnection judges how the first answer came.
func judgeConnection(f *findings, s *Seen) {
	r := s.First
	if r.Outcome != "ok" {
		f.add(failureCode(s), failure(s))
	}
	exchange := &r.Metrics
	if several(exchange.Addresses) {
		f.add(CodeSeveralAddresses, fmt.Sprintf("The host name resolves to %d addresses.", len(exchange.Addresses)), exchange.Addresses...)
	}
	if s.Skips && s.Scheme == "https" {
		f.add(CodeTLSUnverified, "The certificate of the server is not verified.")
	}
	if s.Credentials && s.Scheme == "http" && !isLoopback(s.Name) {
		f.add(CodePlainCredentials, "Credentials go to this target over plain HTTP.")
	}
	if end := exchange.Certificate; !end.IsZero() && end.After(r.At) && end.Before(r.At.Add(soon)) {
		f.add(CodeTLSSoon, fmt.Sprintf("The certificate of the server expires at %s.", end.UTC().Format(time.RFC3339)))
	}
	if r.Outcome != "ok" {
		return
	}
	if r.Redirects > 0 {
		f.add(CodeRedirected, fmt.Sprintf("The server redirects to the path %q.", exchange.Path))
	}
	if took := exchange.FirstByte + exchange.Body; took > s.Timeout/2 {
		f.add(CodeSlow, fmt.Sprintf("The answer took %s, and the timeout is %s.", rounded(took), s.Timeout))
	}
	f.pass(Connection, "%s", phases(exchange))
}

// failureCode is the code of a failed scrape.
func failureCode(s *Seen) string {
	r := s.First
	if s.SpeaksTLS {
		return CodeTLSNeeded
	}
	switch r.Outcome {
	case "dns":
		return CodeDNS
	case "refused":
		return CodeRefused
	case "reset":
		return CodeReset
	case "timeout", "canceled":
		return CodeTimeout
	case "tls":
		return tlsCode(r.Cause)
	case "plain_http":
		return CodeTLSPlain
	case "unauthorized":
		switch {
		case r.Metrics.Status == http.StatusInternalServerError:
			return CodeAuthToken
		case s.Credentials:
			return CodeAuthRejected
		}
		return CodeAuthMissing
	case "forbidden":
		return CodeAuthForbidden
	case "not_found":
		return CodeNotFound
	case "server_error":
		return CodeServerError
	case "redirect":
		return CodeRedirect
	case "status":
		return CodeStatus
	case "too_large":
		if r.Metrics.Status == 0 {
			return CodeHeaders
		}
		return CodeTooLarge
	case "empty":
		return CodeEmpty
	case "not_prometheus":
		switch {
		case isHTML(&r.Metrics):
			return CodeHTML
		case r.Cause == "gzip" || !isReadable(r.Metrics.Encoding):
			return CodeGzip
		}
		return CodeNotText
	}
	return CodeRequestFailed
}

// failure says why a scrape failed.
func failure(s *Seen) string {
	r := s.First
	e := &r.Metrics
	what := sentence(r.Message)
	switch {
	case s.SpeaksTLS:
		what = "The server speaks TLS, and the request was plain HTTP."
	case r.Outcome == "timeout":
		what = fmt.Sprintf("Within the timeout of %s %s.", s.Timeout, unfinished(s))
	case r.Outcome == "forbidden" && !s.Credentials:
		what = "The server answered " + named(e.Status) + " to a request without credentials."
	}
	if address, _, _ := strings.Cut(s.Name, "/"); e.Dialed != "" && e.Dialed != address && e.Status == 0 && r.Redirects == 0 && !strings.Contains(what, "proxy "+e.Dialed) {
		what += " This is about the proxy " + e.Dialed + ", through which the request goes."
	}
	return what
}

// unfinished says which step of an exchange did not end.
func unfinished(s *Seen) string {
	e := &s.First.Metrics
	switch {
	case e.Status != 0:
		media, _, _ := strings.Cut(e.ContentType, ";")
		return fmt.Sprintf("the server started an answer of the type %q and did not finish it", media)
	case e.Connect == 0 && len(e.Addresses) == 0 && !isAddress(e.Dialed):
		return "the host name was not resolved"
	case e.Connect == 0:
		return "no connection was made"
	case e.TLS == 0 && s.Scheme == "https":
		return "the TLS handshake did not end"
	}
	return "the server accepted the connection and did not answer"
}

// isAddress reports whether host and port begin with an IP address.
func isAddress(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	return err == nil && net.ParseIP(host) != nil
}

func tlsCode(cause string) string {
	switch cause {
	case "unknown_authority":
		return CodeTLSAuthority
	case "expired":
		return CodeTLSExpired
	case "not_yet_valid":
		return CodeTLSNotYet
	case "other_host":
		return CodeTLSHost
	case "client_certificate":
		return CodeTLSClient
	}
	return CodeTLSFailed
}

// isReadable reports whether the receiver reads answers with this Content-Encoding.
func isReadable(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "", "identity", "gzip", "x-gzip":
		return true
	}
	return false
}

func isHTML(e *probe.Exchange) bool {
	begin := bytes.ToLower(bytes.TrimSpace(e.Begin))
	return strings.HasPrefix(strings.ToLower(e.ContentType), "text/html") ||
		bytes.HasPrefix(begin, []byte("<!doctype html")) || bytes.HasPrefix(begin, []byte("<html"))
}

// sentence is the first part of a message of the receiver, which says what happened. The part
// after the semicolon says what to do, which is that of the code.
func sentence(message string) string {
	what, _, _ := strings.Cut(message, "; ")
	if what == "" {
		return ""
	}
	return strings.ToUpper(what[:1]) + strings.TrimRight(what[1:], ".?") + "."
}

// several reports whether addresses are those of several servers. One server can have an
// address of each family.
func several(addresses []string) bool {
	four, six := 0, 0
	for _, a := range addresses {
		if ip := net.ParseIP(a); ip == nil {
			continue
		} else if ip.To4() != nil {
			four++
		} else {
			six++
		}
	}
	return four > 1 || six > 1
}

// isLoopback reports whether an instance is on this machine, as the receiver does.
func isLoopback(name string) bool {
	host, _, err := net.SplitHostPort(strings.SplitN(name, "/", 2)[0])
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// phases describes how long the steps of an exchange took.
func phases(e *probe.Exchange) string {
	var parts []string
	for _, step := range []struct {
		name string
		took time.Duration
	}{{"DNS", e.DNS}, {"TCP", e.Connect}, {"TLS", e.TLS}, {"first byte", e.FirstByte}, {"body", e.Body}} {
		if step.took > 0 {
			parts = append(parts, step.name+" "+rounded(step.took))
		}
	}
	return strings.Join(parts, ", ")
}

// rounded writes a duration with three digits at most.
func rounded(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
