package scenario

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const keysPage = "../../docs/scenarios.md"

var (
	limits  = regexp.MustCompile(` is not between (\S+) and (\S+)`)
	nameOf  = regexp.MustCompile("`([a-z0-9_]+)`")
	heading = regexp.MustCompile("(?m)^## .*$")
)

// readerKeys returns what the reader itself says about its keys: those of each mapping, by the
// path of the mapping, and for each of them its limits, or "" where it has none. An unknown
// key is refused with a list of the known ones, and a value out of range with its limits.
func readerKeys(t *testing.T, path string, wrap func(string) string, into map[string]map[string]string) bool {
	t.Helper()
	_, err := parse("f.yaml", []byte(wrap("{no_such_key: 1}")))
	require.Error(t, err)
	_, names, isMapping := strings.Cut(err.Error(), "no_such_key: unknown key: want one of ")
	if !isMapping {
		return false
	}
	into[path] = map[string]string{}
	for _, name := range strings.Split(names, ", ") {
		inner := func(value string) string { return wrap("{" + name + ": " + value + "}") }
		below := strings.TrimPrefix(path+"."+name, ".")
		if readerKeys(t, below, inner, into) || readerKeys(t, below, func(value string) string { return inner("[" + value + "]") }, into) {
			into[path][name] = ""
			continue
		}
		into[path][name] = limitsOf(inner)
	}
	return true
}

// limitsOf tries values that are out of any range.
func limitsOf(wrap func(string) string) string {
	for _, value := range []string{"-1e300", "1e300", "-1000000h", "1000000h", "[1e300]"} {
		if _, err := parse("f.yaml", []byte(wrap(value))); err != nil {
			if found := limits.FindStringSubmatch(err.Error()); found != nil {
				return amount(found[1]) + " to " + amount(found[2])
			}
		}
	}
	return ""
}

// amount writes numbers and durations as a reader would.
func amount(text string) string {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(v) < 1e7 || v == 1<<31 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strings.Replace(text, "e+", "e", 1)
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return text
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	text = d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// pageKeys reads the tables of the page: a comment "keys: PATH" before a table names its
// mapping, and a row names its keys in its first cell.
func pageKeys(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(keysPage)
	require.NoError(t, err)
	out := map[string]map[string]string{}
	for _, section := range heading.Split(string(text), -1)[1:] {
		_, rest, isTable := strings.Cut(section, "<!-- keys: ")
		if !isTable {
			continue
		}
		path, rest, found := strings.Cut(rest, " -->")
		require.True(t, found)
		path = strings.TrimPrefix(path, "file")
		require.Nil(t, out[path], "the page has two tables of %q", path)
		out[path] = map[string]string{}
		for line := range strings.Lines(rest) {
			cells := strings.SplitN(strings.Trim(strings.TrimSpace(line), "|"), "|", 2)
			if !strings.HasPrefix(line, "| `") || len(cells) < 2 {
				continue
			}
			for _, name := range nameOf.FindAllStringSubmatch(cells[0], -1) {
				assert.NotContains(t, out[path], name[1], "%q has it twice", path)
				out[path][name[1]] = cells[1]
			}
		}
	}
	return out
}

// The page has every key that the reader knows, with its limits, and no other.
func TestThePageHasEveryKeyAndItsLimits(t *testing.T) {
	known := map[string]map[string]string{}
	require.True(t, readerKeys(t, "", func(value string) string { return value }, known))
	require.Contains(t, known["workload"], "rate")
	require.Equal(t, "0 to 100000", known["workload"]["rate"])
	described := pageKeys(t)
	assert.Equal(t, slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(described)), "the mappings")
	for path, keys := range known {
		assert.Equal(t, slices.Sorted(maps.Keys(keys)), slices.Sorted(maps.Keys(described[path])), "the keys of %q", path)
		for key, limits := range keys {
			if limits == "0s to 7 days" && (key == "at" || strings.Contains(path, "faults") || strings.Contains(path, "away")) {
				limits = "0s to `length`" // The file that is tried has none.
			}
			if limits == "0 to 0" {
				limits = "" // Of engines and servers, of which that file has one.
			}
			assert.Contains(t, described[path][key], limits, "%s %s", path, key)
		}
	}
}
