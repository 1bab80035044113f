package vllmsim

import "github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"

// Send lets a request of this program arrive now, without a connection. Its number is the one
// that Config.Truth and Config.Tokens have. A server that does not answer takes none: ok is
// false then.
func (t *Target) Send(q engine.Request) (id int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.advance(); err != nil || t.away {
		return 0, false
	}
	return t.firstID + t.engine.Send(q), true
}

// Cancel lets the client of a request leave now. One that has ended, or whose process has, is
// no error.
func (t *Target) Cancel(id int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.advance() == nil && !t.away {
		t.engine.Cancel(id - t.firstID)
	}
}

// HoldFrontEnd stops the API servers from now on for some seconds, while the engines go on.
func (t *Target) HoldFrontEnd(seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.advance() == nil && !t.away {
		t.engine.HoldFrontEnd(t.engine.Now() + seconds)
	}
}

// CatchUp lets the engines work up to the present, and so calls what Config has for what
// happens on the way.
func (t *Target) CatchUp() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.advance()
}
