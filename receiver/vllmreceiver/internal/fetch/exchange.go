package fetch

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// Exchange is one request and its answer.
type Exchange struct {
	// Path is that of the request, and Status that of the answer; 0 without one.
	Path   string
	Status int
	// ContentType and Encoding are headers of the answer, as the server wrote them.
	ContentType, Encoding string
	// DNS, Connect and TLS are the durations of these steps; 0 where there was none, as on a
	// connection that is used again. FirstByte is the time from the end of the request to the
	// first byte of the answer, and Body the time until the last byte was read.
	DNS, Connect, TLS, FirstByte, Body time.Duration
	// Dialed is host and port of the connection: those of the proxy where there is one. Empty
	// where no request was sent.
	Dialed string
	// Addresses are what the host name resolves to.
	Addresses []string
	// Certificate is when the server's certificate ends; zero without TLS.
	Certificate time.Time
	// Begin has the first bytes of the body as the server sent them: at most 64.
	Begin []byte
	// ServerTime is the Date of the answer, and Arrived when it arrived by our clock.
	ServerTime, Arrived time.Time
}

// maxBegin is how much of a body an Exchange keeps.
const maxBegin = 64

// maxExchanges is how many exchanges of one read are kept. There are three requests, each
// with a few redirects.
const maxExchanges = 24

// Recorder is a transport that records what it transports, for one Client.
type Recorder struct {
	next http.RoundTripper

	mu  sync.Mutex
	all []*Exchange
}

// CloseIdleConnections is what http.Client calls.
func (r *Recorder) CloseIdleConnections() {
	if c, ok := r.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Take returns the exchanges since the last call.
func (r *Recorder) Take() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Exchange, len(r.all))
	for i, e := range r.all {
		out[i] = *e
	}
	r.all = nil
	return out
}

// change changes an exchange. The trace of a connection may be reported when the request has
// ended already.
func (r *Recorder) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// RoundTrip records a request and its answer.
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	e := &Exchange{Path: request.URL.Path}
	r.change(func() {
		if len(r.all) < maxExchanges {
			r.all = append(r.all, e)
		}
	})
	response, err := r.next.RoundTrip(request.WithContext(httptrace.WithClientTrace(request.Context(), r.trace(e))))
	if err != nil {
		return response, err
	}
	arrived := time.Now()
	r.change(func() {
		e.Status, e.Arrived = response.StatusCode, arrived
		e.ContentType, e.Encoding = response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding")
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil && response.Header.Get("Age") == "" {
			e.ServerTime = at
		}
		if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
			e.Certificate = response.TLS.PeerCertificates[0].NotAfter
		}
	})
	response.Body = &recordedBody{ReadCloser: response.Body, recorder: r, exchange: e, began: arrived}
	return response, nil
}

// trace returns the hooks that measure the steps of an exchange.
func (r *Recorder) trace(e *Exchange) *httptrace.ClientTrace {
	var dns, connect, handshake, sent time.Time
	// ended sets the duration of a step that has begun and has not failed.
	ended := func(took *time.Duration, began *time.Time, err error) {
		r.change(func() {
			if err == nil && !began.IsZero() {
				*took = time.Since(*began)
			}
		})
	}
	return &httptrace.ClientTrace{
		GetConn:  func(address string) { r.change(func() { e.Dialed = address }) },
		DNSStart: func(httptrace.DNSStartInfo) { r.change(func() { dns = time.Now() }) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			ended(&e.DNS, &dns, nil)
			r.change(func() {
				for i := range info.Addrs[:min(len(info.Addrs), maxExchanges)] {
					e.Addresses = append(e.Addresses, info.Addrs[i].IP.String())
				}
			})
		},
		ConnectStart: func(string, string) {
			r.change(func() {
				if connect.IsZero() {
					connect = time.Now()
				}
			})
		},
		ConnectDone:          func(_, _ string, err error) { ended(&e.Connect, &connect, err) },
		TLSHandshakeStart:    func() { r.change(func() { handshake = time.Now() }) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { ended(&e.TLS, &handshake, err) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { r.change(func() { sent = time.Now() }) },
		GotFirstResponseByte: func() { ended(&e.FirstByte, &sent, nil) },
	}
}

// recordedBody records how a body begins and how long it takes.
type recordedBody struct {
	io.ReadCloser
	recorder *Recorder
	exchange *Exchange
	began    time.Time
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.recorder.change(func() {
		e := b.exchange
		e.Body = time.Since(b.began)
		e.Begin = append(e.Begin, p[:min(n, maxBegin-len(e.Begin))]...)
	})
	return n, err
}
