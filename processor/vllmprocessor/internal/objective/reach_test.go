package objective

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATargetThatMakesAnAlertUnreachableIsNamed(t *testing.T) {
	t.Parallel()
	const ending = " can never fire; write a target of at least 0.9306, let your alerts compare with a lower burn rate, " +
		"or use the rules in content/rules, which fire with any target"
	for _, c := range []struct {
		target float64
		want   string
	}{
		{0.999, ""},
		{0.95, ""},
		{0.931, ""},
		{0.9306, ""},
		{0.93, "14.3, even if every request is too slow, so an alert on a burn rate above 14.4"},
		{0.9, "10, even if every request is too slow, so an alert on a burn rate above 14.4"},
		{0.834, "6.02, even if every request is too slow, so an alert on a burn rate above 14.4"},
		{0.83, "5.88, even if every request is too slow, so an alert on a burn rate above 14.4 or 6"},
		// It is 3 at most, which is not above 3.
		{2.0 / 3, "3, even if every request is too slow, so an alert on a burn rate above 14.4 or 6 or 3"},
		{0.5, "2, even if every request is too slow, so an alert on a burn rate above 14.4 or 6 or 3"},
	} {
		o := Objective{Name: "a", Target: c.target}
		if c.want != "" {
			c.want = `objective "a": with the target ` + number(c.target) + " the burn rate is at most " + c.want + ending
		}
		assert.Equal(t, c.want, o.Unreachable())
	}
}

func TestTheFactorsAreThoseOfTheShippedAlerts(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../../../content/rules/suffixed/vllm.yaml")
	require.NoError(t, err)
	var shipped []string
	for _, alert := range regexp.MustCompile(`alert: VLLMBudgetBurn\w+\n.*\n(?: *\(\n)?.*clamp_max\((\S+) \*`).FindAllStringSubmatch(string(rules), -1) {
		shipped = append(shipped, alert[1])
	}
	want := []string{"1"} // with any target it can be exceeded
	for _, factor := range alertFactors {
		want = append(want, number(factor))
	}
	assert.ElementsMatch(t, want, shipped)
}

// While every request misses the objective, the burn rate over a window w is d/w of the
// highest one after d. So an alert on factor fires after factor * (1 - target) * w.
func TestAnOutagePagesAfterTheTimeOfTheFormula(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, factor float64
		window         time.Duration
		// minutes is worked out by hand; 0 means never.
		minutes float64
	}{
		{0.999, 14.4, time.Hour, 0.864},
		{0.99, 14.4, time.Hour, 8.64},
		{0.95, 14.4, time.Hour, 43.2},
		{0.9, 14.4, time.Hour, 0},
		{0.95, 6, 6 * time.Hour, 108},
		{0.9, 6, 6 * time.Hour, 216},
		{0.8, 6, 6 * time.Hour, 0},
		{0.8, 3, 24 * time.Hour, 864},
	} {
		const scrape, fails = 15 * second, 30 * hour
		tracker := newTracker(Windows{Burn: []time.Duration{c.window}, Budget: 30 * 24 * time.Hour})
		fired := int64(0)
		for after := scrape; after <= fails+int64(c.window)+hour && fired == 0; after += scrape {
			bad := 0.0
			if after > fails {
				bad = 10
			}
			require.Equal(t, Added, tracker.Add(epoch+after-scrape, epoch+after, requests(10, bad, 0)))
			attainment, known := tracker.Burn(0, epoch+after).Attainment()
			require.True(t, known)
			if BurnRate(attainment, c.target).Lower > c.factor {
				fired = after
			}
		}
		if c.minutes == 0 {
			assert.Zero(t, fired, "%+v", c)
			o := Objective{Target: c.target}
			assert.Contains(t, o.Unreachable(), number(c.factor))
			continue
		}
		require.NotZero(t, fired, "%+v", c)
		// The step in which it happens counts at its end, and a window is longer by less than a slot.
		late := c.factor*(1-c.target)*c.window.Seconds()/slotsPerWindow + 2*seconds(scrape)
		assert.InDelta(t, c.minutes*60+late/2, seconds(fired-fails), late/2, "%+v", c)
	}
}
