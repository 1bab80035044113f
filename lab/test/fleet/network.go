package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// FreeAddress is a loopback address on which nothing listens.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Get reads a page.
func Get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(url + " answers " + response.Status)
	}
	return io.ReadAll(response.Body)
}

var ownLine = regexp.MustCompile(`(?m)^(otelcol_[a-z_]+)(?:\{[^}]*\})? (\S+)$`)

// Own reads what a collector says of itself at an address; the series of one name are added.
func Own(ctx context.Context, address string) (map[string]float64, error) {
	content, err := Get(ctx, "http://"+address+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, found := range ownLine.FindAllSubmatch(content, -1) {
		if v, err := strconv.ParseFloat(string(found[2]), 64); err == nil {
			out[string(found[1])] += v
		}
	}
	return out, nil
}

// Sleep waits, and returns the error of a context that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Wait waits until something is so, at most for a time.
func Wait(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; {
		done, err := ok()
		switch {
		case err != nil:
			return fmt.Errorf("while waiting for %s: %w", what, err)
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("waited %s for %s", limit, what)
		}
		if err := Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("while waiting for %s: %w", what, err)
		}
	}
}

// ReadyLine is what a collector logs when all components have started. It begins to listen for signals after that line:
// until Listening has passed SIGTERM kills it.
const (
	ReadyLine = "Everything is ready. Begin running and processing data."
	Listening = 300 * time.Millisecond
)

// Section is the part of a configuration at a path. It is made where there is none.
func Section(config map[string]any, path ...string) map[string]any {
	for _, key := range path {
		next, _ := config[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			config[key] = next
		}
		config = next
	}
	return config
}
