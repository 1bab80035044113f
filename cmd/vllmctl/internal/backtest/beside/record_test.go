// Package beside tests vllmctl backtest against histories whose truth is known: simulated
// servers with faults are scraped in simulated time, as Prometheus scrapes, into the storage
// of a Prometheus server.
package beside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// Server is a simulated server and how Prometheus knows it.
type Server struct {
	Config vllmsim.Config
	// Labels are those of the target: job, instance and others.
	Labels map[string]string
	// Copies are further targets that show the same numbers; only for measurements.
	Copies []map[string]string
	// Scraped reports whether Prometheus scrapes at a time since the begin; nil is always.
	Scraped func(at time.Duration) bool
}

// Story is what Prometheus scraped.
type Story struct {
	Begin         time.Time
	Length, Every time.Duration
	Servers       []Server
	// Rules are rule files that Prometheus evaluated meanwhile; their alerts are the user's.
	Rules []string
}

// blockLength is Prometheus's.
const blockLength = 2 * time.Hour

// Record plays a story into a store of a folder, which a Prometheus server can read when the
// store is closed.
func Record(tb testing.TB, dir string, s *Story) *rulestore.Store {
	tb.Helper()
	store, _ := RecordWithAlerts(tb, dir, s)
	return store
}

// RecordWithAlerts is Record, and also returns when the user's alerts fired.
func RecordWithAlerts(tb testing.TB, dir string, s *Story) (*rulestore.Store, []rulestore.Firing) {
	tb.Helper()
	store, err := rulestore.Open(dir, rulestore.Suffixed, blockLength, 365*24*time.Hour)
	require.NoError(tb, err)
	var evaluation *rulestore.Evaluation
	if len(s.Rules) > 0 {
		var errs []error
		evaluation, errs = rulestore.NewEvaluation(tb.Context(), store, s.Begin, 30*time.Second, s.Rules...)
		require.Empty(tb, errs)
	}
	servers := make([]*scraped, len(s.Servers))
	for i := range s.Servers {
		config := s.Servers[i].Config
		config.Start = s.Begin
		simulated, err := vllmsim.New(config)
		require.NoError(tb, err)
		servers[i] = &scraped{server: simulated, of: &s.Servers[i], offset: time.Duration(i)*137*time.Millisecond + 11*time.Millisecond}
	}
	for at := time.Duration(0); at < s.Length; at += s.Every {
		for _, one := range servers {
			require.NoError(tb, one.scrape(tb.Context(), store, s, at))
		}
		if evaluation != nil {
			require.NoError(tb, evaluation.Until(tb.Context(), s.Begin.Add(at)))
		}
		if (at+s.Every)%blockLength < s.Every {
			require.NoError(tb, store.Compact(tb.Context()))
		}
	}
	if evaluation == nil {
		return store, nil
	}
	own, problems, _ := evaluation.Finish(s.Begin.Add(s.Length))
	require.Empty(tb, problems)
	return store, own
}

// Persist writes what is still in memory to the folder and closes the store.
func Persist(tb testing.TB, store *rulestore.Store) {
	tb.Helper()
	head := store.DB.Head()
	for head.NumSeries() > 0 && head.MinTime() <= head.MaxTime() {
		// Blocks of Prometheus are aligned.
		length := blockLength.Milliseconds()
		end := (head.MinTime()/length + 1) * length
		last := end > head.MaxTime()
		require.NoError(tb, store.DB.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), min(end-1, head.MaxTime()))))
		if last {
			break
		}
	}
	require.NoError(tb, store.Close())
}

// scraped is a server that is being scraped.
type scraped struct {
	server *vllmsim.Server
	of     *Server
	offset time.Duration
	moved  time.Duration
	target prometheus
}

// scrape lets time pass and scrapes the server.
func (s *scraped) scrape(ctx context.Context, store *rulestore.Store, story *Story, at time.Duration) error {
	s.server.Advance(at + s.offset - s.moved)
	s.moved = at + s.offset
	if s.of.Scraped != nil && !s.of.Scraped(at) {
		return nil
	}
	body, contentType, err := s.server.Targets()[0].Body()
	if err != nil {
		body = nil // It does not answer.
	}
	s.target.names = append([]map[string]string{s.of.Labels}, s.of.Copies...)
	return s.target.scrape(ctx, store, story.Begin.Add(at+s.offset), body, contentType)
}

// prometheus is what a Prometheus server does with one target.
type prometheus struct {
	// names are the labels of the target, of several if more targets show the same.
	names []map[string]string
	// live are the series of the last scrape.
	live map[string]labels.Labels
}

// scrape stores what a scrape gives: the samples of the body, up, their number, and the ends
// of the series that are gone. A scrape without a body has failed.
func (p *prometheus) scrape(ctx context.Context, store *rulestore.Store, at time.Time, body []byte, contentType string) error {
	when := at.UnixMilli()
	now := map[string]labels.Labels{}
	var all []rulestore.Series
	add := func(l labels.Labels, v float64) {
		for i, target := range p.names {
			b := labels.NewBuilder(l)
			for name, value := range target {
				if own := l.Get(name); own != "" {
					b.Set("exported_"+name, own)
				}
				b.Set(name, value)
			}
			one := b.Labels()
			all = append(all, rulestore.Series{Labels: one, Times: []int64{when + int64(i)}, Values: []float64{v}})
			now[one.String()] = one
		}
	}
	up, n := 0.0, 0
	if body != nil {
		var err error
		if n, err = parse(body, contentType, add); err != nil {
			return err
		}
		up = 1
	}
	for key, l := range p.live {
		if _, still := now[key]; !still {
			all = append(all, rulestore.Series{Labels: l, Times: []int64{when}, Values: []float64{math.Float64frombits(value.StaleNaN)}})
		}
	}
	p.live = now
	now = map[string]labels.Labels{}
	add(labels.FromStrings("__name__", "up"), up)
	add(labels.FromStrings("__name__", "scrape_samples_scraped"), float64(n))
	dropped, err := store.Append(ctx, all)
	if err == nil && dropped > 0 {
		err = fmt.Errorf("%d samples at %s are not in the order of their times", dropped, at)
	}
	return err
}

// parse reads a body with Prometheus's own parser.
func parse(body []byte, contentType string, add func(labels.Labels, float64)) (n int, err error) {
	p, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", contentType, err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := p.Series()
		var l labels.Labels
		p.Labels(&l)
		add(l, v)
		n++
	}
}
