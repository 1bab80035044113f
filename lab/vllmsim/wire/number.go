package wire

import (
	"math"
	"strconv"
	"strings"
)

// PythonRepr writes a float as Python's repr does: the shortest digits that
// give the same number, an exponent only below 1e-4 and from 1e16 on, and a
// ".0" on whole numbers.
func PythonRepr(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	}
	if abs := math.Abs(v); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pythonClient writes a float as the Python client does: like repr, but with an
// exponent from 1e6 on. Clients up to 0.25 put a zero before the exponent's
// digits whatever their number, so that it has three from 1e10 on; padded asks
// for that.
func pythonClient(v float64, padded bool) string {
	s := PythonRepr(v)
	dot := strings.IndexByte(s, '.')
	if v <= 0 || dot <= 6 || strings.Contains(s, "e") {
		return s
	}
	mantissa := strings.TrimRight(s[:1]+"."+s[1:dot]+s[dot+1:], "0")
	mantissa = strings.TrimSuffix(mantissa, ".")
	exponent := strconv.Itoa(dot - 1)
	if padded || len(exponent) == 1 {
		exponent = "0" + exponent
	}
	return mantissa + "e+" + exponent
}

// rustFloat writes a float as the Rust client does.
func rustFloat(v float64) string {
	s := PythonRepr(v)
	// Rust writes 1e-5 and 1e16 without sign padding.
	s = strings.Replace(s, "e-0", "e-", 1)
	return strings.Replace(s, "e+", "e", 1)
}

var (
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)
