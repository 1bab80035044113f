// Package ending gives the end of a component a bound. The service sets none: an exporter without a
// timeout would hold a collector that is to stop.
package ending

import (
	"context"
	"time"
)

// Wait is how long what still has to be sent may take, and then how long a component that does not
// heed its context is waited for.
const Wait = 5 * time.Second

// Within does the work of an end with a context of Wait, and returns its error. ended is false where the
// work goes on after twice this time.
func Within(ctx context.Context, work func(context.Context) error) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, Wait)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- work(ctx)
	}()
	select {
	case err := <-done:
		return true, err
	case <-time.After(2 * Wait):
		return false, nil
	}
}
