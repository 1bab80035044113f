package objective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestDurationIsReadInPrometheusAndGoForm(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]struct {
		duration time.Duration
		written  string
	}{
		"30d":     {30 * day, "30d"},
		"2w":      {14 * day, "2w"},
		"1h30m":   {90 * time.Minute, "1h30m"},
		"1y":      {365 * day, "1y"},
		"1d12h":   {36 * time.Hour, "1d12h"},
		"5m":      {5 * time.Minute, "5m"},
		"2.5s":    {2500 * time.Millisecond, "2.5s"},
		"100ms":   {100 * time.Millisecond, "100ms"},
		"0.1s":    {100 * time.Millisecond, "100ms"},
		"1.5h":    {90 * time.Minute, "1h30m"},
		"500us":   {500 * time.Microsecond, "500µs"},
		"0":       {0, "0s"},
		"1m2.25s": {62250 * time.Millisecond, "1m2.25s"},
	} {
		var d Duration
		require.NoError(t, d.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want.duration, time.Duration(d), text)
		assert.Equal(t, want.written, d.String(), text)
		var again Duration
		written, err := d.MarshalText()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalText(written))
		assert.Equal(t, d, again, "what is written can be read")
	}
}

func TestDurationThatCannotBeReadSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "2,5s", "30 days", "1.5d", "30", "h", "1m1h1x", "99999999999y"} {
		var d Duration
		require.EqualError(t, d.UnmarshalText([]byte(text)),
			`"`+text+`" is not a duration; write for example 2.5s, 100ms, 1h30m, 2w or 30d`)
		assert.Zero(t, d)
	}
	var d Duration
	require.EqualError(t, d.UnmarshalText([]byte("-5s")), "the duration -5s is negative; leave out the minus")
}

func TestThresholdInSecondsEqualsTheBoundThatWasReadFromText(t *testing.T) {
	t.Parallel()
	for _, metric := range indicators {
		bounds, _ := indicatorOf(metric)
		for _, bound := range bounds {
			assert.Equal(t, bound, ofSeconds(bound).Seconds())
		}
	}
}

func TestObjectiveIsDecodedFromConfiguration(t *testing.T) {
	t.Parallel()
	conf := confmap.NewFromStringMap(map[string]any{
		"name": "itl", "metric": "vllm.inter_token_latency", "threshold": "100ms", "target": 0.99, "models": []any{"meta-llama/*"},
	})
	var o Objective
	require.NoError(t, conf.Unmarshal(&o))
	assert.Equal(t, Objective{
		Name: "itl", Metric: "vllm.inter_token_latency", Threshold: Duration(100 * time.Millisecond), Target: 0.99, Models: []string{"meta-llama/*"},
	}, o)
	require.NoError(t, o.Validate())
}

func TestCollectorFindsTheMistakesOfEachObjective(t *testing.T) {
	t.Parallel()
	config := struct {
		Objectives []Objective `mapstructure:"objectives"`
	}{[]Objective{ttft(), {Name: "e2e", Metric: "vllm.e2e_request_latency", Threshold: Duration(time.Minute), Target: 90}}}
	assert.EqualError(t, confmap.Validate(&config), `objectives::1: objective "e2e": the target 90 is a percentage; write the share 0.9`)
}

func TestThresholdWithoutUnitIsAMistake(t *testing.T) {
	t.Parallel()
	for _, bare := range []any{2, 2.5} {
		conf := confmap.NewFromStringMap(map[string]any{
			"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": bare, "target": 0.95,
		})
		var o Objective
		require.NoError(t, conf.Unmarshal(&o), "decoding takes a number for nanoseconds")
		assert.EqualError(t, o.Validate(), `objective "ttft": the threshold 2 has no unit; write for example 2s or 2ms`)
	}
}
