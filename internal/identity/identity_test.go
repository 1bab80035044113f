package identity

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func of(t *testing.T, attributes map[string]any) string {
	t.Helper()
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(attributes))
	return Of(m)
}

func TestOfIsTheInstanceWhereItIsNamed(t *testing.T) {
	a := of(t, map[string]any{"service.instance.id": "a", "service.version": "1"})
	assert.Equal(t, a, of(t, map[string]any{"service.instance.id": "a", "service.version": "2"}))
	assert.NotEqual(t, a, of(t, map[string]any{"service.instance.id": "b", "service.version": "1"}))
	assert.NotEqual(t, a, of(t, map[string]any{"service.instance.id": "a", "k8s.pod.uid": "u"}))
}

func TestOfIsAllAttributesElse(t *testing.T) {
	a := of(t, map[string]any{"host": "a", "rack": "1"})
	assert.NotEqual(t, a, of(t, map[string]any{"host": "a", "rack": "2"}))
	assert.NotEqual(t, a, of(t, map[string]any{"host": "a"}))
	assert.NotEqual(t, a, of(t, map[string]any{"service.instance.id": "", "host": "a", "rack": "1"}))
}

func TestOfDoesNotFollowADiagnosis(t *testing.T) {
	assert.Equal(t, of(t, map[string]any{"host": "a"}), of(t, map[string]any{"host": "a", "vllm.diagnosis.condition": "degraded"}))
}

// Production and test often give the same name to an instance.
func TestNamespacesBelongToAnInstance(t *testing.T) {
	named := func(more map[string]any) string {
		all := map[string]any{"service.name": "vllm", "service.instance.id": "a"}
		maps.Copy(all, more)
		return of(t, all)
	}
	keys := map[string]string{"none": named(nil)}
	for _, name := range []string{"service.namespace", "k8s.cluster.name", "k8s.namespace.name"} {
		assert.Equal(t, keys["none"], named(map[string]any{name: ""}), "%s is empty", name)
		for _, value := range []string{"prod", "test"} {
			key := named(map[string]any{name: value})
			assert.NotContains(t, keys, key)
			for other, known := range keys {
				assert.NotEqual(t, known, key, "%s=%s and %s", name, value, other)
			}
			keys[name+"="+value] = key
		}
	}
}

// A sender decides how many attributes a resource has and how long they are.
func TestAKeyIsShortAndStillDiffers(t *testing.T) {
	many := func(last string) map[string]any {
		all := map[string]any{"zz": last}
		for i := range 100_000 {
			all[fmt.Sprint("attribute", i)] = i
		}
		return all
	}
	long := strings.Repeat("x", 4<<20)
	for name, two := range map[string][2]map[string]any{
		"many attributes": {many("a"), many("b")},
		"a long value":    {{"host": long + "a"}, {"host": long + "b"}},
		"a long name":     {{long + "a": 1}, {long + "b": 1}},
		"a long instance": {{"service.instance.id": long + "a"}, {"service.instance.id": long + "b"}},
		"a long space":    {{"service.instance.id": "i", "service.namespace": long + "a"}, {"service.instance.id": "i", "service.namespace": long + "b"}},
	} {
		a, b := of(t, two[0]), of(t, two[1])
		assert.NotEqual(t, a, b, name)
		assert.Equal(t, a, of(t, two[0]), name)
		assert.LessOrEqual(t, len(a), 1<<10, name)
	}
}

// Keys are stored, so their form must not change.
func TestTheFormOfAKey(t *testing.T) {
	assert.Equal(t, "\x01host\x00a\x00rack\x001\x00", of(t, map[string]any{"rack": 1, "host": "a"}))
	long := map[string]any{"service.instance.id": strings.Repeat("a", 1021)}
	assert.Len(t, of(t, long), 1024)
	long["service.name"] = "s"
	hash := sha256.Sum256([]byte("s\x00" + strings.Repeat("a", 1021) + "\x00\x00"))
	assert.Equal(t, "\x02"+string(hash[:]), of(t, long))
}

// attributesOf has so many attributes. Adding them one by one would take the square
// of that.
func attributesOf(tb testing.TB, n int) pcommon.Map {
	tb.Helper()
	raw := make(map[string]any, n)
	for i := range n {
		raw[fmt.Sprint("attribute", i)] = "value"
	}
	m := pcommon.NewMap()
	require.NoError(tb, m.FromRaw(raw))
	return m
}

// To look up each attribute by its name takes the square of their number, since they
// are a list. That is what the cost is compared with, on the same machine at the same
// time; of the key it is the best of several.
func TestTheCostOfManyAttributesIsNotTheirSquare(t *testing.T) {
	m := attributesOf(t, 8_000)
	best := time.Hour
	for range 5 {
		began := time.Now()
		Of(m)
		best = min(best, time.Since(began))
	}
	began := time.Now()
	for name := range m.All() {
		m.Get(name)
	}
	square := time.Since(began)
	assert.Less(t, best, square/2, "a look-up of each takes %s", square)
	t.Log(best, square)
}

func BenchmarkOf(b *testing.B) {
	m := attributesOf(b, 100_000)
	for b.Loop() {
		Of(m)
	}
}
