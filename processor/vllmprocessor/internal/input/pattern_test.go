package input

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatchesWhatTheSameRegularExpressionMatches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, most int) string {
		runes := []rune(letters)
		var out strings.Builder
		for range r.IntN(most) {
			out.WriteRune(runes[r.IntN(len(runes))])
		}
		return out.String()
	}
	translate := strings.NewReplacer(`\*`, `(?s:.*)`, `\?`, `(?s:.)`)
	matched := 0
	for range 50000 {
		wanted, name := word("ab/é**?", 8), word("ab/é", 10)
		want := regexp.MustCompile(`\A` + translate.Replace(regexp.QuoteMeta(wanted)) + `\z`).MatchString(name)
		require.Equal(t, want, MatchPattern(wanted, name), "%q on %q", wanted, name)
		if want {
			matched++
		}
	}
	assert.Greater(t, matched, 1000)
}

// Patterns mean what the corresponding regular expressions mean.
func TestDotsAndManyStarsEqualARegularExpression(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(alphabet string) string {
		var out strings.Builder
		for range r.IntN(7) {
			out.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return out.String()
	}
	matched := 0
	for range 20000 {
		wanted, text := word("ab/.**?"), word("ab/.")
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(wanted))
		want := regexp.MustCompile("^(?s:" + expression + ")$").MatchString(text)
		require.Equal(t, want, MatchPattern(wanted, text), "%q on %q", wanted, text)
		if want {
			matched++
		}
	}
	assert.Greater(t, matched, 1000)
}
