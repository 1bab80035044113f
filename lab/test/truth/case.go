package truth

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// Case is one server under load.
type Case struct {
	Setup *Setup
	// Config is that of the server.
	Config vllmsim.Config
	// Length is how long it is observed, Every the time between two scrapes.
	Length, Every time.Duration
	// NoBlocks does not take the capacity from blocks.
	NoBlocks bool
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

// engines is the number of engines, with those that are added.
func (c *Case) engines() int {
	n := max(1, c.Config.Engines)
	for _, ch := range c.Config.Changes {
		if ch.Parameter == engine.ParamScaleUp {
			n += int(ch.Value)
		}
	}
	return n
}

// shows reports whether the server has a defect of its version.
func (c *Case) shows(id catalog.DefectID) bool {
	version, err := surface.ParseVersion(c.Config.Version)
	return err == nil && surface.Shows(c.dialect(), version, id)
}

// merged reports whether all engines are counted under the last one, as the decision about
// ray-last-engine says.
func (c *Case) merged() bool {
	return (c.dialect() == surface.RayNew || c.dialect() == surface.RayOld) && c.engines() > 1 && c.shows(catalog.DefectRayLastEngine)
}

func (c *Case) dialect() surface.Dialect { return surface.Dialect(c.Config.Dialect) }

// python reports whether the server is of the V1 engine with its own front end.
func (c *Case) python() bool {
	return c.dialect() != surface.Rust && c.dialect() != surface.V0 && c.dialect() != surface.RayOld
}
