package check_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

const text = "text/plain; version=0.0.4; charset=utf-8"

// edited is a healthy server whose body is changed.
func edited(name string, edit func(body string) string, receiver string, want ...string) fault {
	return fault{name, want, func(t world) string {
		s := healthy(t)
		s.edit = func(_ int, body string) string { return edit(body) }
		return configuration(t, receiver+"endpoint: "+serve(t, s), "")
	}}
}

// without removes a family from a body.
func without(body, family string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		rest := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if !strings.HasPrefix(rest, family) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func adding(lines string) func(string) string {
	return func(body string) string { return body + lines }
}

func bodyFaults() []fault {
	page := func(name, contentType, body, want string) fault {
		return fault{name, []string{want}, func(t world) string {
			return configuration(t, "endpoint: "+answers(t, http.StatusOK, contentType, body), "")
		}}
	}
	return []fault{
		page("empty body", text, "", check.CodeEmpty),
		page("families without samples", text, "# HELP a A.\n# TYPE a gauge\n", check.CodeNotVLLM),
		page("comments only", text, "# no metrics here\n", check.CodeEmpty),
		page("HTML", "text/html", "<!DOCTYPE html><html></html>", check.CodeHTML),
		page("HTML as text", text, "<html><body>sign in</body></html>", check.CodeHTML),
		page("JSON", "application/json", `{"status":"ok"}`, check.CodeNotText),
		page("noise", text, strings.Repeat("\x01\x02 noise\n", 100), check.CodeNotText),
		{"gzip by name only", []string{check.CodeGzip}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write([]byte(strings.Repeat("a 1\n", 100)))
			})), "")
		}},
		{"noise in gzip", []string{check.CodeNotText}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "GZIP")
				zip := gzip.NewWriter(w)
				_, _ = io.WriteString(zip, strings.Repeat("\x01\x02 noise\n", 100))
				_ = zip.Close()
			})), "")
		}},
		{"another compression", []string{check.CodeGzip}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				_, _ = w.Write([]byte("a 1\n"))
			})), "")
		}},
		{"not HTTP", []string{check.CodeNotText}, func(t world) string {
			return configuration(t, "endpoint: "+raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 mail ESMTP\r\n") }), "")
		}},
		{"endless headers", []string{check.CodeHeaders}, func(t world) string {
			return configuration(t, "endpoint: "+raw(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
				for {
					if _, err := io.WriteString(c, "X-Header: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
						return
					}
				}
			}), "")
		}},
		{"endless body", []string{check.CodeTooLarge}, func(t world) string {
			chunk := bytes.Repeat([]byte("vllm:a{b=\"c\"} 1\n"), 4096)
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			})), "")
		}},
		{"body near its limit", []string{check.CodeNearLimit}, func(t world) string {
			s := healthy(t)
			return configuration(t, fmt.Sprintf("limits: {body_size: %d}, endpoint: %s", len(s.bodies[0])*5/4, serve(t, s)), "")
		}},
		{"cut body", []string{check.CodeCut}, func(t world) string {
			s := healthy(t)
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/metrics" {
					s.ServeHTTP(w, r)
					return
				}
				body := s.body()
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n%s", text, body[:len(body)-3])
				_ = c.Close()
			})), "")
		}},
		edited("a line that is none", adding("vllm:bad{ 1\n"), "", check.CodeBadLines),
		edited("a name that is too long", adding(strings.Repeat("n", 600)+" 1\n"), "", check.CodeBadLines),
		edited("a series twice", func(body string) string {
			return strings.Replace(body, "vllm:num_requests_running{", "vllm:num_requests_running{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"} 1\nvllm:num_requests_running{", 1)
		}, "", check.CodeDuplicates),
		edited("buckets that fall", adding("# TYPE vllm:request_odd histogram\nvllm:request_odd_bucket{le=\"1\"} 5\nvllm:request_odd_bucket{le=\"+Inf\"} 3\nvllm:request_odd_sum 1\nvllm:request_odd_count 3\n"),
			"", check.CodeInconsistent, check.CodeUnknownFamily),
		edited("a counter below zero", func(body string) string {
			return regexp.MustCompile(`(?m)^(vllm:num_preemptions_total\{.*\}) .*$`).ReplaceAllString(body, "$1 -7")
		}, "", check.CodeInconsistent, check.CodeMissingIdle),
		edited("a share of 97", func(body string) string {
			return regexp.MustCompile(`(?m)^(vllm:kv_cache_usage_perc\{.*\}) .*$`).ReplaceAllString(body, "$1 97")
		}, "", check.CodeImpossible),
		edited("-3 running requests", func(body string) string {
			return regexp.MustCompile(`(?m)^(vllm:num_requests_running\{.*\}) .*$`).ReplaceAllString(body, "$1 -3")
		}, "", check.CodeImpossible),
		edited("a gauge that is a counter", func(body string) string {
			return strings.Replace(body, "# TYPE vllm:num_requests_waiting gauge", "# TYPE vllm:num_requests_waiting counter", 1)
		}, "", check.CodeConflict),
	}
}
