package settings

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	assert.Equal(t, "is no setting any more, its default always holds; remove it", Unknown("lock_timeout", []string{"check_timeout"}))
	assert.Equal(t, []string{"limit", "list", "maybe", "named", "service.name"}, Keys(reflect.TypeFor[*whole](), "mapstructure"))
	assert.Nil(t, Keys(reflect.TypeFor[int](), "mapstructure"))
}
