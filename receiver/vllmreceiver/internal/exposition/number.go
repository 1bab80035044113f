package exposition

import (
	"bytes"
	"strconv"
	"unsafe"
)

// powersOfTen are the powers of ten that a float64 holds exactly.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// maxExactDigits is how many decimal digits always fit a float64's mantissa:
// 10^15 < 2^53.
const maxExactDigits = 15

// number reads the number at the start of b, which ends at a blank, a control character or
// the end of b, and returns it with its length, or 0 as the length if it is not a number.
// The rule is that of expfmt and textparse: strconv.ParseFloat without hexadecimal
// exponents and underscores.
//
// Most numbers of a body are short. Where the digits fit the mantissa and the
// power of ten is exact too, one multiplication or division of two exact numbers
// rounds once and so equals ParseFloat.
func number(b []byte) (float64, int) {
	i := 0
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		i = 1
	}
	var mantissa uint64
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		i++
	}
	digits, exponent := i-first, 0
	if i < len(b) && b[i] == '.' {
		i++
		first = i
		for i < len(b) && b[i]-'0' <= 9 {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		exponent = first - i
		digits -= exponent
	}
	if digits == 0 || digits > maxExactDigits {
		return slowNumber(b)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		end := i + 1
		for end < len(b) && b[end] > ' ' {
			end++
		}
		shift, err := strconv.Atoi(string(b[i+1 : end]))
		if err != nil || shift < -1000 || shift > 1000 {
			return slowNumber(b)
		}
		exponent += shift
		i = end
	}
	if i < len(b) && b[i] > ' ' {
		return slowNumber(b)
	}
	value := float64(mantissa)
	switch {
	case exponent == 0:
	case exponent < 0 && -exponent < len(powersOfTen):
		value /= powersOfTen[-exponent]
	case exponent > 0 && exponent < len(powersOfTen):
		value *= powersOfTen[exponent]
	default:
		return slowNumber(b)
	}
	if negative {
		value = -value
	}
	return value, i
}

func slowNumber(b []byte) (float64, int) {
	n := 0
	for n < len(b) && b[n] > ' ' {
		n++
	}
	if n == 0 || bytes.ContainsAny(b[:n], "pP_") {
		return 0, 0
	}
	// ParseFloat keeps no reference to its argument: errors hold a copy.
	value, err := strconv.ParseFloat(unsafe.String(&b[0], n), 64) //nolint:gosec // Audited: see above.
	if err != nil {
		return 0, 0
	}
	return value, n
}

// bound reads the value of an "le" or "quantile" label.
func bound(text string) (float64, bool) {
	b := []byte(text)
	value, n := number(b)
	return value, n > 0 && n == len(b) && value == value
}
