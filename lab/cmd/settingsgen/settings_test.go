package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

func TestThePageIsCurrent(t *testing.T) {
	want, err := configurationPage(descriptions)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join("..", "..", "..", page))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got), "%s is out of date: run make generate", page)
}

// The collector's own encoder is the oracle: each key that it writes of a default
// configuration is in the table, with the same default.
func TestEveryKeyOfTheDefaultConfigurationsIsInTheTable(t *testing.T) {
	content, err := configurationPage(descriptions)
	require.NoError(t, err)
	sections := strings.Split(string(content), "\n## ")
	require.Len(t, sections, len(components)+1)
	for i, c := range components {
		conf := confmap.New()
		require.NoError(t, conf.Marshal(c.config()))
		keys := 0
		for _, key := range conf.AllKeys() {
			if section, is := conf.Get(key).(map[string]any); is && len(section) == 0 || conf.Get(key) == nil {
				continue // a section without anything set
			}
			if strings.HasPrefix(key, "resource_attributes::") {
				key = "resource_attributes::NAME::enabled"
			}
			// The collector's own documentation has the rest of its HTTP settings.
			top, _, _ := strings.Cut(key, confmap.KeyDelimiter)
			http := c.id == "receiver" && slices.Contains(keysOf(reflect.TypeFor[confighttp.ClientConfig]()), top) ||
				c.id == "fleet" && slices.Contains(append(keysOf(reflect.TypeFor[confighttp.ServerConfig]()), "transport", "dialer"), top)
			if http && !slices.Contains(shown, top) {
				continue
			}
			if _, row := sectionRow(sections[i+1], top); row && c.id == "receiver" {
				key = top
			}
			cells, has := sectionRow(sections[i+1], key)
			if !assert.True(t, has, "%s: %s", c.id, key) {
				continue
			}
			keys++
			if value, is := conf.Get(key).(string); is && value != "" && strings.HasPrefix(cells[0], "`") {
				if d, err := time.ParseDuration(value); err == nil {
					value = duration(d)
				}
				assert.Contains(t, cells[0], "`"+value+"`", "%s: %s", c.id, key)
			}
		}
		assert.Greater(t, keys, 1, c.id)
	}
}

// keysOf returns the settings of a struct.
func keysOf(t reflect.Type) (keys []string) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		keys = append(keys, name)
	}
	return keys
}

// sectionRow returns the other cells of the row of a key.
func sectionRow(section, key string) ([]string, bool) {
	_, rest, found := strings.Cut(section, "\n| `"+key+"` | ")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Split(strings.TrimSuffix(line, " |"), " | "), found
}

type small struct {
	Client  confighttp.ClientConfig            `mapstructure:",squash"`
	Window  time.Duration                      `mapstructure:"window"`
	Storage *component.ID                      `mapstructure:"storage"`
	Pool    configoptional.Optional[smallPool] `mapstructure:"pool"`
	Entries []smallEntry                       `mapstructure:"entries"`
	Metrics map[string]struct {
		Enabled *bool `mapstructure:"enabled"`
	} `mapstructure:"metrics"`
	Hidden int `mapstructure:"-"`
}

type smallPool struct {
	By []string `mapstructure:"by"`
}

type smallEntry struct {
	Client confighttp.ClientConfig            `mapstructure:",squash"`
	Share  float64                            `mapstructure:"share"`
	Pool   configoptional.Optional[smallPool] `mapstructure:"pool"`
}

func TestSettingsOfEveryKind(t *testing.T) {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 90 * time.Minute
	found := map[string]string{}
	for _, s := range settingsOf(&small{
		Client: client, Window: time.Minute, Pool: configoptional.Default(smallPool{By: []string{"a", "b"}}),
	}) {
		found[s.key] = s.value
	}
	for key, want := range map[string]string{
		"timeout": "1h30m", "tls": "", "window": "1m", "storage": "", "pool": "", "pool::by": "[a, b]",
		"entries": "", "entries::N::endpoint": "", "entries::N::share": "", "entries::N::pool": "", "metrics::NAME::enabled": "",
	} {
		value, has := found[key]
		assert.True(t, has, key)
		assert.Equal(t, want, value, key)
	}
	assert.NotContains(t, found, "-")
	assert.NotContains(t, found, "entries::N::tls", "inherited, and documented once")
	assert.NotContains(t, found, "entries::N::pool::by", "the same")
	assert.NotContains(t, found, "tls::insecure")
	assert.NotContains(t, found, "max_idle_conns", "rarely used, and documented by the collector")
}

func TestAMistakeInTheDescriptionsIsAnError(t *testing.T) {
	valid := string(descriptions)
	for name, tc := range map[string]struct{ old, new, want string }{
		"a key without a description": {"  budget_window: {text: The time that an error budget is for.}\n", "", `"budget_window" has no description`},
		"a description without a key": {"  budget_window:", "  budget_windows:", `no setting "budget_windows"`},
		"an unknown component":        {"\nextension:", "\nexporter:", "has no description"},
		"a field that is not parsed":  {"Only pods of this node., default: all}", "Only pods of this node., parsed: true}", "remove parsed"},
		"an entry without a text":     {"{text: Headers of each request.}", "{texts: Headers of each request.}", `"headers" has no text`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, valid, tc.old)
			_, err := configurationPage([]byte(strings.Replace(valid, tc.old, tc.new, 1)))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}
