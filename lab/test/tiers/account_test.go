//go:build e2e

package tiers

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // Agents compress.

	harness "github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// scrape is one scrape of a server where it arrived.
type scrape struct {
	// from is the collector of the second tier.
	from    string
	version string
	// number counts the scrapes of a process from 1.
	number int
	at     time.Time
}

// account is what has arrived.
type account struct {
	mu sync.Mutex
	// scrapes are in the order of their arrival, by instance.
	scrapes map[string][]scrape
	// parts are the metrics of each scrape, by instance, time and collector.
	parts map[string]map[time.Time]map[string]map[string]bool
	// replicas are the newest numbers of servers of each pool, by namespace and model, and by
	// collector.
	replicas map[string]map[string]int
	// derived are the times of a derived metric, by instance and collector.
	derived map[string]map[string][]time.Time
}

func newAccount() *account {
	return &account{
		scrapes: map[string][]scrape{}, parts: map[string]map[time.Time]map[string]map[string]bool{},
		replicas: map[string]map[string]int{}, derived: map[string]map[string][]time.Time{},
	}
}

// rawMetrics are those of a scrape that are looked at.
var rawMetrics = []string{"vllm.generation_tokens", "vllm.num_requests.running", "vllm.time_to_first_token", "vllm.up"}

const derivedRate = "vllm.first_token_rate"

func (a *account) add(from string, md pmetric.Metrics) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		text := func(name string) string {
			return textOf(rm.Resource().Attributes(), name)
		}
		instance, version := text("service.instance.id"), text("service.version")
		for p := range harness.Points(rm) {
			if p.Ends {
				continue
			}
			a.point(from, instance, version, p.Metric, time.Unix(0, int64(p.At)).UTC(), p.Value)
			if p.Metric == "vllm.pool.replicas" {
				set(a.replicas, textOf(p.Attributes, "k8s.namespace.name")+"."+textOf(p.Attributes, "model_name"), from, int(p.Value))
			}
		}
	}
}

func textOf(attributes pcommon.Map, name string) string {
	if value, ok := attributes.Get(name); ok {
		return value.AsString()
	}
	return ""
}

func set[K, L comparable, V any](m map[K]map[L]V, k K, l L, v V) {
	if m[k] == nil {
		m[k] = map[L]V{}
	}
	m[k][l] = v
}

func (a *account) point(from, instance, version, name string, at time.Time, value float64) {
	switch {
	case name == derivedRate:
		if a.derived[instance] == nil {
			a.derived[instance] = map[string][]time.Time{}
		}
		a.derived[instance][from] = append(a.derived[instance][from], at)
	case slices.Contains(rawMetrics, name):
		if a.parts[instance] == nil {
			a.parts[instance] = map[time.Time]map[string]map[string]bool{}
		}
		if a.parts[instance][at] == nil {
			a.parts[instance][at] = map[string]map[string]bool{}
		}
		set(a.parts[instance][at], from, name, true)
		if name == rawMetrics[0] {
			a.scrapes[instance] = append(a.scrapes[instance], scrape{from, version, int(value) / 100, at})
		}
	}
}

// whole reports whether at least n scrapes of each of these servers have arrived.
func (a *account) whole(f *fleet, n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for instance := range f.servers {
		if len(a.scrapes[instance]) < n {
			return false
		}
	}
	return true
}

// findings are what is wrong in an account.
type findings struct {
	// Split are scrapes whose points have arrived at several collectors, of Scrapes.
	Split, Scrapes int
	// Twice are scrapes that have arrived again, Lost those between the first and the last of
	// a process that have not, and Late those that have arrived after a later one.
	Twice, Lost, Late int
	// Servers are those whose scrapes are at several collectors, and Pools likewise.
	Servers, Pools int
	// Collectors are those at which something has arrived.
	Collectors int
}

func (a *account) findings(f *fleet) findings {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out findings
	pools, collectors := map[string]map[string]bool{}, map[string]bool{}
	for instance, all := range a.scrapes {
		type key struct {
			version string
			number  int
		}
		seen, homes, last := map[key]int{}, map[string]bool{}, map[string]int{}
		for _, s := range all {
			k := key{s.version, s.number}
			seen[k]++
			if seen[k] > 1 {
				out.Twice++
			} else if s.number < last[s.version] {
				out.Late++
			}
			last[s.version] = max(last[s.version], s.number)
			homes[s.from], collectors[s.from] = true, true
			if pool := f.pools[instance]; pool != "" {
				set(pools, pool, s.from, true)
			}
		}
		for version, newest := range last {
			first := newest
			for k := range seen {
				if k.version == version {
					first = min(first, k.number)
				}
			}
			for number := first; number <= newest; number++ {
				if seen[key{version, number}] == 0 {
					out.Lost++
				}
			}
		}
		if len(homes) > 1 {
			out.Servers++
		}
	}
	for _, homes := range pools {
		if len(homes) > 1 {
			out.Pools++
		}
	}
	out.Collectors = len(collectors)
	for _, times := range a.parts {
		for _, by := range times {
			out.Scrapes++
			if len(by) > 1 {
				out.Split++
			}
		}
	}
	return out
}

// incomplete are scrapes that lack one of the metrics at a collector which has others of them.
func (a *account) incomplete() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, times := range a.parts {
		for _, by := range times {
			for _, names := range by {
				if len(names) != len(rawMetrics) {
					n++
				}
			}
		}
	}
	return n
}

// homes are the collectors of each server.
func (a *account) homes() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string][]string{}
	for instance, all := range a.scrapes {
		homes := map[string]bool{}
		for _, s := range all {
			homes[s.from] = true
		}
		out[instance] = slices.Sorted(maps.Keys(homes))
	}
	return out
}

// sink receives OTLP over gRPC in place of a collector of the second tier.
type sink struct {
	pmetricotlp.UnimplementedGRPCServer

	name, address string
	account       *account
	server        *grpc.Server
	served        sync.WaitGroup
}

func (s *sink) Export(_ context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	s.account.add(s.name, request.Metrics())
	return pmetricotlp.NewExportResponse(), nil
}

// open begins to listen at the address of the sink, where port 0 becomes a free one. Another process
// may have the port for a moment where the sink was closed before.
func (s *sink) open(t *testing.T) {
	t.Helper()
	var listener net.Listener
	require.Eventually(t, func() bool {
		var err error
		listener, err = net.Listen("tcp", s.address)
		return err == nil
	}, 20*time.Second, 50*time.Millisecond, "nothing can listen at %s", s.address)
	s.address = listener.Addr().String()
	s.server = grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(s.server, s)
	server := s.server
	s.served.Go(func() { _ = server.Serve(listener) })
}

func (s *sink) close() {
	s.server.Stop()
	s.served.Wait()
}

// backend receives OTLP over HTTP from the collectors of the second tier; the first part of
// the path is the collector.
type backend struct {
	*account

	url string
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{account: newAccount()}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	metrics, err := harness.Metrics(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.add(from, metrics)
}
