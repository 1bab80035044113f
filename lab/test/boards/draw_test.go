package boards

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A screen has whole panels; one that is higher than a screen is a screen of its own.
func TestScreens(t *testing.T) {
	p := seen{
		Rows:   []row{{"State", 100}, {"GPU row", 920}},
		Panels: []panel{{Top: 140, Bottom: 500}, {Top: 510, Bottom: 895}, {Top: 510, Bottom: 910}, {Top: 960, Bottom: 2000}, {Top: 2010, Bottom: 2100}},
	}
	assert.Equal(t, [][2]int{{0, 508}, {500, 918}, {910, 2008}, {2000, 2108}}, p.screens(""))
	assert.Equal(t, [][2]int{{920, 2008}, {2000, 2108}}, p.screens("GPU"))
}
