package vllmreceiver

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

func TestTwoTargetsOfOneInstanceAreAMistake(t *testing.T) {
	for name, c := range map[string]struct{ second, want string }{
		"the same": {`{service.instance.id: prod}`, "targets::1::endpoint: the same service.instance.id as targets::0; " +
			"remove one, or give it its own resource_attributes::service.instance.id"},
		"more attributes": {`{service.instance.id: prod, rack: 7}`, "targets::0"},
		"its address":     {`{}`, ""},
		"another":         {`{service.instance.id: prod-2}`, ""},
		"another service": {`{service.instance.id: prod, service.name: chat}`, ""},
		"another cluster": {`{service.instance.id: prod, k8s.cluster.name: b}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := decode(t, `
targets:
  - {endpoint: "http://a:8000", resource_attributes: {service.instance.id: prod}}
  - {endpoint: "http://b:8000", resource_attributes: `+c.second+`}
`)
			require.NoError(t, err)
			err = confmap.Validate(cfg)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
	cfg, err := decode(t, `{targets: [{endpoint: "http://a:8000"}, {endpoint: "http://b:8000", resource_attributes: {service.instance.id: "a:8000"}}]}`)
	require.NoError(t, err)
	require.Error(t, confmap.Validate(cfg), "the address of another")
}

// Discovered targets with one label instance stay apart, also where the second comes later and where one is configured.
func TestDiscoveredTargetsOfOneInstanceStayApart(t *testing.T) {
	t.Parallel()
	var hosts []string
	for range 4 {
		server := httptest.NewServer(http.HandlerFunc(quick))
		t.Cleanup(server.Close)
		hosts = append(hosts, strings.TrimPrefix(server.URL, "http://"))
	}
	list := filepath.Join(t.TempDir(), "list.yaml")
	require.NoError(t, os.WriteFile(list, []byte(`[{targets: ["`+hosts[0]+`"], labels: {instance: prod}}]`), 0o600))
	sink := new(consumertest.MetricsSink)
	r, logs := startWith(t, sink, `
targets: [{endpoint: "http://`+hosts[3]+`", resource_attributes: {service.instance.id: fixed}}]
discovery:
  file_sd_configs: [{files: ["`+list+`"], refresh_interval: 200ms}]
`)
	instances := func() map[string]string {
		out := map[string]string{}
		for _, m := range sink.AllMetrics() {
			for _, rm := range m.ResourceMetrics().All() {
				raw := rm.Resource().Attributes().AsRaw()
				address := net.JoinHostPort(raw["server.address"].(string), strconv.FormatInt(raw["server.port"].(int64), 10))
				out[address] = raw["service.instance.id"].(string)
			}
		}
		return out
	}
	assert.Eventually(t, func() bool { return instances()[hosts[0]] == "prod" }, within, 5*time.Millisecond)
	require.NoError(t, os.WriteFile(list, []byte(`[{targets: ["`+hosts[0]+`", "`+hosts[1]+`"], labels: {instance: prod}},
  {targets: ["`+hosts[2]+`"], labels: {instance: fixed}}]`), 0o600))
	want := map[string]string{hosts[0]: hosts[0], hosts[1]: hosts[1], hosts[2]: hosts[2], hosts[3]: "fixed"}
	assert.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, instances()) }, within, 5*time.Millisecond)
	assert.Equal(t, want, instances())
	assert.EqualValues(t, 4, r.targets.Load())
	assert.Equal(t, 1, logs.FilterMessageSnippet("Several targets have the same service.instance.id").Len())
}
