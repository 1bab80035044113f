package vllmfleetextension

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

//go:embed page.css
var css []byte

//go:embed page.js
var script []byte

var page = template.Must(template.New("").Funcs(template.FuncMap{
	"seconds": spellSeconds,
	"count":   func(n number) string { return spell(float64(n), "") },
	"percent": func(n number) string { return spell(math.Round(100*float64(n)), " %") },
	"sortKey": func(n number) string { return known(float64(n), fmt.Sprintf("%g", float64(n))) },
	"code":    code,
	"address": linkTo,
	"clock":   func(at time.Time) string { return at.UTC().Format("15:04:05") },
	"stamp":   func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
}).Parse(pageText))

// linkTo is an address of the configuration; only http and https become links.
func linkTo(text string) template.URL {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return template.URL(text) //nolint:gosec // its scheme was checked, and the template escapes the rest
	}
	return ""
}

// code shows what the catalogue has between backticks as code.
func code(text string) template.HTML {
	parts := strings.Split(template.HTMLEscapeString(text), "`")
	for i := 1; i < len(parts)-1; i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return template.HTML(strings.Join(parts, "")) //nolint:gosec // it was escaped
}

// known is a text about a number; empty where that is not known.
func known(f float64, text string) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return ""
	}
	return text
}

// spell writes a number with three digits or more, but without an exponent.
func spell(f float64, unit string) string {
	digits := 0
	if f != 0 {
		digits = min(max(2-int(math.Floor(math.Log10(math.Abs(f)))), 0), 3)
	}
	scale := math.Pow10(digits)
	return known(f, strconv.FormatFloat(math.Round(f*scale)/scale, 'f', -1, 64)+unit)
}

func spellSeconds(n number) string {
	if f := float64(n); f >= 0.9995 {
		return spell(f, " s")
	}
	return spell(1000*float64(n), " ms")
}

// age is how long something has been so, in two units at most.
func age(d time.Duration) string {
	switch d = max(d, 0).Truncate(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// row is an engine or a pool in the table.
type row struct {
	engineDocument
	Pool string
	// Engines is how many a pool has.
	Engines int
	Path    string
	For     string
	Age     string
	// Curves are the points of an SVG polyline; empty where nothing is known.
	Curves [len(drawn)]string
}

// Name is what the row is about.
func (r *row) Name() string {
	switch {
	case r.Pool != "":
		return "pool " + r.Pool
	case r.Engine != "":
		return r.Server + ", engine " + r.Engine
	}
	return r.Server
}

type overview struct {
	Title   string
	At      time.Time
	Rows    []row
	Budgets []budgetDocument
	// Counts are the rows by condition, the worst first.
	Counts []countOf
	// Alone is said where no processor is asked.
	Alone   string
	Suspect bool
}

type countOf struct {
	Condition string
	Severity  int
	N         int
}

type subject struct {
	*detailDocument
	Title string
	Row   row
}

func (f *fleetServer) handlePages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", f.shared(htmlType, func(v *view) ([]byte, error) { return rendered("overview", f.overview(v)) }))
	mux.HandleFunc("GET /engines/{id}", f.showSubject(f.engineDetail))
	mux.HandleFunc("GET /pools/{id}", f.showSubject(f.poolDetail))
	mux.HandleFunc("GET /page.css", asset("text/css", css))
	mux.HandleFunc("GET /page.js", asset("text/javascript", script))
}

func asset(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write(content)
	}
}

func (f *fleetServer) showSubject(find find) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, busy := find(r.PathValue("id"))
		if busy {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many details were asked for within a second; ask again", http.StatusServiceUnavailable)
			return
		}
		if d == nil {
			render(w, http.StatusNotFound, "gone", &subject{Title: "not known now"})
			return
		}
		s := subject{detailDocument: d}
		if d.Engine != nil {
			s.Row = f.row(*d.Engine, d.At)
		} else {
			s.Row = poolRow(d.Pool, d.At)
		}
		s.Title = s.Row.Name() + ": " + s.Row.Condition
		render(w, http.StatusOK, "subject", &s)
	}
}

func (f *fleetServer) overview(v *view) *overview {
	d := v.fleet()
	o := &overview{At: d.At, Budgets: d.Budgets, Suspect: d.Suspect}
	for i := range d.Pools {
		o.Rows = append(o.Rows, poolRow(&d.Pools[i], d.At))
	}
	if v.alone {
		o.Alone = alone
	}
	counts := map[string]int{}
	for _, e := range d.Engines {
		o.Rows = append(o.Rows, f.row(e, d.At))
		counts[e.Condition]++
		if counts[e.Condition] == 1 {
			o.Counts = append(o.Counts, countOf{Condition: e.Condition, Severity: e.Severity})
		}
	}
	for i := range o.Counts {
		o.Counts[i].N = counts[o.Counts[i].Condition]
	}
	if len(o.Counts) > 0 {
		o.Title = fmt.Sprintf("%d %s", o.Counts[0].N, o.Counts[0].Condition)
	}
	slices.SortStableFunc(o.Rows, func(a, b row) int { return cmp.Compare(b.Severity, a.Severity) })
	return o
}

func poolRow(p *poolDocument, at time.Time) row {
	nan := number(math.NaN())
	r := row{Pool: p.Name, Engines: p.Engines, Path: "/pools/" + p.ID, For: age(at.Sub(p.Since))}
	r.engineDocument = engineDocument{diagnosisDocument: p.diagnosisDocument, Running: nan, Waiting: nan, KV: nan, FirstToken: nan, FirstTokenUsual: nan, TokenGap: nan, TokenGapUsual: nan}
	return r
}

func (f *fleetServer) row(e engineDocument, at time.Time) row {
	r := row{engineDocument: e, Path: "/engines/" + e.ID, For: age(at.Sub(e.Since))}
	if e.DataAt.Unix() > 0 { // A server that was never read has none.
		r.Age = age(at.Sub(e.DataAt))
	}
	f.remembering.Lock()
	defer f.remembering.Unlock()
	if c := f.history.engines[e.ID]; c != nil {
		for n := range drawn {
			r.Curves[n] = polyline(c.points(n, at))
		}
	}
	return r
}

// polyline are the points of a curve in a box of 60 by 32, from 0 to its greatest value; empty without two values.
func polyline(points []float32) string {
	most, known := float32(0), 0
	for _, p := range points {
		if p == p { // not NaN
			most, known = max(most, p), known+1
		}
	}
	if known < 2 || most <= 0 {
		return ""
	}
	line := make([]byte, 0, 6*len(points))
	for i, p := range points {
		if p == p { // not NaN
			line = append(strconv.AppendInt(line, int64(i), 10), ',')
			line = append(strconv.AppendInt(line, 31-int64(30*p/most+0.5), 10), ' ')
		}
	}
	return string(bytes.TrimSpace(line))
}

// render writes a page. A reader that is slow holds no lock.
func render(w http.ResponseWriter, status int, name string, data any) {
	body, err := rendered(name, data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", htmlType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

const htmlType = "text/html; charset=utf-8"

func rendered(name string, data any) ([]byte, error) {
	var body bytes.Buffer
	err := page.ExecuteTemplate(&body, name, data)
	return body.Bytes(), err
}
