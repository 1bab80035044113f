package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
)

// answerFaults are answers that are not 200 with metrics.
func answerFaults() []Fault {
	status := func(code int, pattern string) Fault {
		return Fault{
			Name: fmt.Sprintf("status %d", code), What: http.StatusText(code), Says: says(pattern),
			Begin: served(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "no", code) }),
		}
	}
	page := func(name, what, contentType, content string, pattern *regexp.Regexp) Fault {
		return Fault{Name: name, What: what, Says: pattern, Begin: served(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", contentType)
			_, _ = rw.Write([]byte(content))
		})}
	}
	to := func(name, what, pattern, location string) Fault {
		return Fault{Name: name, What: what, Says: says(pattern), Begin: served(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Location", location)
			rw.WriteHeader(http.StatusFound)
		})}
	}
	noise := make([]byte, 100_000)
	source := rand.New(rand.NewPCG(9, 9))
	for i := range noise {
		noise[i] = byte(source.Uint32())
	}
	var flips atomic.Int64
	return []Fault{
		status(http.StatusUnauthorized, "401 Unauthorized"),
		status(http.StatusForbidden, "403 Forbidden"),
		status(http.StatusNotFound, "404 Not Found"),
		status(http.StatusTooManyRequests, "429 Too Many Requests"),
		status(http.StatusInternalServerError, "500 Internal Server Error"),
		status(http.StatusServiceUnavailable, "503 Service Unavailable"),
		{Name: "refusals in turns", What: "401, 404 and 500 in turns", Says: says("401|404|500"), Begin: served(func(rw http.ResponseWriter, _ *http.Request) {
			codes := []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusInternalServerError}
			http.Error(rw, "no", codes[flips.Add(1)%3])
		})},
		page("HTML", "a page of a web server with status 200", "text/html", "<!DOCTYPE html><html><body>It works.</body></html>", says("HTML|not .*metrics|Prometheus")),
		page("JSON", "JSON with status 200", "application/json", `{"status":"ok"}`, says("JSON|not .*metrics|Prometheus")),
		page("binary noise", "100 KB of random bytes as text", text, string(noise), says("not .*metrics|Prometheus|line")),
		page("empty body", "status 200 and nothing", text, "", says("empty|no metrics")),
		page("another program", "metrics, but none of vLLM or a gateway", text, "# TYPE node_load1 gauge\nnode_load1 1\n", says("vLLM")),
		to("redirect loop", "every answer redirects to the same address", "redirects more than|redirect", "/metrics"),
		to("redirect to another host", "an address of another network", "another host", "http://192.0.2.1/metrics"),
		to("redirect to a file", "file:///etc/passwd", "redirect|address", "file:///etc/passwd"),
		{Name: "switching protocols", What: "101, which was not asked for", Says: says("101|malformed|protocol"), Begin: raw(
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")},
		{Name: "not HTTP", What: "a greeting of another protocol", Says: says("malformed|HTTP"), Begin: raw("220 mail.example.com ESMTP\r\n")},
		{Name: "interim answers", What: "103 Early Hints without end", Says: says("1xx|malformed|interim|HTTP|timeout"), Begin: raw(
			strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000))},
	}
}

// served is a target behind a handler, which answers whatever path is asked for.
func served(h http.HandlerFunc) func(*World) (Given, error) {
	return func(w *World) (Given, error) { return target(w.HTTP(h)) }
}
