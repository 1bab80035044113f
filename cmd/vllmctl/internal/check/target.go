package check

import (
	"cmp"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/load"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Seen is what was learned of one target. It is plain data.
type Seen struct {
	Name, Scheme, Receiver string
	// Credentials is true where requests carry some, and Skips where the certificate of the
	// server is not verified.
	Credentials, Skips bool
	// Timeout is the deadline of one request.
	Timeout time.Duration
	// Broken is why the target could not be asked at all, as a certificate that cannot be
	// read; empty for most.
	Broken string
	// Authenticator is the one that this program cannot run, so that the target was not asked;
	// empty for most.
	Authenticator string
	// First and Second are the two scrapes. Second is nil after a first one that failed.
	First, Second *probe.Reading
	// SpeaksTLS is true where a plain request failed and the server answers a TLS handshake.
	SpeaksTLS bool
	// Processed are the names of the metrics that the processor emitted for both scrapes, with
	// the number of their series.
	Processed map[string]int
	// Batch is a scrape as it is sent, with what the processor adds, and Pools what it sends for
	// pools, by their attributes.
	Batch load.Load
	Pools map[string]load.Load
	// Quantiles are the buckets of the percentiles of the second scrape.
	Quantiles []Quantile
	// ReceiverConfig and Processor are the configurations; Processor is nil without one in
	// the pipeline.
	ReceiverConfig *vllmreceiver.Config
	Processor      *vllmprocessor.Config
	// Also has Batch and Pools behind the processors of other pipelines.
	Also []Seen
}

// Judge returns what can be said about a target. It is a pure function.
func Judge(s *Seen) Target {
	f := &findings{}
	t := Target{Name: printable(s.Name), Receiver: s.Receiver, Kind: "unknown", Outcome: "failed"}
	switch {
	case s.Broken != "":
		f.add(CodeRequestFailed, "The target cannot be checked: "+s.Broken+".")
	case s.Authenticator != "":
		t.Outcome = "not_asked"
		f.add(CodeAuthUnchecked, fmt.Sprintf("The target was not checked: its authenticator %s does not run here.", s.Authenticator))
	case s.First == nil:
		f.add(CodeRequestFailed, "The target was not checked, because the check was interrupted.")
	default:
		t.Outcome = s.First.Outcome
		judgeConnection(f, s)
		if s.First.Outcome == "ok" {
			judgeBody(f, s)
			judgeServer(f, s, &t)
			judgeMetrics(f, s, &t)
			judgeObjectives(f, s)
			t.names = namesOf(s.newest().Emitted)
		}
	}
	t.Findings, t.Passes = f.sorted(), f.passed
	return t
}

// drop drops the points of both scrapes, which are the most of what was seen.
func (s *Seen) drop() {
	for _, r := range []*probe.Reading{s.First, s.Second} {
		if r != nil {
			r.Emitted = pmetric.NewMetrics()
		}
	}
}

// newest is the second reading if it succeeded and comes from the same process, else the first.
func (s *Seen) newest() *probe.Reading {
	if s.Second != nil && s.Second.Outcome == "ok" && s.Second.Dropped["other_process"] == 0 {
		return s.Second
	}
	return s.First
}

// version is the version that the server reports, as a part of a sentence.
func versionOf(r *probe.Reading) string { return cmp.Or(r.Version, "of an unknown version") }
