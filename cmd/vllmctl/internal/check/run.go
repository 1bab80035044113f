package check

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/load"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Job is one target to look at.
type Job struct {
	Probe *probe.Probe
	// Receiver is the name of the receiver in the configuration; empty without one.
	Receiver string
	// Config is that of the receiver, and Processor that of the processor behind it; nil
	// without one.
	Config    *vllmreceiver.Config
	Processor *vllmprocessor.Config
	// Also are the processors of other pipelines; nil for one without.
	Also []*vllmprocessor.Config
	// Host has the authenticators.
	Host component.Host
	// Lacks is the authenticator of the target where the host cannot run it; empty for most.
	Lacks string
}

// parallel is how many targets are asked at a time. A target that hangs holds its place until
// its timeouts, and each can have a body of the largest size.
const parallel = 32

// Look scrapes each target twice and lets the processor see both scrapes. The targets do not
// wait for each other, unless there are very many. One takes at most three timeouts and the
// delay between its scrapes. The result has the order of the jobs. each is called for each
// target in the goroutine that has looked at it, with its index; what it does not need any
// more it may drop.
func Look(ctx context.Context, jobs []Job, delay time.Duration, each func(i int, s *Seen)) []Seen {
	out := make([]Seen, len(jobs))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() {
			out[i] = jobs[i].look(ctx, delay, slots)
			each(i, &out[i])
		})
	}
	wg.Wait()
	return out
}

// look looks at one target. It holds a slot while it asks the target, and none while it waits.
func (j *Job) look(ctx context.Context, delay time.Duration, slots chan struct{}) Seen {
	p := j.Probe
	s := Seen{
		Name: p.Name, Scheme: p.Scheme, Receiver: j.Receiver, Credentials: p.Credentials, Skips: p.Skips,
		Authenticator: j.Lacks, Timeout: p.Timeout, ReceiverConfig: j.Config, Processor: j.Processor,
	}
	if j.Lacks != "" {
		return s
	}
	take := func() bool {
		select {
		case slots <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !take() {
		return s
	}
	free := sync.OnceFunc(func() { <-slots })
	defer free()
	if err := p.Start(ctx, j.Host); err != nil {
		s.Broken = probe.Printable(err.Error())
		return s
	}
	defer p.Close()
	s.First = p.Read(ctx)
	for tries := 0; s.First.Outcome == "reset" && s.Scheme == "https" && tries < 2; tries++ {
		// A TLS alert is lost where the request is written a moment after it. See refusal.
		s.First = p.Read(ctx)
	}
	if s.First.Outcome != "ok" {
		s.SpeaksTLS = mayBeTLS(&s) && speaksTLS(ctx, p.Name, p.Timeout)
		return s
	}
	free()
	select {
	case <-ctx.Done():
		return s
	case <-time.After(delay):
	}
	if !take() {
		return s
	}
	defer func() { <-slots }()
	s.Second = p.Read(ctx)
	for _, processor := range j.Also {
		also := s
		also.Processor, also.Also = processor, nil
		also.measure(ctx)
		s.Also = append(s.Also, also)
	}
	s.measure(ctx)
	return s
}

func (s *Seen) measure(ctx context.Context) {
	switch {
	case s.Second.Outcome != "ok":
	case s.Processor != nil:
		s.process(ctx, s.Processor)
	default:
		s.Batch = load.Of(s.Second.Emitted)
	}
}

// mayBeTLS reports whether a plain request failed as it does at a server that speaks TLS.
func mayBeTLS(s *Seen) bool {
	if s.Scheme != "http" {
		return false
	}
	return slices.Contains([]string{"reset", "status", "not_prometheus"}, s.First.Outcome) && s.First.Metrics.Status%400 == 0
}

// mostHandshake is how long the handshake with a server may take.
const mostHandshake = 2 * time.Second

// speaksTLS reports whether a server answers a TLS handshake.
func speaksTLS(ctx context.Context, name string, timeout time.Duration) bool {
	address, _, _ := strings.Cut(name, "/")
	ctx, cancel := context.WithTimeout(ctx, min(timeout, mostHandshake))
	defer cancel()
	// Nothing is sent but the handshake, so the certificate does not matter.
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as said
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return strings.Contains(err.Error(), "remote error: tls:")
	}
	_ = connection.Close()
	return true
}

// refusal is the TLS alert with which a server ends a connection after the handshake, as one
// does that wants another certificate from its client. A request of which a part is written
// after that alert fails with "broken pipe" or "connection reset" in its place, so this
// connection only reads. It is empty where no alert comes.
func refusal(ctx context.Context, address string, config *tls.Config) string {
	ctx, cancel := context.WithTimeout(ctx, mostHandshake)
	defer cancel()
	connection, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: config}).DialContext(ctx, "tcp", address)
	if err == nil {
		defer connection.Close()
		_ = connection.SetReadDeadline(time.Now().Add(mostAlert))
		_, err = connection.Read(make([]byte, 1))
	}
	if err != nil && strings.Contains(err.Error(), "remote error: tls:") {
		return probe.Printable(err.Error())
	}
	return ""
}

// mostAlert is how long an alert after the handshake is waited for.
const mostAlert = time.Second
