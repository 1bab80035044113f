package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Played is a run with what was said about it, at each interval.
type Played struct {
	Run  *run.Run
	Said []*said.All
}

// Table writes a table of the stories of runs: what users felt, and what was said at each
// interval.
func Table(book *story.Book, plays []Played) string {
	var b strings.Builder
	b.WriteString("| Story | What users felt | Said, scraped every 5 s | Said, scraped every 15 s |\n|---|---|---|---|\n")
	for _, played := range plays {
		r := played.Run
		for _, name := range r.Play.Stories {
			from, to := spanOf(r, name)
			about := name
			for _, s := range book.Stories {
				if s.Name == name {
					about = fmt.Sprintf("**%s**: %s", name, s.About)
				}
			}
			for _, cells := range rows(played.Said, from, to) {
				fmt.Fprintf(&b, "| %s | %s |\n", pageparts.Cell(about), strings.Join(cells, " | "))
				about = ""
			}
		}
	}
	return b.String()
}

// spanOf is when a story was, in seconds of its run.
func spanOf(r *run.Run, name string) (from, to float64) {
	from = -1
	for i, s := range r.Spans {
		if strings.HasPrefix(r.Play.Phases[i].Name, name+"/") {
			if from < 0 {
				from = s.From
			}
			to = s.To
		}
	}
	return from, to
}

// rows are the cells of the harms that began in a time: what was felt, and what was said of it
// at each interval. Of one wait, harm of five times the usual stands in the row of great harm.
func rows(all []*said.All, from, to float64) (out [][]string) {
	for i := range all[0].Felt {
		f := &all[0].Felt[i]
		if f.From < from || f.From >= to || f.Level == judge.Clear && slices.ContainsFunc(all[0].Felt, func(g judge.Felt) bool {
			return g.Level == judge.Great && g.What == f.What && g.From < f.To && g.To > f.From
		}) {
			continue
		}
		cells := []string{fmt.Sprintf("%s: %s up to %s, for %.0f s", f.Level, f.What, worst(f), f.To-f.From)}
		for _, a := range all {
			cells = append(cells, Heard(&a.Heard[i]))
		}
		out = append(out, cells)
	}
	if len(out) == 0 {
		out = [][]string{{"no harm of these kinds", "", ""}}
	}
	for j, a := range all {
		for _, s := range a.Unfelt {
			if s.At >= from && s.At < to {
				last := out[len(out)-1]
				last[j+1] = strings.TrimPrefix(last[j+1]+"; ", "; ") + fmt.Sprintf("%s after %.0f s without such harm", verdict(s), s.At-from)
			}
		}
	}
	return out
}

// outcomes counts what became of harm of a level.
func outcomes(plays []Played, level judge.Level, interval int) (n, reported, within, paged int, denied float64) {
	for _, played := range plays {
		all := played.Said[interval]
		for i := range all.Heard {
			h := &all.Heard[i]
			if h.Level != level {
				continue
			}
			n++
			if h.Reported() {
				reported++
				if h.After <= level.Deadline(all.Interval.Seconds()) {
					within++
				}
			}
			if h.Paged >= 0 {
				paged++
			}
			denied += h.Denied
		}
	}
	return n, reported, within, paged, denied
}

// Summary writes how much harm was reported, and how much in time, at each interval.
func Summary(book *story.Book, plays []Played) string {
	var b strings.Builder
	b.WriteString("| Harm | Interval | Times | Reported | In time | Paged | Said to be well meanwhile |\n|---|---|---|---|---|---|---|\n")
	for _, level := range []judge.Level{judge.Great, judge.Outage, judge.Clear} {
		for interval := range plays[0].Said {
			n, reported, within, paged, denied := outcomes(plays, level, interval)
			every := plays[0].Said[interval].Interval
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d (within %.0f s) | %d | %.0f s |\n", level, every, n, reported, within, level.Deadline(every.Seconds()), paged, denied)
		}
	}
	for interval := range plays[0].Said {
		felt, reported, right := 0, 0, 0
		for _, played := range plays {
			n, said, why := said.Minutes(book, played.Run, played.Said[interval])
			felt, reported, right = felt+n, reported+said, right+why
		}
		share := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
		fmt.Fprintf(&b, "\nScraped every %s, %d minutes ended while users waited five times the usual or more: %d were reported then (%.0f %%), %d of these with the right reason (%.0f %%).\n",
			plays[0].Said[interval].Interval, felt, reported, share(reported, felt), right, share(right, reported))
	}
	return b.String()
}

// Misses writes what was said wrongly or too late, as a list by story.
func Misses(book *story.Book, plays []Played) string {
	var b strings.Builder
	n := 0
	for _, played := range plays {
		for _, all := range played.Said {
			for _, m := range said.Misses(book, played.Run, all) {
				fmt.Fprintf(&b, "- %s\n", m)
				n++
			}
		}
	}
	if n == 0 {
		return "None.\n"
	}
	return b.String()
}
