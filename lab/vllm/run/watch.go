package run

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
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
	get := func(path string) (int, []byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, http.NoBody)
		if err != nil {
			return 0, nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, nil, err
		}
		return response.StatusCode, body, nil
	}
	var out []Scrape
	for {
		at := time.Since(began)
		one := Scrape{At: at.Seconds()}
		var err error
		if one.Status, one.Body, err = get("/metrics"); err != nil {
			one.Failure = failure(err)
		} else {
			one.Health, _, _ = get("/health")
			if status, body, _ := get("/load"); status == http.StatusOK {
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

// failure names an error as the receiver does.
func failure(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	default:
		return "reset"
	}
}
