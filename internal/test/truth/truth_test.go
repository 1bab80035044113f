package truth

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
)

func TestFirst(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		c := &Case{Setup: "plain", Config: vllmsim.Config{Dialect: "v1", Version: "0.20.0", Seed: 1, KVCacheTokens: 40960}, Length: 10 * time.Minute, Every: 15 * time.Second, Unknown: unknown}
		t.Run(c.Name(), func(t *testing.T) {
			o := Play(t, c)
			v := Judge(o)
			t.Log(len(o.Journal), len(o.Scrapes), v.Compared, v.Withheld)
			for _, wrong := range v.Wrong[:min(len(v.Wrong), 40)] {
				assert.Fail(t, wrong)
			}
		})
	}
}
