package discover

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMistakesAreReportedWithTheirKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ section, want string }{
		"nothing":                  {`{}`, "has no mechanism"},
		"only rules":               {`relabel_configs: [{action: drop, source_labels: [a], regex: b}]`, "has no mechanism"},
		"a mechanism of a cloud":   {`ec2_sd_configs: [{}]`, "ec2_sd_configs: is unknown; known are dns_sd_configs, file_sd_configs, http_sd_configs, inference_pool, kubernetes, kubernetes_sd_configs, relabel_configs, static_configs"},
		"an unknown role":          {`kubernetes_sd_configs: [{role: pod}, {role: pods}]`, `kubernetes_sd_configs::1: unknown Kubernetes SD role "pods"; write pod, or endpoints, endpointslice, ingress, node or service`},
		"an unknown setting":       {`kubernetes_sd_configs: [{role: pod, rol: a}]`, "kubernetes_sd_configs::0: the setting rol is unknown"},
		"a selector":               {`kubernetes: {selector: "a in b"}`, "kubernetes::selector: is not a label selector"},
		"no selector":              {`kubernetes: {port: 1}`, "kubernetes::selector: is missing"},
		"an empty node":            {`kubernetes: {selector: a=b, node: }`, "kubernetes::node: is empty; is the environment variable"},
		"an empty namespace":       {`kubernetes: {selector: a=b, namespaces: [""]}`, "kubernetes::namespaces::0: is empty"},
		"a port":                   {`kubernetes: {selector: a=b, port: 99999}`, "kubernetes::port: 99999 is not a port"},
		"a scheme":                 {`kubernetes: {selector: a=b, scheme: tcp}`, `kubernetes::scheme: "tcp" is unknown`},
		"a path":                   {`kubernetes: {selector: a=b, path: m}`, `kubernetes::path: "m" does not begin with /`},
		"an API server":            {`kubernetes: {selector: a=b, api_server: "10.0.0.1"}`, "kubernetes::api_server: is not a URL"},
		"two ways to the API":      {`kubernetes: {selector: a=b, api_server: "http://a", kubeconfig_file: doc.go}`, "kubernetes::api_server: set either"},
		"an unknown short setting": {`kubernetes: {selector: a=b, label: c}`, "kubernetes: the setting label is unknown; docs/reference/configuration.md has all settings"},
		"a slip in a short one":    {`kubernetes: {selektor: a=b}`, "kubernetes: the setting selektor is unknown; did you mean selector?"},
		"a slip in a mechanism":    {`kubernetes_sd_configs: [{role: pod, selector: []}]`, "kubernetes_sd_configs::0: the setting selector is unknown; did you mean selectors?"},
		"a pool without a name":    {`inference_pool: {namespace: a}`, "inference_pool::name: is missing"},
		"a pool without namespace": {`inference_pool: {name: a}`, "inference_pool::namespace: is missing"},
		"a regular expression":     {`relabel_configs: [{regex: "("}]`, "relabel_configs::0: error parsing regexp"},
		"a rule without a target":  {`{static_configs: [{targets: [a]}], relabel_configs: [{source_labels: [a]}]}`, "relabel_configs::0: relabel configuration for replace action requires 'target_label'"},
		"an empty list item":       {`static_configs: [null]`, "static_configs::0: empty or null section"},
		"names of DNS":             {`dns_sd_configs: [{type: A, names: [a]}]`, "dns_sd_configs::0: a port is required"},
		"files":                    {`file_sd_configs: [{files: [a.txt]}]`, "file_sd_configs::0: path name \"a.txt\" is not valid"},
		"a URL":                    {`http_sd_configs: [{url: "a"}]`, "http_sd_configs::0: "},
		"a time":                   {`file_sd_configs: [{files: [a.json], refresh_interval: 15sec}]`, `unknown unit "sec" in duration "15sec"; write a number with its unit, for example 15s`},
		"no list":                  {`static_configs: 7`, "static_configs: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, mistakes := Parse(section(t, c.section))
			require.Len(t, mistakes, 1)
			assert.Contains(t, mistakes[0].Error(), c.want)
			assert.NotContains(t, mistakes[0].Error(), "line ")
		})
	}
}

func TestTheBoundsOfAPort(t *testing.T) {
	t.Parallel()
	for port, mistakes := range map[string]int{"-1": 1, "0": 0, "1": 0, "65535": 0, "65536": 1} {
		_, got := Parse(section(t, "kubernetes: {selector: a=b, port: "+port+"}"))
		assert.Len(t, got, mistakes, port)
	}
}

// What two mechanisms need is asked for once, and what only one of them needs as well.
func TestEachPermissionIsNeededOnce(t *testing.T) {
	t.Parallel()
	settings := parse(t, "kubernetes_sd_configs: [{role: pod}, {role: service}, {role: pod, namespaces: {names: [a]}}, {role: service}]")
	var got []string
	for _, p := range settings.Permissions() {
		got = append(got, p.Resource+" "+p.Namespace)
	}
	assert.ElementsMatch(t, []string{"pods ", "services ", "pods a"}, got)
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, mistakes := Parse(section(t, `{kubernetes: {node: "", port: -1}, inference_pool: {}}`))
	assert.Len(t, mistakes, 5)
}
