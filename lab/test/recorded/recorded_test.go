// Package recorded records what simulated servers answer, for the tests of components.
package recorded

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

var update = flag.Bool("update", false, "write the recorded answers")

// server is a simulated server: it works for some time before n answers are recorded.
type server struct {
	vllmsim.Config
	before time.Duration
	n      int
}

var servers = map[string]server{
	"the newest with everything": {vllmsim.Config{Dialect: "v1", Version: "0.28.0", Engines: 2, SpecDecode: true, FlopsCounters: true, LoRA: true}, 0, 9},
	"two engines":                {vllmsim.Config{Dialect: "v1", Version: "0.20.0", Engines: 2}, 0, 9},
	"the first V1":               {vllmsim.Config{Dialect: "v1", Version: "0.8.5"}, 0, 9},
	"a cache that counts tokens": {vllmsim.Config{Dialect: "v1", Version: "0.9.1"}, 0, 9},
	"old names with new ones":    {vllmsim.Config{Dialect: "v1", Version: "0.11.0", Engines: 2}, 0, 9},
	"a gauge of each process":    {vllmsim.Config{Dialect: "v1-multiproc", Version: "0.10.2", Engines: 2, APIServers: 1}, 0, 9},
	"several processes":          {vllmsim.Config{Dialect: "v1-multiproc", Version: "0.24.0", Engines: 2, APIServers: 3}, 0, 9},
	"the V0 engine":              {vllmsim.Config{Dialect: "v0", Version: "0.6.6"}, 0, 9},
	"an old Ray":                 {vllmsim.Config{Dialect: "ray-old", Version: "0.6.3"}, 0, 9},
	"a Ray with two engines":     {vllmsim.Config{Dialect: "ray-new", Version: "0.20.0", Engines: 2}, 0, 9},
	"engines that preempt":       {vllmsim.Config{Dialect: "v1", Version: "0.20.0", Engines: 2, KVCacheTokens: 16384, Rate: 3}, 0, 9},
	"a Ray that preempts":        {vllmsim.Config{Dialect: "ray-new", Version: "0.20.0", KVCacheTokens: 12288, Rate: 8}, 0, 9},
	"the Rust front end":         {vllmsim.Config{Dialect: "rust", Version: "0.24.0", Engines: 2}, 0, 9},

	// Busy for ten minutes; no connector and no images.
	"plain":                  {vllmsim.Config{Version: "0.24.0", Seed: 1}, 10*time.Minute - recorded.Interval, 12},
	"plain with all":         {vllmsim.Config{Version: "0.24.0", Seed: 1, SpecDecode: true, FlopsCounters: true}, 10*time.Minute - recorded.Interval, 12},
	"eight engines":          {vllmsim.Config{Version: "0.24.0", Seed: 1, Engines: 8}, 10*time.Minute - recorded.Interval, 12},
	"eight engines with all": {vllmsim.Config{Version: "0.24.0", Seed: 1, Engines: 8, SpecDecode: true, FlopsCounters: true}, 10*time.Minute - recorded.Interval, 12},
}

// The simulator gives the same for the same seed. Where it was changed, -update records it again.
func TestTheRecordedAnswersAreThoseOfTheSimulator(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, err := vllmsim.New(s.Config)
			require.NoError(t, err)
			sim.Advance(s.before)
			var all []recorded.Answer
			for i := range s.n {
				sim.Advance(recorded.Interval)
				body, contentType, err := sim.Targets()[0].Body()
				require.NoError(t, err)
				all = append(all, recorded.Answer{At: recorded.Begin.Add(time.Duration(i+1) * recorded.Interval), Body: string(body), ContentType: contentType, Version: s.Version})
			}
			if *update {
				var file bytes.Buffer
				require.NoError(t, recorded.Write(&file, all))
				require.NoError(t, os.WriteFile(recorded.File(t, name), file.Bytes(), 0o644))
			}
			assert.True(t, assert.ObjectsAreEqual(all, recorded.Answers(t, name)), "go test ./lab/test/recorded -update records them again")
		})
	}
}
