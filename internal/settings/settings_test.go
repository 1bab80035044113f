package settings

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

type part struct {
	Size  int           `mapstructure:"size"`
	Every time.Duration `mapstructure:"every"`
}

type shared struct {
	Limit int `mapstructure:"limit"`
}

type whole struct {
	Shared shared                        `mapstructure:",squash"`
	Dotted part                          `mapstructure:"service.name"`
	List   []part                        `mapstructure:"list"`
	Named  map[string]part               `mapstructure:"named"`
	Maybe  configoptional.Optional[part] `mapstructure:"maybe"`
}

func TestDecodeReadsWhatItCan(t *testing.T) {
	var into whole
	conf := confmap.NewFromStringMap(map[string]any{
		"limt": 1, "limit": 7,
		"service.name": map[string]any{"siez": 1, "size": 2},
		"list":         []any{map[string]any{"size": 3}, map[string]any{"every": "15sec"}},
		"named":        map[string]any{"a.b": map[string]any{"evry": "1s", "size": "many"}},
		"maybe":        map[string]any{"sizes": 1, "size": 4, "every": "1s"},
	})
	var got []string
	for _, mistake := range Decode(conf, &into) {
		got = append(got, mistake.Error())
	}
	assert.ElementsMatch(t, []string{
		"limt: is unknown; did you mean limit or list?",
		"service.name::siez: is unknown; did you mean size?",
		"list::1::every: is not a duration; write a number with its unit, for example 15s",
		"named::a.b::evry: is unknown; did you mean every?",
		"named::a.b::size: expected type 'int', got unconvertible type 'string'",
		"maybe::sizes: is unknown; did you mean size?",
	}, got)
	assert.Equal(t, 7, into.Shared.Limit)
	assert.Equal(t, 2, into.Dotted.Size)
	assert.Equal(t, 3, into.List[0].Size)
	assert.Equal(t, &part{Size: 4, Every: time.Second}, into.Maybe.Get())
	assert.Empty(t, Decode(confmap.NewFromStringMap(map[string]any{"limit": 8}), &into))
}

func TestNearest(t *testing.T) {
	known := []string{"endpoint", "collection_interval", "initial_delay", "max_a", "max_b", "max_c", "max_d"}
	for name, want := range map[string][]string{
		"endpont": {"endpoint"}, "intervall": {"collection_interval"}, "scrape_interval": {"collection_interval"},
		"max_x": {"max_a", "max_b", "max_c"}, "nonsense": {}, "": {},
	} {
		assert.Equal(t, want, Nearest(name, known), name)
	}
	assert.Empty(t, Nearest("a", nil))
	assert.Equal(t, "is unknown; did you mean max_a, max_b or max_c?", Unknown("max_x", known))
	assert.Equal(t, "is unknown; docs/reference/configuration.md has all settings", Unknown("nonsense", known))
	assert.Equal(t, "is not a setting any more: its default always applies; remove it", Unknown("lock_timeout", []string{"check_timeout"}))
	assert.Equal(t, []string{"limit", "list", "maybe", "named", "service.name"}, Keys(reflect.TypeFor[*whole](), "mapstructure"))
	assert.Nil(t, Keys(reflect.TypeFor[int](), "mapstructure"))
}

// client finds no unknown keys, as confighttp.ClientConfig does not, and nothing beside it is read
// while there is a mistake.
type client struct {
	Parts []part          `mapstructure:"parts"`
	Named map[string]part `mapstructure:"names"`
}

func (c *client) Unmarshal(conf *confmap.Conf) error {
	return conf.Unmarshal(c, confmap.WithIgnoreUnused())
}

type withClient struct {
	Client client          `mapstructure:",squash"`
	List   []part          `mapstructure:"list"`
	Texts  []string        `mapstructure:"texts"`
	By     map[string]part `mapstructure:"by"`
	Size   int             `mapstructure:"size"`
}

func TestDecodeFindsAllBesideAPartWithItsOwnUnmarshal(t *testing.T) {
	var into withClient
	conf := confmap.NewFromStringMap(map[string]any{
		"parts": []any{map[string]any{"siez": 1, "size": 2}, map[string]any{"size": "many"}},
		"names": map[string]any{"a.b": map[string]any{"evry": 1}},
		"list":  []any{map[string]any{"size": 3}, "text"},
		"texts": []any{map[string]any{"a": 1}},
		"by":    map[string]any{"c": map[string]any{"size": 4, "evry": 1}},
		"size":  5, "": 6,
	})
	var got []string
	for _, mistake := range Decode(conf, &into) {
		got = append(got, mistake.Error())
	}
	assert.ElementsMatch(t, []string{
		": is unknown; docs/reference/configuration.md has all settings",
		"parts::0::siez: is unknown; did you mean size?",
		"parts::1::size: expected type 'int', got unconvertible type 'string'",
		"names::a.b::evry: is unknown; did you mean every?",
		"list::1: expected a map or struct, got \"string\"",
		"texts::0: expected type 'string', got unconvertible type 'map[string]interface {}'",
		"by::c::evry: is unknown; did you mean every?",
	}, got)
	assert.Equal(t, 5, into.Size)
	assert.Equal(t, map[string]part{"c": {Size: 4}}, into.By)
}

// texts are what a provider of configurations has, by scheme and name.
type texts map[string]string

func (t texts) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	return confmap.NewRetrievedFromYAML([]byte(t[uri]))
}
func (texts) Scheme() string                 { return "text" }
func (texts) Shutdown(context.Context) error { return nil }

func TestAMistakeInASectionOfAVariableIsReportedOnce(t *testing.T) {
	source := texts{"text:all": "maybe: ${text:part}", "text:part": "{size: 1, sizes: 2}"}
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"text:all"},
		ProviderFactories: []confmap.ProviderFactory{confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return source })},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	var into whole
	mistakes := Decode(conf, &into)
	require.Len(t, mistakes, 1)
	assert.EqualError(t, mistakes[0], "maybe::sizes: is unknown; did you mean size?")
}
