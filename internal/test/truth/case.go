package truth

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
)

// Case is one server under load.
type Case struct {
	Setup *Setup
	// Config is that of the server.
	Config vllmsim.Config
	// Length is how long it is observed, Every the time between two scrapes.
	Length, Every time.Duration
	// Unknown sends vLLM's own names and no version, as a receiver that is not ours.
	Unknown bool
}

// Name is unique among the cases.
func (c *Case) Name() string {
	name := c.Setup.Name + "/" + c.Config.Dialect + "/" + c.Config.Version
	if c.Unknown {
		name += "/unknown"
	}
	return name
}

// before reports whether the server is older than a release.
func (c *Case) before(release string) bool {
	mine, _ := catalog.ParseRelease(c.Config.Version)
	other, _ := catalog.ParseRelease(release)
	return mine.Compare(other) < 0
}

// engines is the number of engines.
func (c *Case) engines() int { return max(1, c.Config.Engines) }
