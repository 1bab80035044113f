package objective

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"
)

// Duration is a time span of the configuration. It is written as Prometheus
// writes it (30d, 2w, 1h30m) or as Go does (2.5s, 100ms).
type Duration time.Duration

// UnmarshalText reads a duration in either form.
func (d *Duration) UnmarshalText(text []byte) error {
	if long, err := model.ParseDuration(string(text)); err == nil {
		*d = Duration(long)
		return nil
	}
	short, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write for example 2.5s, 100ms, 1h30m, 2w or 30d", text)
	}
	if short < 0 {
		return fmt.Errorf("the duration %s is negative; leave out the minus", text)
	}
	*d = Duration(short)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes whole seconds as Prometheus does, "30d" or "1h30m", and other
// values as Go does, "2.5s".
func (d Duration) String() string {
	if time.Duration(d)%time.Second == 0 {
		return model.Duration(d).String()
	}
	return time.Duration(d).String()
}

// Seconds is the duration in seconds. It is the number nearest to the exact
// value, so 100ms equals a bound that was read from "0.1".
func (d Duration) Seconds() float64 { return float64(d) / float64(time.Second) }

// unitless reports whether the duration was a bare number in the configuration, which is
// decoded as nanoseconds. No valid duration is that short.
func (d Duration) unitless() bool { return d > 0 && time.Duration(d) < time.Microsecond }

// ofSeconds converts a bound of a histogram.
func ofSeconds(seconds float64) Duration {
	return Duration(time.Duration(seconds*1e6+0.5) * time.Microsecond)
}
