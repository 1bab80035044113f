package normalize

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Families that differ in case become one metric, which has one kind and no series twice.
func TestUnknownFamiliesThatDifferInCaseAreOneMetric(t *testing.T) {
	const labels = `{gpu="0",UUID="a"} `
	const on = "vllm.accelerator.dcgm.fi_dev_new"
	options := Options{Enabled: map[string]bool{on: true, workloadsMetric: false}}
	for kind, want := range map[string]struct {
		conflicts int
		dropped   Reason
	}{"gauge": {1, ReasonTypeConflict}, "counter": {0, ReasonDuplicate}} {
		body := "# TYPE DCGM_FI_DEV_new counter\nDCGM_FI_DEV_new" + labels + "1\n# TYPE DCGM_FI_DEV_NEW " + kind + "\nDCGM_FI_DEV_NEW" + labels + "2\n"
		assert.Equal(t, []string{"-: " + on + " sum  {hw.id=a,hw.name=gpu0} = 1"}, allOf(t, body, options), kind)
		plan := planOf(body, options)
		assert.Len(t, plan.Conflicts, want.conflicts, kind)
		assert.Equal(t, 1, plan.Dropped[want.dropped], kind)
	}
}
