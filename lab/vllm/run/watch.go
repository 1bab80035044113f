package run

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Every is the time between two looks.
const Every = 5 * time.Second

// Watch looks at a server until ctx ends, and returns what it showed. The looks are at
// whole multiples of Every after the beginning; one that takes longer delays the next.
func Watch(ctx context.Context, url string, began time.Time) []Scrape {
	// A connection for each request: a server that was stopped and started is seen at once.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	client := &http.Client{Transport: transport, Timeout: Every}
	get := func(path string) (int, []byte) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, http.NoBody)
		if err != nil {
			return 0, nil
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, nil
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, nil
		}
		return response.StatusCode, body
	}
	var out []Scrape
	for {
		at := time.Since(began)
		one := Scrape{At: at.Seconds()}
		one.Status, one.Body = get("/metrics")
		if one.Status != 0 {
			one.Health, _ = get("/health")
			if status, body := get("/load"); status == http.StatusOK {
				one.Load = strings.TrimSpace(string(body))
			}
		}
		if ctx.Err() == nil {
			out = append(out, one)
		}
		next := (time.Since(began)/Every + 1) * Every
		select {
		case <-ctx.Done():
			return out
		case <-time.After(time.Until(began.Add(next))):
		}
	}
}
