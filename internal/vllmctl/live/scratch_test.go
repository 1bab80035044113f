package live

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
)

func TestScratch(t *testing.T) {
	sc, err := scenario.Load("../../../examples/scenarios/one-minute.yaml")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hosts := network.New()
		cfg := sc.Config
		cfg.Clock, cfg.Start = time.Now, began
		cfg.Engines = 2
		sim, err := vllmsim.New(cfg)
		require.NoError(t, err)
		hosts.Put("a:8000", sim.Targets()[0])
		client := confighttp.NewDefaultClientConfig()
		client.Timeout = 5 * time.Second
		client.Middlewares = []configmiddleware.Config{{ID: network.ID}}
		plan, err := OfAddresses([]string{"http://a:8000", "http://gone:8000"}, &client, Times{})
		require.NoError(t, err)
		s := NewSession(plan, NewLog())
		require.NoError(t, s.Start(t.Context(), hosts))
		for i := range 50 {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			table := s.Table(true)
			fmt.Println(i, table.Servers, table.Failing, table.Conditions, table.Reads)
			for _, r := range table.Rows {
				fmt.Printf("   %s|%s|%s %s sev=%d since=%v %q %v\n      %v\n     %q %v %v\n", r.Address, r.Model, r.Engine, r.Verdict.String(), r.Severity, r.Since.Sub(began), r.Unread, r.Values, r.Details.Quantiles, r.Details.Sentence, r.Evidence(), r.Details.Defects)
			}
		}
		require.NoError(t, s.Shutdown(t.Context()))
		for _, l := range s.Log() {
			fmt.Println(l.At.Sub(began), l.Level, l.Message)
		}
	})
}
