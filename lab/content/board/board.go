// Package board prepares dashboards for the packages that write them as files: it places
// panels, translates names into a spelling, and composes from the catalogue what a
// reader should know about each panel.
package board

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Columns is the width of a board.
const Columns = 24

// All returns the boards of a spelling.
func All(to spelling.Spelling) ([]content.Board, error) {
	var all []content.Board
	for _, b := range content.Boards() {
		if (b.Set == content.Wire) != (to == spelling.Wire) {
			continue
		}
		spelled, err := Spelled(b, to)
		if err != nil {
			return nil, err
		}
		all = append(all, spelled)
	}
	return all, nil
}

// Spelled returns a board with the names of another spelling, and with the descriptions and
// the texts for missing values filled in.
func Spelled(b content.Board, to spelling.Spelling) (content.Board, error) {
	t := translation{to: to}
	b.Variables = slices.Clone(b.Variables)
	for i := range b.Variables {
		v := &b.Variables[i]
		v.Metric, v.LabelName = t.expr(v.Metric), spelling.Label(v.LabelName, to)
	}
	b.Annotations = slices.Clone(b.Annotations)
	for i := range b.Annotations {
		a := &b.Annotations[i]
		a.Expr, a.Text = t.expr(a.Expr), spelling.Template(a.Text, to)
	}
	b.Rows = slices.Clone(b.Rows)
	for i := range b.Rows {
		row := &b.Rows[i]
		row.Panels = slices.Clone(row.Panels)
		for j := range row.Panels {
			row.Panels[j] = t.panel(row.Panels[j])
		}
	}
	if t.err != nil {
		return b, fmt.Errorf("board %s: %w", b.UID, t.err)
	}
	return b, nil
}

type translation struct {
	to  spelling.Spelling
	err error
}

func (t *translation) expr(expr string) string {
	translated, err := spelling.Expr(expr, t.to)
	if err != nil && t.err == nil {
		t.err = err
	}
	return translated
}

func (t *translation) panel(p content.Panel) content.Panel {
	p.About, p.NoValue = Description(p), NoValue(p)
	p.Queries = slices.Clone(p.Queries)
	for i := range p.Queries {
		q := &p.Queries[i]
		q.Expr, q.Legend = t.expr(q.Expr), spelling.Template(q.Legend, t.to)
	}
	p.Columns = slices.Clone(p.Columns)
	for i := range p.Columns {
		p.Columns[i].Label = spelling.Label(p.Columns[i].Label, t.to)
	}
	return p
}

// Metrics returns the metrics of the catalogue that the queries of a panel use, in order.
// Limits are left out: they are about the picture, and not in question.
func Metrics(p content.Panel) []*catalog.Metric {
	var found []*catalog.Metric
	for _, q := range p.Queries {
		if q.AsThreshold {
			continue
		}
		expr, err := spelling.Parse(q.Expr)
		if err != nil {
			continue // Spelled reports it.
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if s, is := node.(*parser.VectorSelector); is {
				if m, _, known := spelling.Metric(s.Name); known && !slices.Contains(found, m) {
					found = append(found, m)
				}
			}
			return nil
		})
	}
	return found
}

// Description is what the panel says about itself, what its metrics do not see, and what it
// is made of.
func Description(p content.Panel) string {
	parts := []string{p.About}
	var unseen, names []string
	for _, m := range Metrics(p) {
		names = append(names, "`"+m.Name+"`")
		if spots := blindSpots(m); spots != "" && !slices.Contains(unseen, spots) {
			unseen = append(unseen, spots)
		}
	}
	if len(unseen) > 0 {
		parts = append(parts, "**What it does not see:** "+strings.Join(unseen, " "))
	}
	if len(names) > 0 {
		parts = append(parts, "From "+strings.Join(names, ", ")+".")
	}
	return strings.Join(parts, "\n\n")
}

var like = regexp.MustCompile("Like `([^`]+)`\\.")

// blindSpots puts the words of another metric in the place of "Like `another.metric`.".
func blindSpots(m *catalog.Metric) string {
	text := m.BlindSpots
	// One may be like another that is like a third.
	for range 4 {
		text = like.ReplaceAllStringFunc(text, func(reference string) string {
			other, known := catalog.ByName(like.FindStringSubmatch(reference)[1])
			if !known {
				return reference
			}
			return other.BlindSpots
		})
	}
	return text
}

// NoValue is the text that a panel shows without data.
func NoValue(p content.Panel) string {
	if !shows(catalog.Essential, p) {
		return ownNoValue(p) + " Or the preset is essential, which lacks it."
	}
	return ownNoValue(p)
}

func ownNoValue(p content.Panel) string {
	if p.NoValue != "" {
		return p.NoValue
	}
	var needs []string
	for _, m := range Metrics(p) {
		if m.Needs != "" && !slices.Contains(needs, m.Needs) {
			needs = append(needs, m.Needs)
		}
	}
	if len(needs) == 0 {
		return "No value in this time: no server was read, or there was no traffic."
	}
	return "No value in this time. It needs " + strings.Join(needs, "; ") + "."
}

// Title is the title of a row with what its panels need.
func Title(row content.Row) string {
	if row.Needs == "" {
		return row.Title
	}
	return row.Title + " (needs " + row.Needs + ")"
}

// Place is the position of a panel, in columns and rows of the board.
type Place struct{ X, Y, Width, Height int }

// Places returns the positions of the panels of a row, from the left to the right, and the
// height of all of them. A panel that does not fit begins a new line.
func Places(panels []content.Panel) ([]Place, int) {
	places := make([]Place, len(panels))
	x, y, height := 0, 0, 0
	for i, p := range panels {
		if x+p.Width > Columns {
			x, y, height = 0, y+height, 0
		}
		places[i] = Place{x, y, p.Width, p.Height}
		x += p.Width
		height = max(height, p.Height)
	}
	return places, y + height
}

// Links returns the boards that a board links to: the others that are shipped together.
func Links(of content.Board, all []content.Board) []content.Board {
	return slices.DeleteFunc(slices.Clone(all), func(b content.Board) bool { return b.UID == of.UID })
}

// Hex is a colour as it is drawn, legible on light and dark ground.
func Hex(c content.Color) string {
	return map[content.Color]string{
		content.Green: "#2E8B57", content.Orange: "#E07B00",
		content.Red: "#C4262E", content.Grey: "#808080", content.Blue: "#3D71D9",
		// Shades, where several states have one severity.
		"red-1": "#6E1423", "red-2": "#9B2FAE", "red-3": "#F2495C",
		"grey-1": "#4D4D4D", "grey-2": "#A6A6A6", "grey-3": "#5F7A8C",
	}[c]
}
