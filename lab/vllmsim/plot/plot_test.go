package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

func TestThePicturesInTheDocumentsAreUpToDate(t *testing.T) {
	race.SkipSequential(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round sums of products differently, and after a long run a pixel can differ")
	}
	pictures, err := Curves(1)
	require.NoError(t, err)
	require.Len(t, pictures, 3)
	for name, picture := range pictures {
		wellFormed(t, picture)
		committed, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(committed, picture), "%s shows other numbers than the engine has: run make plots", name)
	}
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestPointsLieWhereTheAxesSay(t *testing.T) {
	c := chart{
		title: "a < b",
		x:     axis{title: "x (s)", logarithmic: true, least: 1, most: 100, marks: []mark{{10, "ten"}}},
		y:     axis{title: "y (m)", least: 0, most: 4, marks: decades(-1, 0)},
		lines: []series{{"first", "#000000", true, []point{{1, 0}, {10, 1}, {100, 4}}}},
	}
	picture, err := c.svg()
	require.NoError(t, err)
	wellFormed(t, picture)
	text := string(picture)
	// 648 by 300 pixels from 78, 78 on.
	assert.Contains(t, text, "points=\"\n78.0,378.0\n402.0,303.0\n726.0,78.0\n\"")
	assert.Contains(t, text, `<text x="402.0" y="397" text-anchor="middle">ten</text>`)
	assert.Contains(t, text, ">0.1</text>")
	for _, word := range []string{"a &lt; b", "x (s)", "y (m)", "first", "stroke-dasharray"} {
		assert.Contains(t, text, word)
	}
	c.lines[0].points = append(c.lines[0].points, point{101, 1})
	_, err = c.svg()
	require.ErrorContains(t, err, "a < b: first: the point at 101, 1 lies outside the axes")
}

// A legend of more than two rows moves the plot down, and a line of one point is a dot.
func TestALongLegendHasRoom(t *testing.T) {
	c := chart{title: "t", x: axis{least: 0, most: 1}, y: axis{least: 0, most: 1}}
	for range 5 {
		c.lines = append(c.lines, series{"line", "#000000", false, []point{{0, 1}}})
	}
	picture, err := c.svg()
	require.NoError(t, err)
	assert.Contains(t, string(picture), `height="458"`)
	assert.Contains(t, string(picture), `<circle cx="78.0" cy="96.0"`)
}
