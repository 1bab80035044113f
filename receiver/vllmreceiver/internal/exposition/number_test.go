package exposition

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parseFloat is the rule of expfmt and textparse in their own order of steps.
func parseFloat(s string) (float64, bool) {
	if strings.ContainsAny(s, "pP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func checkNumber(t *testing.T, text string) {
	t.Helper()
	got, n := number([]byte(text))
	want, ok := parseFloat(text)
	if !ok {
		require.Zero(t, n, text)
		return
	}
	require.Equal(t, len(text), n, text)
	require.Equal(t, math.Float64bits(want), math.Float64bits(got), text)
}

func TestNumberIsParseFloat(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "0.0", "00012", "3.0", "1e+06", "3.9024848896e+010", "1.7782615480413878e+09", "NaN", "nan", "+Inf", "-Inf",
		"inf", "Infinity", "+5", "5.", ".5", ".", "-", "+", "", "e5", "1e", "1e+", "1e5.5", "1e0005", "1e-0001", "1e999", "-1e999",
		"1e-999", "0e999", "0x10", "0x1p4", "1_000", "1,5", "1.2.3", "--1", "999999999999999", "9999999999999999", "123456789012345.6",
		"0.1", "0.3", "123456789012345e22", "123456789012345e-22", "1e22", "1e23", "1e-22", "1e-23", "5e-324", "1.7976931348623157e308",
		"1e-9223372036854775808", "1.5e-9223372036854775808", "1e9223372036854775807", "1e-9223372036854775809", "1.25e+1000", "1.25e-1001",
		"9007199254740993", "0.000000000000001", "١",
	} {
		checkNumber(t, text)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		value := random.NormFloat64() * math.Pow10(random.IntN(60)-30)
		for _, format := range []byte("fge") {
			checkNumber(t, strconv.FormatFloat(value, format, random.IntN(20)-1, 64))
		}
		checkNumber(t, pythonFloat(value))
	}
}

// A number ends at the first blank or control character; what that character may
// be is decided elsewhere.
func TestNumberEndsAtBlank(t *testing.T) {
	for _, text := range []string{"12 34", "12\n34", "12\r\n", "12\t", "1.2e1 x", "12\x00"} {
		value, n := number([]byte(text))
		require.Equal(t, 12.0, value, text)
		require.Equal(t, strings.IndexAny(text, " \n\r\t\x00"), n, text)
	}
}

func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"3.0", "1e+06", "3.9024848896e+010", "NaN", "-.5e-7", "0x1p3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.IndexFunc(text, func(r rune) bool { return r <= ' ' }) >= 0 {
			t.Skip("more than one word")
		}
		checkNumber(t, text)
	})
}
