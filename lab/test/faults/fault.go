package faults

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
)

// Fault is one way in which a server, a discovery or a sender goes wrong.
type Fault struct {
	// Name is short and unique; What describes the fault for the page.
	Name, What string
	// Begin starts the fault and returns the part of it that the collector gets.
	Begin func(w *World) (Given, error)
	// Says matches the line of the log that reports the fault. It is nil for a fault
	// that loses nothing and needs no report.
	Says *regexp.Regexp
	// Check returns what is wrong with the numbers that reached the backend; nil
	// where they do not matter.
	Check func(g *Given, s *Sink) error
	// Heavy faults cost much, and are watched for longer and alone.
	Heavy bool
	// Short faults are part of the short form, as all are that are not heavy.
	Short bool
}

// Given is the part of a fault that the collector gets.
type Given struct {
	// Addr is the host and port that the log must name; empty without one.
	Addr string
	// Target is an entry of "targets", or nil.
	Target map[string]any
	// Discovery is the section "discovery", or nil.
	Discovery map[string]any
	// Push sends OTLP to this URL until it has sent everything; nil: nothing is sent.
	Push func(ctx context.Context, url string) error
	// Asked counts the requests, where Check wants to know.
	Asked func() int
}

// target is a Given with a plain target.
func target(addr string, err error) (Given, error) {
	return Given{Addr: addr, Target: map[string]any{"endpoint": "http://" + addr}}, err
}

// All are the faults in the order of the page.
func All() []Section {
	return []Section{
		{"A server that does not answer, or answers late", connectionFaults()},
		{"An answer that is not what was asked for", answerFaults()},
		{"TLS", tlsFaults()},
		{"Bodies with wrong content", contentFaults()},
		{"Identity, restarts and cut bodies", identityFaults()},
		{"Much of everything", sizeFaults()},
		{"OTLP senders and discovery", senderFaults()},
	}
}

// Section is a part of the table.
type Section struct {
	Title  string
	Faults []Fault
}

// says is a pattern for the log, without regard to case.
func says(pattern string) *regexp.Regexp { return regexp.MustCompile("(?i)" + pattern) }

// text is the content type of the text format.
const text = "text/plain; version=0.0.4; charset=utf-8"

// body is a small page of a vLLM server: one engine, a process start, and counters of its
// scrapes.
func body(started, reads int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# HELP process_start_time_seconds Start time of the process.\n# TYPE process_start_time_seconds gauge\n"+
		"process_start_time_seconds %d\n", started)
	const labels = `engine="0",model_name="m"`
	gauge := func(name string, value float64) {
		fmt.Fprintf(&b, "# HELP vllm:%[1]s A gauge.\n# TYPE vllm:%[1]s gauge\nvllm:%[1]s{%[2]s} %[3]g\n", name, labels, value)
	}
	counter := func(name string, value int64) {
		fmt.Fprintf(&b, "# HELP vllm:%[1]s_total A counter.\n# TYPE vllm:%[1]s_total counter\nvllm:%[1]s_total{%[2]s} %[3]d\n", name, labels, value)
	}
	gauge("num_requests_running", 2)
	gauge("num_requests_waiting", 0)
	gauge("kv_cache_usage_perc", 0.25)
	counter("prompt_tokens", 1000*reads)
	counter("generation_tokens", 200*reads)
	counter(servedFamily, reads)
	const ttft = "vllm:time_to_first_token_seconds"
	fmt.Fprintf(&b, "# HELP %[1]s A histogram.\n# TYPE %[1]s histogram\n", ttft)
	for _, bound := range []float64{0.1, 0.5, 1, math.Inf(1)} {
		le := strings.TrimPrefix(fmt.Sprint(bound), "")
		fmt.Fprintf(&b, "%s_bucket{%s,le=%q} %d\n", ttft, labels, le, reads)
	}
	fmt.Fprintf(&b, "%[1]s_sum{%[2]s} %[3]g\n%[1]s_count{%[2]s} %[4]d\n", ttft, labels, 0.05*float64(reads), reads)
	return b.String()
}
