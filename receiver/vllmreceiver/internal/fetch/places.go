package fetch

import "context"

// smallBody is how many bytes of an answer are read without a place: ten times the
// body of a server with one engine.
const smallBody = 1 << 20

// IsLarge reports whether a body of this size needs a place.
func IsLarge(size int) bool { return size >= smallBody }

// Places limits how many large answers of all targets are in memory at a time.
// Answers of less than a megabyte need no place, so large ones do not delay them.
type Places chan struct{}

// NewPlaces returns n places.
func NewPlaces(n int) Places { return make(Places, n) }

// take waits for a place. The caller frees it with release.
func (p Places) take(ctx context.Context) (release func(), err *Error) {
	if p == nil {
		return func() {}, nil
	}
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, newError(OutcomeTooLarge, ctx.Err(),
			"the body is larger than 1 MiB and had to wait: at the timeout, %d other large bodies were still being read; "+
				"find the targets that send large answers slowly, and lower limits::body_size to refuse them", cap(p))
	}
}
