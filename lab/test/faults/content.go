package faults

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// page is one answer: a content type, which is the text format where it is
// empty, and a body.
type page struct{ contentType, body string }

// pages is a target whose answer depends on the number of the scrape, from 1.
func pages(answer func(n int64) page) func(*World) (Given, error) {
	return func(w *World) (Given, error) {
		var n atomic.Int64
		g, err := target(w.HTTP(func(rw http.ResponseWriter, _ *http.Request) {
			p := answer(n.Add(1))
			if p.contentType == "" {
				p.contentType = text
			}
			rw.Header().Set("Content-Type", p.contentType)
			_, _ = rw.Write([]byte(p.body))
		}))
		g.Asked = func() int { return int(n.Load()) }
		return g, err
	}
}

// contentFaults are readable bodies with odd contents. The good part of each must arrive.
func contentFaults() []Fault {
	// with adds lines to a working page.
	with := func(name, what string, pattern *regexp.Regexp, lines ...string) Fault {
		return Fault{Name: name, What: what, Says: pattern, Check: arrives, Begin: pages(func(n int64) page {
			return page{body: body(1700000000, n) + strings.Join(lines, "\n") + "\n"}
		})}
	}
	const odd = `vllm:odd{engine="0",model_name="m"`
	return []Fault{
		with("NaN and Inf", "counters, gauges and a histogram that are NaN, +Inf and -Inf", nil,
			"# TYPE vllm:odd_total counter", `vllm:odd_total{model_name="m"} NaN`, `vllm:odd_total{model_name="n"} +Inf`,
			"# TYPE vllm:even gauge", `vllm:even{model_name="m"} NaN`, `vllm:even{model_name="n"} -Inf`,
			"# TYPE vllm:e2e_request_latency_seconds histogram", `vllm:e2e_request_latency_seconds_bucket{model_name="m",le="+Inf"} NaN`,
			`vllm:e2e_request_latency_seconds_sum{model_name="m"} NaN`, `vllm:e2e_request_latency_seconds_count{model_name="m"} NaN`),
		with("duplicate series", "one series twice with different values", says("more than once"),
			"# TYPE vllm:odd gauge", odd+"} 1", odd+"} 2"),
		with("huge numbers", "numbers beyond int64 and float64, and a negative counter", says("line of the body"),
			"# TYPE vllm:odd_total counter", `vllm:odd_total{model_name="m"} 1e308`, `vllm:odd_total{model_name="n"} -5`,
			"# TYPE vllm:even gauge", `vllm:even{model_name="m"} 1e400`, `vllm:even{model_name="n"} 99999999999999999999999999`),
		with("broken lines", "lines without a value, an open quote, no name", says("line"),
			"vllm:odd", `vllm:odd{model_name="m} 1`, `{} 1`, `vllm:odd{model_name="m"} one`),
		with("torn histogram", "buckets that fall, no +Inf, a count that is not theirs", says("histogram|bucket"),
			"# TYPE vllm:e2e_request_latency_seconds histogram", `vllm:e2e_request_latency_seconds_bucket{model_name="m",le="1"} 9`,
			`vllm:e2e_request_latency_seconds_bucket{model_name="m",le="2"} 3`, `vllm:e2e_request_latency_seconds_sum{model_name="m"} 3`,
			`vllm:e2e_request_latency_seconds_count{model_name="m"} 12`),
		with("wrong types", "a counter that is called a histogram and a gauge that is called a counter", says("type"),
			"# TYPE vllm:request_success_total histogram", `vllm:request_success_total{model_name="m",finished_reason="stop"} 4`,
			"# TYPE vllm:num_requests_swapped counter", `vllm:num_requests_swapped{model_name="m"} 4`),
		with("type declared twice", "one family with two TYPE lines", nil,
			"# TYPE vllm:odd counter", odd+"} 1", "# TYPE vllm:odd gauge", odd+"} 2"),
		with("bytes that are no text", "labels with NUL, half of a UTF-8 sequence and control characters", nil,
			"# TYPE vllm:odd gauge", odd+",a=\"\x00\xff\xc3\x1b[31m\"} 1"),
		with("timestamps in the body", "samples with timestamps of tomorrow and of 1970", nil,
			"# TYPE vllm:odd gauge", odd+fmt.Sprintf("} 1 %d", time.Now().Add(24*time.Hour).UnixMilli()), "# TYPE vllm:even gauge", "vllm:even 1 1"),
		{Name: "lines that end with CRLF", What: "every line ends as Windows ends lines", Check: nil, Says: nil, Begin: pages(func(n int64) page {
			return page{body: strings.ReplaceAll(body(1700000000, n), "\n", "\r\n")}
		})},
		{Name: "alternating formats", What: "the text format and OpenMetrics in turns", Check: arrives, Begin: pages(func(n int64) page {
			p := page{body: body(1700000000, n)}
			if n%2 == 0 {
				p.contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"
				p.body = regexp.MustCompile(`(?m)^(# (?:HELP|TYPE) \S+)_total `).ReplaceAllString(p.body, "$1 ") + "# EOF\n"
			}
			return p
		})},
		{Name: "alternating versions", What: "the bodies of vLLM 0.6.6 and 0.24 in turns", Begin: func(w *World) (Given, error) {
			var bodies [2]string
			for i, name := range []string{"v0-0.6.6", "v1-0.24.0"} {
				content, err := os.ReadFile(filepath.Join(w.Testdata, name, "metrics.txt"))
				if err != nil {
					return Given{}, err
				}
				bodies[i] = string(content)
			}
			return pages(func(n int64) page { return page{body: bodies[n%2]} })(w)
		}},
		{Name: "flapping", What: "a good body and 503 in turns", Says: says("503"), Begin: func(w *World) (Given, error) {
			var n atomic.Int64
			return target(w.HTTP(func(rw http.ResponseWriter, _ *http.Request) {
				if n.Add(1)%2 == 0 {
					http.Error(rw, "no", http.StatusServiceUnavailable)
					return
				}
				rw.Header().Set("Content-Type", text)
				_, _ = rw.Write([]byte(body(1700000000, n.Load())))
			}))
		}},
	}
}

// arrives checks that the good part of a page arrives whatever else the page contains.
func arrives(g *Given, s *Sink) error {
	if points := s.Samples(g.Addr, promptTokens); len(points) == 0 {
		return errors.New("the good part of the body did not arrive")
	}
	return nil
}
