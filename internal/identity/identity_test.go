package identity

import (
	"testing"

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
