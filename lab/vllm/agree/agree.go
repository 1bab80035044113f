// Package agree compares what the clients of a run saw with what the collector derives from the
// pages that the server showed in that time. Both see the same tokens, on two ways.
package agree

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
)

const (
	// looks is over how many scrapes the tokens are compared. The window ends between two of
	// them, so that the time of a scrape does not decide with which one it begins.
	looks  = 4
	window = looks*run.Every - run.Every/2

	// A token is on its way for a moment, and the answer of /metrics as well.
	share, few = 0.1, 60.0
)

// Account is the tokens of one window on both ways.
type Account struct {
	// From and To are in seconds of the run. In between Least to Most tokens came to the clients,
	// and so many were derived. Inside is the number of requests that the server had at the end.
	From, To             float64
	Least, Most, Derived float64
	Inside               float64
}

func (a *Account) agrees() bool {
	beyond := max(a.Least-a.Derived, a.Derived-a.Most)
	return beyond <= few+share*max(a.Most, a.Derived)
}

// still reports whether the server had requests and neither side saw a token.
func (a *Account) still() bool { return a.Most == 0 && a.Derived == 0 && a.Inside > 0 }

// Check returns what does not agree, in words; nil where all does.
func Check(ctx context.Context, r *run.Run) ([]string, error) {
	accounts, err := derive(ctx, r)
	if err != nil {
		return nil, err
	}
	return judgement(r, accounts), nil
}

// judgement compares the accounts of a run, and looks for the times in which the server was
// stopped.
func judgement(r *run.Run, accounts []Account) []string {
	var out []string
	if len(accounts) < looks {
		out = append(out, fmt.Sprintf("only %d windows of %s could be compared", len(accounts), window))
	}
	for i := range accounts {
		if a := &accounts[i]; !a.agrees() {
			out = append(out, fmt.Sprintf("from %.0f s to %.0f s clients got %.0f to %.0f tokens, and the collector derives %.0f", a.From, a.To, a.Least, a.Most, a.Derived))
		}
	}
	felt := judge.FeltHarm(r.Sent, r.Usual(), r.End())
	for i, span := range r.Spans {
		phase := &r.Play.Phases[i]
		if phase.Fault == nil || phase.Fault.Do != "stop" {
			continue
		}
		if !slices.ContainsFunc(felt, func(f judge.Felt) bool { return f.Level == judge.Outage && f.From >= span.From && f.From <= span.To }) {
			out = append(out, fmt.Sprintf("%s lasted %.0f s, and no client felt an outage", phase.Name, span.To-span.From))
		}
		if !slices.ContainsFunc(accounts, func(a Account) bool { return a.From >= span.From && a.To <= span.To && a.still() }) {
			out = append(out, fmt.Sprintf("%s lasted %.0f s, and in no window of it the server had requests and made no tokens", phase.Name, span.To-span.From))
		}
	}
	return out
}

// derive sends the pages through the receiver and the processor.
func derive(ctx context.Context, r *run.Run) (out []Account, err error) {
	var answered []float64
	err = said.Feed(ctx, r, run.Every, map[string]any{"window": window.String()}, func(s *run.Scrape, emitted pmetric.Metrics) error {
		if s.Status != http.StatusOK {
			answered = nil
			return nil
		}
		answered = append(answered, s.At)
		rate, has := total(emitted, "vllm.generation_throughput")
		if !has || len(answered) <= looks {
			return nil
		}
		a := Account{From: answered[len(answered)-1-looks], To: s.At}
		a.Derived = rate * (a.To - a.From)
		a.Least, a.Most = came(r.Sent, a.From, a.To)
		running, _ := total(emitted, "vllm.num_requests.running")
		waiting, _ := total(emitted, "vllm.num_requests.waiting")
		a.Inside = running + waiting
		out = append(out, a)
		return nil
	})
	return out, err
}

// total adds up the points of a gauge.
func total(metrics pmetric.Metrics, name string) (sum float64, has bool) {
	for _, p := range said.Points(metrics, name) {
		has = true
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			sum += float64(p.IntValue())
		} else {
			sum += p.DoubleValue()
		}
	}
	return sum, has
}

// came counts the tokens that clients got in a time. A part of an answer holds one token, and
// several where the server was late; which parts those were is known only of whole answers.
func came(sent []judge.Sent, from, to float64) (least, most float64) {
	for i := range sent {
		s := &sent[i]
		inside := 0
		for _, t := range s.Tokens {
			if at := s.At + t; at > from && at <= to {
				inside++
			}
		}
		more := float64(max(0, s.Output-len(s.Tokens)))
		switch inside {
		case 0:
		case len(s.Tokens):
			least, most = least+float64(inside)+more, most+float64(inside)+more
		default:
			least, most = least+float64(inside), most+float64(inside)+more
		}
	}
	return least, most
}
