package main

import (
	"fmt"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/plot"
)

// Picture is the name of the detection curve, beside the page.
const Picture = "accuracy-detection.svg"

// Chart draws the detection curve: reported (solid) and right (dashed).
func Chart(records []Record) ([]byte, error) {
	scores := Scores(records)
	var lines []plot.Line
	colors := []string{"#0b63b0", "#b34700", "#2c7a3f"}
	for i, rate := range stories.CurveRates {
		reported := plot.Line{Name: fmt.Sprintf("8B at %g/s: reported", rate), Color: colors[i]}
		right := plot.Line{Name: fmt.Sprintf("8B at %g/s: right cause", rate), Color: colors[i], Dashed: true}
		for _, effect := range stories.Effects {
			p := curvePoint(scores, effect, onCurve(rate))
			if math.IsNaN(p.reported.Value) {
				continue
			}
			reported.Points = append(reported.Points, [2]float64{effect, 100 * p.reported.Value})
			right.Points = append(right.Points, [2]float64{effect, 100 * p.right.Value})
		}
		lines = append(lines, reported, right)
	}
	return plot.Percent("Harmful minutes by the size of the harm",
		"effect: harm as a multiple of the bar of harm, logarithmic", "share of the harmful minutes (%)", stories.Effects, lines)
}
