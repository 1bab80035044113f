package querylint

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// aboutNames are the codes that say that a name is not the one to write.
var aboutNames = []Code{
	CodeUnknownMetric, CodeOtherSpelling, CodeRemovedMetric, CodeMissingTotal, CodeExtraTotal, CodeHistogramPart, CodeNotAHistogram, CodeOldPrefix, CodeOldGeneration,
	CodeMetricTooNew,
}

// A name that is proposed for a wrong one is one that the linter itself finds right: whatever the
// mistake is, and of whatever age the name is that was meant.
func TestAProposedNameHasNoFindingItself(t *testing.T) {
	race.SkipSequential(t)
	mistakes := map[string]func(string) string{
		"nothing":        func(name string) string { return name },
		"without _total": func(name string) string { return strings.TrimSuffix(name, "_total") },
		"with _total":    func(name string) string { return name + "_total" },
		"as a histogram": func(name string) string { return name + "_bucket" },
		"a letter less":  func(name string) string { return name[:len(name)-8] + name[len(name)-7:] },
		"two exchanged": func(name string) string {
			n := len(name) - 10
			return name[:n] + name[n+1:n+2] + name[n:n+1] + name[n+2:]
		},
		"a word too much": func(name string) string { return name[:len(name)-3] + "_foo" + name[len(name)-3:] },
	}
	for _, o := range []Options{{Spelling: Wire, Mixed: true}, {Spelling: Suffixed}, {Spelling: Wire, Version: "0.9.0"}, {Spelling: Wire, Version: "0.20.0"}} {
		l := New(o)
		proposed := 0
		var bad []string
		for _, name := range slices.DeleteFunc(sortedKeys(l.names.byName), func(name string) bool {
			// The other prefixes are treated alike, and what the receiver computes has no names of versions.
			e := l.names.byName[name]
			alike := e.source != nil && strings.HasPrefix(e.source.Family, "vllm:") && !strings.HasPrefix(name, "vllm:")
			return len(name) < 12 || alike && (e.source.Until == "" || !strings.HasPrefix(name, rayBefore)) || o.Version != "" && e.source == nil
		}) {
			for what, mistake := range mistakes {
				wrong := mistake(name)
				for _, f := range l.Expr(wrong, Context{Kind: Series}) {
					if f.Suggestion == "" || !slices.Contains(aboutNames, f.Code) {
						continue
					}
					proposed++
					for _, again := range l.Expr(f.Suggestion, Context{Kind: Series}) {
						if slices.Contains(aboutNames, again.Code) && len(bad) < 10 {
							bad = append(bad, wrong+" ("+what+"): "+f.String()+", but: "+again.String())
						}
					}
				}
			}
		}
		assert.Empty(t, bad, "%+v", o)
		assert.Greater(t, proposed, 500, "%+v", o)
	}
}

// The name of something else is not taken for a misspelt one.
func TestOnlyAMisspeltNameIsCorrected(t *testing.T) {
	l := New(Options{Spelling: Wire, Mixed: true})
	for wrong, want := range map[string]string{
		"vllm:num_request_waiting":          "vllm:num_requests_waiting",
		"vllm:request_succss_total":         "vllm:request_success_total",
		"vllm:http_requests_total":          "",
		"vllm:request_failures_total":       "",
		"vllm:gpu_prefix_cache_hit":         "",
		"vllm_ok":                           "",
		"vllm:num_requests_success_total_x": "",
	} {
		findings := l.Expr(wrong, Context{Kind: Series})
		if assert.Len(t, findings, 1, wrong) {
			assert.Equal(t, want, findings[0].Suggestion, wrong)
		}
	}
}

// The router of the production stack has names of its own, which are right, and repeats some of
// those of servers.
func TestTheNamesOfTheRouterAreKnown(t *testing.T) {
	for expr, want := range map[string][]string{
		`sum by (server) (vllm:healthy_pods_total)`:                                                                        nil,
		`vllm:current_qps{server=~"$server"}`:                                                                              nil,
		`sum by (model) (rate(vllm:num_incoming_requests_total[5m]))`:                                                      nil,
		`sum by (error_type) (rate(vllm:request_errors_total[5m]))`:                                                        nil,
		`histogram_quantile(0.9, sum by (le, server) (rate(vllm:request_latency_seconds_bucket{status="200"}[5m])))`:       nil,
		`rate(vllm_pii_requests_total[5m])`:                                                                                nil,
		`vllm:num_requests_running{server!=""}`:                                                                            nil,
		`sum(vllm:num_requests_running{server=""})`:                                                                        nil,
		`vllm:gpu_prefix_cache_hits_total{server="http://a:8000"} / vllm:gpu_prefix_cache_queries_total{server=~"http.+"}`: {"error lifetime-ratio"},
		`vllm_router_num_requests_running`:                                                                                 nil,
		`rate(vllm_router_request_errors_total[5m])`:                                                                       nil,
		`{"vllm_router.current_qps", server="http://a"}`:                                                                   nil,
		`{__name__=~"vllm_router_.+"}`:                                                                                     nil,
		`{__name__=~"^vllm:num_incoming_requests_total$"}`:                                                                 nil,
		`sum(vllm:num_incoming_requests_total)`:                                                                            {"error counter-without-rate"},
		`rate(vllm:request_errors[5m])`:                                                                                    {"error missing-total"},
		`rate(vllm:current_qps[5m])`:                                                                                       {"error rate-of-gauge"},
		`sum by (server) (vllm:num_requests_running)`:                                                                      {"info double-count"},
		`vllm:prompt_tokens_total{server="a"} offset 5m unless vllm:prompt_tokens_total`:                                   {"error unknown-label"},
		`{__name__=~"^vllm:num_request_.*$"}`:                                                                              {"error unknown-metric"},
		`vllm:gpu_prefix_cache_hit_rate`:                                                                                   {"warning removed-metric"},
	} {
		var got []string
		for _, f := range New(Options{Spelling: Wire, Mixed: true}).Expr(expr, Context{Kind: Panel}) {
			got = append(got, string(f.Severity)+" "+string(f.Code))
		}
		assert.Equal(t, want, got, expr)
	}
}
