package catalog

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// isGateway reports whether a metric is an inference gateway's. These are renamed by
// design, so the colon rule does not apply to them.
func isGateway(m Metric) bool { return strings.HasPrefix(m.Name, "inference_gateway.") }

// gatewayPrefix returns the prefix of a family and what follows it.
func gatewayPrefix(family string) (GatewayPrefix, string) {
	for _, p := range Gateway.Prefixes {
		if rest, ok := strings.CutPrefix(family, p.Wire); ok {
			return p, rest
		}
	}
	return GatewayPrefix{}, ""
}

// With a wire name, a Prometheus that scrapes the same picker would store both series as
// one.
func TestGatewayNamesAreNotWireNames(t *testing.T) {
	wire := map[string]string{}
	for _, m := range All() {
		for _, s := range m.Sources {
			wire[strings.ReplaceAll(s.Family, ":", "_")] = m.Name
		}
	}
	count := 0
	for _, m := range All() {
		if isGateway(m) {
			count++
			assert.Empty(t, wire[prometheusName(t, m)], "%s translates to a wire name", m.Name)
			require.True(t, len(m.Sources) > 0 || m.Derived(), m.Name)
		}
		for _, s := range m.Sources {
			p, _ := gatewayPrefix(s.Family)
			assert.Equal(t, isGateway(m), p.Wire != "", "%s from %s", m.Name, s.Family)
		}
	}
	assert.Positive(t, count)
}

// A name with a group of its own is chosen by hand. Every other one must be the name that
// an unknown family gets.
func TestGatewayNamesAreTheirOwnOrTheMechanicalForm(t *testing.T) {
	for _, m := range All() {
		// "requests" would be "request", which is a group.
		if !isGateway(m) || m.Derived() || strings.Count(m.Name, ".") > 2 || m.Name == "inference_gateway.epp.requests" {
			continue
		}
		family := newestFamily(m)
		p, rest := gatewayPrefix(family)
		if m.Kind == KindSum {
			rest = strings.TrimSuffix(rest, "_total")
		}
		for suffix, unit := range map[string]string{"_seconds": "s", "_milliseconds": "ms", "_bytes": "By"} {
			if m.Unit == unit {
				rest = strings.TrimSuffix(rest, suffix)
			}
		}
		assert.Equal(t, p.Name+rest, m.Name, family)
	}
}

// The last source of a metric wins, so those of newer generations must be later.
func TestNewerGenerationsOfAGatewayWin(t *testing.T) {
	generations := map[string]int{}
	for i, p := range Gateway.Prefixes {
		generations[p.Wire] = i
	}
	for _, m := range All() {
		if !isGateway(m) {
			continue
		}
		assert.True(t, slices.IsSortedFunc(m.Sources, func(a, b Source) int {
			x, _ := gatewayPrefix(a.Family)
			y, _ := gatewayPrefix(b.Family)
			return generations[x.Wire] - generations[y.Wire]
		}), m.Name)
	}
}

func TestNoGatewayPrefixHidesAnother(t *testing.T) {
	for i, a := range Gateway.Prefixes {
		for _, b := range Gateway.Prefixes[i+1:] {
			assert.False(t, strings.HasPrefix(a.Wire, b.Wire) || strings.HasPrefix(b.Wire, a.Wire), "%s and %s", a.Wire, b.Wire)
		}
	}
}

func TestLabelsOfGatewaysBecomeAttributesOfMetrics(t *testing.T) {
	carried := map[string]bool{}
	for _, m := range All() {
		for _, a := range m.Attributes {
			if isGateway(m) {
				carried[a] = true
				assert.NotContains(t, Gateway.Labels, a, "%s carries a label that is renamed", m.Name)
			}
		}
	}
	for label, attribute := range Gateway.Labels {
		assert.True(t, carried[attribute], "%s becomes %s, which no metric carries", label, attribute)
	}
}

// A gauge that keeps a label with an unlimited number of values needs a decision.
func TestGaugesWithAnAggregatedLabelAreAdditive(t *testing.T) {
	for _, m := range All() {
		carries := slices.ContainsFunc(Gateway.AggregatedLabels, func(l string) bool { return slices.Contains(m.Attributes, l) })
		if m.Kind == KindGauge {
			assert.Equal(t, carries, slices.Contains(Gateway.AdditiveGauges, m.Name), m.Name)
		}
	}
}

// A family that is not in the catalogue must be off by default or an info family.
func TestEveryFamilyOfTheRecordedGatewaysIsKnown(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(captures.Dir(t), "gateway", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		families := declaredFamilies(string(body))
		for _, family := range slices.Sorted(maps.Keys(families)) {
			off := slices.ContainsFunc(DisabledPrefixes, func(p string) bool { return strings.HasPrefix(family, p) })
			assert.True(t, off || known(family, families[family]), "%s: %s %s", filepath.Base(path), family, families[family])
		}
	}
}
