package vllmfleetextension

import (
	"html/template"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNumbersAreSpelledForPeople(t *testing.T) {
	for want, n := range map[string]number{
		"7.86 ms": 0.00786, "42 ms": 0.042, "999 ms": 0.9991, "1 s": 0.9997, "4.2 s": 4.2, "1234 s": 1234.2, "": number(math.NaN()), "0 ms": 0,
	} {
		assert.Equal(t, want, spellSeconds(n))
	}
	for want, f := range map[string]float64{"0.012": 0.0123, "12300": 12300, "-0.42": -0.42, "14.4": 14.4, "0": 0, "": math.Inf(1)} {
		assert.Equal(t, want, spell(f, ""))
	}
	for want, d := range map[string]time.Duration{"0 s": -time.Second, "59 s": 59 * time.Second, "59 min": time.Hour - 1, "47 h 59 min": 48*time.Hour - 1, "2 d": 71 * time.Hour} {
		assert.Equal(t, want, age(d))
	}
}

// What is between the catalogue's marks is code; all else is text, whatever it is.
func TestWordsOfTheCatalogueAreNotMarkup(t *testing.T) {
	for text, want := range map[string]template.HTML{
		"Look at `vllm.up` and `<b>`.": "Look at <code>vllm.up</code> and <code>&lt;b&gt;</code>.",
		"one ` mark":                   "one  mark",
		"<script>`":                    "&lt;script&gt;",
	} {
		assert.Equal(t, want, code(text))
	}
	assert.Equal(t, template.URL("https://a/b"), linkTo("https://a/b"))
	for _, text := range []string{"javascript:alert(1)", "JavaScript:https://x", "data:text/html,x", "//a/b", ""} {
		assert.Empty(t, linkTo(text))
	}
}

// A curve goes from 0 to its greatest value; what is not known is left out.
func TestACurveIsInItsBox(t *testing.T) {
	unknown := float32(math.NaN())
	assert.Equal(t, "0,31 2,1 3,16", polyline([]float32{0, unknown, 4, 2}))
	assert.Empty(t, polyline([]float32{unknown, 3, unknown}), "a point is no curve")
	assert.Empty(t, polyline([]float32{0, 0, 0}))
}
