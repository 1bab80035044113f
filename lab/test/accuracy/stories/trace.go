package stories

import (
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/traffic"
)

// traces are the files that were read, which many stories share.
var traces sync.Map

type once struct {
	sync.Once
	traffic *engine.Traffic
	err     error
}

// read reads a trace, once.
func read(path string) (*engine.Traffic, error) {
	entry, _ := traces.LoadOrStore(path, new(once))
	o := entry.(*once)
	o.Do(func() { o.traffic, o.err = traffic.Read(path) })
	return o.traffic, o.err
}
