package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
)

//go:embed page.html
var source string

var pageTemplate = template.Must(template.New("page").Parse(source))

// The size of the timeline in pixels.
const (
	left, right = 150.0, 1250.0
	row         = 22.0
	plotHeight  = 150.0
)

// mark is a rectangle, a point or a text of the timeline.
type mark struct {
	X, Y, W, H  float64
	Class, Text string
	Title       string
}

// lane is a row of the timeline.
type lane struct {
	Name  string
	Y     float64
	Marks []mark
}

// plot is a row with points on a logarithmic scale.
type plot struct {
	Name   string
	Y, H   float64
	Points []mark
	Lines  []mark
}

type view struct {
	Title, About  string
	Lines         string
	Width, Height float64
	Ticks         []mark
	Lanes         []lane
	Plots         []plot
	Sets          []set
}

// set is what was said at one interval.
type set struct {
	Interval string
	Records  []recordRow
	Alerts   []alertRow
}

type (
	recordRow struct{ At, Phase, Level, Text string }
	alertRow  struct{ Name, From, To, Level string }
)

// HTML writes the page of a run.
func HTML(to io.Writer, r *run.Run, all []*said.All) error {
	v := &view{Title: strings.Join(r.Play.Stories, ", "), Lines: Lines(r, all), Width: right + 20}
	by := "vLLM " + r.Version
	if r.Simulated {
		by = "the simulator as vLLM " + r.Version
	}
	v.About = fmt.Sprintf("Played by %s (%s) from %s; seed %d.", by, r.Play.Server.Name, r.Began.UTC().Format("2006-01-02 15:04:05"), r.Seed)
	if r.Capacity > 0 {
		v.About += fmt.Sprintf(" It serves %.2f requests/s of the usual lengths.", r.Capacity)
	}
	scale := func(at float64) float64 { return left + (right-left)*min(1, max(0, at/max(1, r.End()))) }
	bar := func(from, to float64, class, text, title string) mark {
		return mark{X: scale(from), W: max(1.5, scale(to)-scale(from)), H: row - 4, Class: class, Text: text, Title: title}
	}
	phases := lane{Name: "phase"}
	for i, s := range r.Spans {
		name := r.Play.Phases[i].Name
		class := "calm"
		if r.Play.Phases[i].Fault != nil {
			class = "fault"
		}
		_, short, _ := strings.Cut(name, "/")
		if short == "" {
			short = name
		}
		phases.Marks = append(phases.Marks, bar(s.From, s.To, class, short, name))
	}
	v.Lanes = append(v.Lanes, phases)
	if len(all) > 0 {
		felt := lane{Name: "users felt"}
		for i := range all[0].Felt {
			f := &all[0].Felt[i]
			class := map[judge.Level]string{judge.Great: "great", judge.Outage: "outage", judge.Clear: "clear"}[f.Level]
			felt.Marks = append(felt.Marks, bar(f.From, f.To, class, "", fmt.Sprintf("%s: %s from %s to %s, worst %s", f.Level, f.What, clock(f.From), clock(f.To), worst(f))))
		}
		v.Lanes = append(v.Lanes, felt)
	}
	for _, a := range all {
		told := lane{Name: "said, every " + a.Interval.String()}
		for i, s := range a.Said {
			to := r.End()
			if i+1 < len(a.Said) {
				to = a.Said[i+1].At
			}
			told.Marks = append(told.Marks, bar(s.At, to, "severity"+strconv.Itoa(max(0, s.Severity)), s.Condition, clock(s.At)+" "+verdict(s)))
		}
		fired := lane{Name: "alerts"}
		set := set{Interval: a.Interval.String()}
		for _, f := range a.Alerts {
			level := "ticket"
			if f.Page {
				level = "page"
			}
			fired.Marks = append(fired.Marks, bar(f.From, f.To, level, "", f.Name+" from "+clock(f.From)+" to "+clock(f.To)))
			set.Alerts = append(set.Alerts, alertRow{f.Name, clock(f.From), clock(f.To), level})
		}
		for _, one := range a.Records {
			set.Records = append(set.Records, recordRow{clock(one.At), r.PhaseAt(one.At), one.Level, one.Text})
		}
		v.Lanes, v.Sets = append(v.Lanes, told, fired), append(v.Sets, set)
	}
	y := 24.0
	for i := range v.Lanes {
		v.Lanes[i].Y = y
		for j := range v.Lanes[i].Marks {
			v.Lanes[i].Marks[j].Y = y + 2
		}
		y += row
	}
	usual := r.Usual()
	first := plot{Name: "first token", Y: y + 10, H: plotHeight}
	token := plot{Name: "per token", Y: y + 20 + plotHeight, H: plotHeight}
	for i := range r.Sent {
		s := &r.Sent[i]
		class := "answered"
		switch s.How {
		case judge.Failed:
			class = "failed"
		case judge.TimedOut, judge.Left:
			class = "gave-up"
		case judge.Refused:
			continue
		}
		waited := s.Waited()
		title := fmt.Sprintf("sent at %s: waited %s, %s", clock(s.At), duration(waited), s.How)
		first.Points = append(first.Points, mark{X: scale(s.At), Y: first.y(waited, 0.01), Class: class, Title: title})
		if n := len(s.Tokens); n > 1 {
			itl := (s.Tokens[n-1] - s.Tokens[0]) / float64(n-1)
			token.Points = append(token.Points, mark{X: scale(s.At + s.Tokens[0]), Y: token.y(itl, 0.001), Class: class, Title: duration(itl)})
		}
	}
	for _, at := range []float64{0.01, 0.1, 1, 10, 100} {
		first.Lines = append(first.Lines, mark{Y: first.y(at, 0.01), Class: "grid", Text: duration(at)})
		token.Lines = append(token.Lines, mark{Y: token.y(at/10, 0.001), Class: "grid", Text: duration(at / 10)})
	}
	if usual.First > 0 {
		first.Lines = append(first.Lines, mark{Y: first.y(usual.First, 0.01), Class: "usual", Title: "usual"})
	}
	if usual.Token > 0 {
		token.Lines = append(token.Lines, mark{Y: token.y(usual.Token, 0.001), Class: "usual", Title: "usual"})
	}
	v.Plots = []plot{first, token}
	v.Height = token.Y + token.H + 10
	step := 60.0
	for r.End()/step > 25 {
		step *= 2
	}
	for at := 0.0; at <= r.End(); at += step {
		v.Ticks = append(v.Ticks, mark{X: scale(at), Text: clock(at)})
	}
	return pageTemplate.Execute(to, v)
}

// y places a value of at least four decades above least.
func (p *plot) y(value, least float64) float64 {
	share := math.Log10(max(value, least)/least) / 4
	return p.Y + p.H*(1-min(1, share))
}
