package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// fleetVersion is the version of the documents that this program knows.
	fleetVersion = 1
	// mostAnswer is seven times the document about 10,000 engines.
	mostAnswer = 64 << 20
	maxReason  = 1500
)

// Fleet is a collector with the extension vllm_fleet, which is asked instead of the servers.
type Fleet struct {
	// Interval is the time between two questions.
	Interval time.Duration

	client *http.Client
	base   *url.URL
	log    *Log

	mu    sync.Mutex
	table *Table
	// opened is the key of the row that a person reads; empty for none.
	opened string

	news, wake chan struct{}
}

// NewFleet returns a collector that Follow asks once an interval; 0 means the default.
func NewFleet(address string, client *http.Client, interval time.Duration, log *Log) (*Fleet, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("--from needs the address of a collector's vllm_fleet, for example http://localhost:55690")
	}
	f := &Fleet{client: client, base: base, Interval: cmp.Or(interval, DefaultInterval), log: log, news: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	return f, Times{f.Interval, time.Hour}.check()
}

// Ask takes what the collector knows now, with details of so many rows that ask for action, the worst first, and of the
// one that is opened. An error says what to do; what was known stays.
func (f *Fleet) Ask(ctx context.Context, details int) error {
	var d fleetDocument
	if err := f.get(ctx, "fleet", &d); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.table != nil && f.table.Trouble == "" {
			f.log.Logger().Warn(err.Error())
			f.table.Trouble = err.Error()
		}
		return err
	}
	t := d.table(f.base.Redacted(), f.Interval)
	Sort(t.Rows, Order{})
	f.mu.Lock()
	opened := f.opened
	f.mu.Unlock()
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Key != opened && (details <= 0 || !r.Urgent()) {
			continue
		}
		details--
		var of fleetDetail
		// An engine that has just gone, or is one of too many that are asked about, has no details.
		if f.get(ctx, r.Key, &of) == nil {
			r.explain(&of)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.table = t
	return nil
}

// get asks for a document below /api/v1.
func (f *Fleet) get(ctx context.Context, path string, to any) error {
	shown := f.base.Redacted()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base.JoinPath("api", "v1", path).String(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := f.client.Do(request)
	var body []byte
	if err == nil {
		defer answer.Body.Close()
		body, err = io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // The address may have a secret.
	}
	var head struct{ Version *int }
	switch says := ""; {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if strings.Contains(err.Error(), "x509:") {
			says = "; see --ca-file"
		}
		return fmt.Errorf("%s cannot be read: %s%s; the collector has to run with the extension vllm_fleet, and listen at this address", shown, printable(err.Error(), maxReason), says)
	case answer.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s wants credentials (401); use --token-file or --header", shown)
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s rejects these credentials (403)", shown)
	case answer.StatusCode != http.StatusOK, json.Unmarshal(body, &head) != nil, head.Version == nil:
		return fmt.Errorf("%s answers %s, but not as the extension vllm_fleet; give its address, for example http://localhost:55690", shown, printable(answer.Status, maxName))
	case *head.Version != fleetVersion:
		return fmt.Errorf("%s has documents of version %d and this vllmctl reads version %d; use the vllmctl of the collector's release", shown, *head.Version, fleetVersion)
	}
	if err := json.Unmarshal(body, to); err != nil {
		return fmt.Errorf("%s has a document that cannot be read: %s", shown, printable(err.Error(), maxReason))
	}
	return nil
}

// Follow asks once an interval, and when a row is opened, until ctx ends.
func (f *Fleet) Follow(ctx context.Context) {
	tick := time.NewTicker(f.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.wake:
		}
		_ = f.Ask(ctx, 0) // The table has the error.
		signal(f.news)
	}
}

// signal puts an element into a channel for one; where it has one already, several are one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Table returns what was known when the collector was last asked. It shares nothing with f.
func (f *Fleet) Table(details bool) *Table {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !details {
		f.opened = ""
	}
	t := *f.table
	t.Rows = slices.Clone(t.Rows)
	return &t
}

// Open asks for the details of a row.
func (f *Fleet) Open(key string) {
	f.mu.Lock()
	f.opened = key
	f.mu.Unlock()
	signal(f.wake)
}

// News has an element after the collector was asked.
func (f *Fleet) News() <-chan struct{} { return f.news }

// Log has why it could not be asked.
func (f *Fleet) Log() []Line { return f.log.Lines() }
