package extensioncheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

func convert(t *testing.T, text string) error {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	conf := confmap.NewFromStringMap(raw)
	err := NewFactory().Create(confmap.ConverterSettings{}).Convert(t.Context(), conf)
	assert.Equal(t, confmap.NewFromStringMap(raw).ToStringMap(), conf.ToStringMap(), "the configuration is not changed")
	return err
}

const complete = `
extensions: {file_storage/a: {}, bearertokenauth: {}, basicauth/b: {}}
receivers:
  vllm/x:
    auth: {authenticator: bearertokenauth}
    targets:
      - endpoint: http://127.0.0.1:1
      - {endpoint: "http://127.0.0.1:2", auth: {authenticator: basicauth/b}}
  otlp: {protocols: {grpc: {auth: {authenticator: not-ours}}}}
processors:
  vllm: {storage: file_storage/a}
  vllm/unused: {storage: nowhere}
service:
  extensions: [file_storage/a, bearertokenauth, basicauth/b]
  pipelines: {metrics: {receivers: [vllm/x, otlp], processors: [vllm], exporters: [debug]}}
`

func TestAConfigurationWithAllExtensionsPasses(t *testing.T) {
	assert.NoError(t, convert(t, complete))
}

func TestEachMissingExtensionHasASentence(t *testing.T) {
	err := convert(t, `
receivers:
  vllm/x:
    auth: {authenticator: bearertokenauth}
    targets: [{endpoint: "http://127.0.0.1:2", auth: {authenticator: basicauth/b}}]
processors:
  vllm: {storage: file_storage/a}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [vllm/x], processors: [vllm], exporters: [debug]}}
`)
	assert.EqualError(t, err, `receivers::vllm/x::auth::authenticator names the extension "bearertokenauth", which service::extensions does not list; add it there and configure it under extensions
receivers::vllm/x::targets::0::auth::authenticator names the extension "basicauth/b", which service::extensions does not list; add it there and configure it under extensions
processors::vllm::storage names the extension "file_storage/a", which service::extensions does not list; add it there and configure it under extensions`)
}

// The collector reports what the converter cannot read.
func TestAnythingElseIsLeftToTheCollector(t *testing.T) {
	for _, text := range []string{
		"{}", "service: 3", "service: {extensions: {a: b}, pipelines: [1]}",
		"receivers: {vllm: }\nservice: {pipelines: {metrics: {receivers: [vllm]}}}",
		"receivers: {vllm: {auth: 3}}\nprocessors: {vllm: {storage: [1]}}\nservice: {pipelines: {metrics: {receivers: [vllm], processors: [vllm]}}}",
	} {
		assert.NoError(t, convert(t, text), text)
	}
}

// A window of 7 s never has two scrapes that are 15 s apart, not even by the next one: processors
// take two windows at most.
func TestAWindowWithoutTwoScrapesIsReported(t *testing.T) {
	const service = "\nservice: {pipelines: {metrics: {receivers: [vllm/x, vllm/slow], processors: [vllm], exporters: [debug]}}}"
	err := convert(t, "receivers: {vllm/x: {}, vllm/slow: {collection_interval: 1m}, vllm/unused: {collection_interval: 5m}}\nprocessors: {vllm: {window: 7s}}"+service)
	assert.EqualError(t, err, `processors::vllm::window: 7s is less than half the collection_interval of receivers::vllm/slow (1m0s), so nothing would be derived; write at least 2m0s
processors::vllm::window: 7s is less than half the collection_interval of receivers::vllm/x (15s), so nothing would be derived; write at least 30s`)
	for _, window := range []string{"window: 30s", "window: soon", ""} {
		assert.NoError(t, convert(t, "receivers: {vllm/x: {}, vllm/slow: {collection_interval: 1m}}\nprocessors: {vllm: {"+window+"}}"+service), window)
	}
}
