package fetch

import "context"

// smallBody is how much of an answer is read without a place: ten times the body of
// a server with one engine.
const smallBody = 1 << 20

// IsLarge reports whether a body of this size has a place.
func IsLarge(size int) bool { return size >= smallBody }

// Places bounds how many large answers are held at a time, of all targets together.
// Answers of less than a megabyte need none, so that large ones do not delay them.
type Places chan struct{}

// NewPlaces returns n places.
func NewPlaces(n int) Places { return make(Places, n) }

// take waits for a place and returns how to give it back.
func (p Places) take(ctx context.Context) (release func(), err *Error) {
	if p == nil {
		return func() {}, nil
	}
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		return nil, newError(OutcomeTooLarge, ctx.Err(),
			"the body is larger than 1 MiB, and as many of that size as are read at a time kept their places until the timeout; "+
				"look for the targets that drip large answers, and lower limits::body_size so that they are refused")
	}
}
