package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
)

// Span is a time from From up to To.
type Span struct{ From, To time.Time }

// Windows cuts a period along a grid of a length. The first and the last window may be shorter.
func Windows(period Span, length time.Duration) []Span {
	var out []Span
	for from := period.From; from.Before(period.To); {
		to := from.Truncate(length).Add(length)
		if to.After(period.To) {
			to = period.To
		}
		out = append(out, Span{from, to})
		from = to
	}
	return out
}

// Source reads samples; promapi.Client is one.
type Source interface {
	Samples(ctx context.Context, selector string, from, to time.Time) ([]promapi.Series, error)
}

// Loader reads parts from the server.
type Loader struct {
	Source Source
	// Most is how large all parts together may be that were loaded and not released yet, in bytes.
	Most int64

	mu sync.Mutex
	// held is how large they are.
	held int64
	// pieces is how long the periods are that the server answers, by selector.
	pieces map[string]time.Duration
	stats  LoadStats
}

// LoadStats are what a loader has done.
type LoadStats struct {
	// Parts is the number of parts.
	Parts int
	// Samples is the number of samples.
	Samples int64
}

// Stats returns what the loader has done.
func (l *Loader) Stats() LoadStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// shortest is the shortest period that is asked for.
const shortest = time.Minute

// Size is about how large series are in memory, in bytes.
func Size(series []promapi.Series) (n int64) {
	for i := range series {
		n += 64 + int64(series[i].Labels.ByteSize()) + 16*int64(len(series[i].Times))
	}
	return n
}

// Release gives the room of so many bytes of parts back.
func (l *Loader) Release(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= size
}

// hold takes room for so many bytes.
func (l *Loader) hold(size int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held += size; l.held > l.Most {
		return fmt.Errorf("the history needs more memory than %s; select fewer servers with --match or --max-targets, or lower --parallel", humanize.IBytes(uint64(l.Most)))
	}
	return nil
}

// Load returns the samples of a selector in a window, series by series in the order of
// their labels. Their Size is held until it is released.
func (l *Loader) Load(ctx context.Context, selector string, window Span) ([]promapi.Series, error) {
	series, err := l.read(ctx, selector, window)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Parts++
	for i := range series {
		l.stats.Samples += int64(len(series[i].Times))
	}
	return series, nil
}

// read asks the server, for shorter and shorter periods while it refuses.
func (l *Loader) read(ctx context.Context, selector string, window Span) ([]promapi.Series, error) {
	var parts [][]promapi.Series
	held := int64(0)
	for from := window.From; from.Before(window.To); {
		length := l.piece(selector, window.To.Sub(window.From))
		to := from.Add(length)
		if to.After(window.To) {
			to = window.To
		}
		series, err := l.Source.Samples(ctx, selector, from, to)
		if refused := promapi.As(err); refused != nil && refused.Kind == promapi.TooMuch && to.Sub(from) > shortest {
			l.shorten(selector, to.Sub(from)/2)
			continue
		}
		if err != nil {
			return nil, err
		}
		held += Size(series)
		if err := l.hold(Size(series)); err != nil {
			return nil, err
		}
		parts = append(parts, series)
		from = to
	}
	whole := join(parts)
	l.Release(held - Size(whole)) // Each piece has the labels again.
	return whole, nil
}

func (l *Loader) piece(selector string, whole time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.pieces[selector]; ok && known < whole {
		return known
	}
	return whole
}

func (l *Loader) shorten(selector string, to time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pieces == nil {
		l.pieces = map[string]time.Duration{}
	}
	if known, ok := l.pieces[selector]; !ok || to < known {
		l.pieces[selector] = max(to.Truncate(time.Second), shortest)
	}
}

// join puts pieces in the order of their times together.
func join(parts [][]promapi.Series) []promapi.Series {
	var out []promapi.Series
	if len(parts) == 1 {
		out = parts[0]
	} else {
		known := map[string]int{}
		for _, part := range parts {
			for i := range part {
				key := part[i].Labels.String()
				at, ok := known[key]
				if !ok {
					known[key] = len(out)
					one := part[i]
					// Other series share the times.
					one.Times = slices.Clone(one.Times)
					out = append(out, one)
					continue
				}
				out[at].Times = append(out[at].Times, part[i].Times...)
				out[at].Values = append(out[at].Values, part[i].Values...)
			}
		}
	}
	slices.SortFunc(out, func(a, b promapi.Series) int { return labels.Compare(a.Labels, b.Labels) })
	return share(out)
}

// share lets series with the same times share them.
func share(series []promapi.Series) []promapi.Series {
	for i := 1; i < len(series); i++ {
		if slices.Equal(series[i].Times, series[i-1].Times) {
			series[i].Times = series[i-1].Times
		}
	}
	return series
}

// Selector returns what is read of a target; more are further prefixes of the deployment.
func (t *Target) Selector(more []string) string { return selectorOf(t, more) }
