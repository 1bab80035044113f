package querylint

import (
	"math"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// unit is a unit of UCUM reduced to what can be compared: powers of seconds, bytes and
// operations, and a scale. Counted things have no dimension.
type unit struct {
	known          bool
	seconds, bytes int
	scale          float64
}

var one = unit{known: true, scale: 1}

var unitWords = map[string]unit{
	"1": one, "%": {known: true, scale: 0.01},
	"ns": {known: true, seconds: 1, scale: 1e-9}, "us": {known: true, seconds: 1, scale: 1e-6},
	"ms": {known: true, seconds: 1, scale: 1e-3}, "s": {known: true, seconds: 1, scale: 1},
	"min": {known: true, seconds: 1, scale: 60}, "h": {known: true, seconds: 1, scale: 3600},
	"d":  {known: true, seconds: 1, scale: 86400},
	"By": {known: true, bytes: 1, scale: 1}, "kBy": {known: true, bytes: 1, scale: 1e3},
	"MBy": {known: true, bytes: 1, scale: 1e6}, "GBy": {known: true, bytes: 1, scale: 1e9},
	"KiBy": {known: true, bytes: 1, scale: 1 << 10}, "MiBy": {known: true, bytes: 1, scale: 1 << 20},
	"GiBy": {known: true, bytes: 1, scale: 1 << 30},
}

// parseUnit returns the unit; it is unknown if the text is empty or has other words.
func parseUnit(text string) unit {
	if text == "" {
		return unit{}
	}
	result := one
	for i, word := range strings.Split(text, "/") {
		u, known := unitWords[word]
		if strings.HasPrefix(word, "{") && strings.HasSuffix(word, "}") {
			u, known = one, true
		}
		if !known {
			return unit{}
		}
		if i == 0 {
			result = u
		} else {
			result = result.over(u)
		}
	}
	return result
}

func (u unit) over(v unit) unit {
	if !u.known || !v.known {
		return unit{}
	}
	return unit{known: true, seconds: u.seconds - v.seconds, bytes: u.bytes - v.bytes, scale: u.scale / v.scale}
}

func (u unit) times(v unit) unit {
	if !u.known || !v.known {
		return unit{}
	}
	return unit{known: true, seconds: u.seconds + v.seconds, bytes: u.bytes + v.bytes, scale: u.scale * v.scale}
}

// multiplied returns the unit of a value that was multiplied by a number. Only powers of
// ten and of 1024 convert units; other factors change the value.
func (u unit) multiplied(factor float64) unit {
	switch math.Abs(factor) {
	case 100, 1e3, 1e6, 1e9, 1 << 10, 1 << 20, 1 << 30, 0.01, 1e-3, 1e-6, 1e-9, 1.0 / (1 << 10), 1.0 / (1 << 20), 1.0 / (1 << 30):
		u.scale /= math.Abs(factor)
	case 60, 3600, 86400, 1.0 / 60, 1.0 / 3600, 1.0 / 86400:
		// Per minute, or in minutes, or how many in an hour.
		return unit{}
	}
	return u
}

func (u unit) sameDimension(v unit) bool { return u.seconds == v.seconds && u.bytes == v.bytes }

func (u unit) equal(v unit) bool {
	return u.sameDimension(v) && math.Abs(u.scale/v.scale-1) < 1e-9
}

func (u unit) String() string {
	if !u.known {
		return "unknown"
	}
	var top, bottom []string
	for _, d := range []struct {
		power int
		name  string
	}{{u.seconds, "second"}, {u.bytes, "byte"}} {
		for range d.power {
			top = append(top, d.name+"s")
		}
		for range -d.power {
			bottom = append(bottom, d.name)
		}
	}
	text := strings.Join(top, " ")
	if text == "" {
		text = "a number"
	}
	if len(bottom) > 0 {
		text += " per " + strings.Join(bottom, " ")
	}
	for _, word := range []struct {
		scale float64
		text  string
	}{{0.01, "hundredths"}, {1e-3, "thousandths"}, {1e3, "thousands"}, {60, "sixties"}} {
		if math.Abs(u.scale/word.scale-1) < 1e-9 {
			return text + " in " + word.text
		}
	}
	return text
}

// checkUnit compares the unit of the result with the declared one.
func (c *checker) checkUnit(root parser.Expr, result shape) {
	declared := parseUnit(c.context.Unit)
	if c.context.Kind == Alert || !declared.known || !result.unit.known || result.scalar {
		return
	}
	if declared.equal(result.unit) {
		return
	}
	if declared.sameDimension(result.unit) {
		c.report(CodeUnit, Error, root, "The declared unit %s and the unit of the result, %s, differ by a factor. Convert the value or declare the other unit.",
			c.context.Unit, result.unit)
		return
	}
	c.report(CodeUnit, Error, root, "The declared unit is %s, but the result is %s. Correct the unit or the expression.", c.context.Unit, result.unit)
}

// checkSameUnit reports a sum, a difference or a comparison of different quantities.
func (c *checker) checkSameUnit(node *parser.BinaryExpr, left, right *shape) {
	if left.scalar || right.scalar || !left.unit.known || !right.unit.known || left.unit.equal(right.unit) {
		return
	}
	c.report(CodeUnit, Error, node, "The left side is %s and the right side is %s: they cannot be combined with %s. Convert one of them.",
		left.unit, right.unit, node.Op)
}
