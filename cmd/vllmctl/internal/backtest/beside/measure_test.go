package beside

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

var measured = flag.String("history", "", "write a day of ten servers for measurements into this folder, and do nothing else")

// The history that the speed is measured with: ten targets, of which two are simulated and
// the others show the same numbers under their own names.
func TestRecordADayOfTenServers(t *testing.T) {
	if *measured == "" {
		t.Skip("only with -history")
	}
	story := &Story{Begin: time.Now().UTC().Add(-27 * time.Hour).Truncate(2 * time.Hour), Length: 26 * time.Hour, Every: 15 * time.Second}
	for i, name := range []string{"slow-steps", "stalled"} {
		loaded, err := scenario.Load("../../../../../examples/scenarios/" + name + ".yaml")
		require.NoError(t, err)
		s := Server{Config: loaded.Config}
		s.Config.Engines, s.Config.Seed = 1, uint64(i+1)
		for j := range 5 {
			target := map[string]string{"job": "vllm", "instance": fmt.Sprintf("%s-%d:8000", name, j), "namespace": "chat", "pod": fmt.Sprintf("%s-%d", name, j)}
			if j == 0 {
				s.Labels = target
			} else {
				s.Copies = append(s.Copies, target)
			}
		}
		story.Servers = append(story.Servers, s)
	}
	Persist(t, Record(t, *measured, story))
	t.Log("from", story.Begin.Add(2*time.Hour).Format(time.RFC3339), "to", story.Begin.Add(story.Length).Format(time.RFC3339))
}
