package page

import (
	"cmp"
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

// Table writes a line for each story of runs: the gravest harm that users felt, and after which time it was reported as
// what, at each interval.
func Table(book *story.Book, plays []Played) string {
	var b strings.Builder
	b.WriteString("| Story | What happens | Gravest harm | Reported after, s | As |\n|---|---|---|---|---|\n")
	for _, played := range plays {
		r := played.Run
		for _, name := range r.Play.Stories {
			about := ""
			for _, s := range book.Stories {
				if s.Name == name {
					about = s.About
				}
			}
			from, to := spanOf(r, name)
			felt, after, as := reported(played.Said, from, to)
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, pageparts.Cell(about), felt, after, as)
		}
	}
	return strings.ReplaceAll(b.String(), "  ", " ")
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

// reported are the cells of the gravest harm that started in a time.
func reported(all []*said.All, from, to float64) (felt, after, as string) {
	gravest := -1
	for i := range all[0].Felt {
		f := &all[0].Felt[i]
		if f.From >= from && f.From < to && (gravest < 0 || all[0].Felt[gravest].Level == judge.Clear && f.Level != judge.Clear) {
			gravest = i
			felt = fmt.Sprintf("%s: %s %s", f.Level, f.What, worst(f))
		}
	}
	var delays, reports []string
	for _, a := range all {
		if gravest >= 0 {
			h := &a.Heard[gravest]
			after := "never"
			if h.Reported() {
				after = fmt.Sprintf("%.0f", max(0, h.After))
				reports = append(reports, brief(h.Report))
			}
			delays = append(delays, after)
		}
		for _, s := range a.Unfelt {
			if s.At >= from && s.At < to {
				reports = append(reports, brief(s)+" without harm")
			}
		}
	}
	return felt, strings.Join(delays, ", "), strings.Join(slices.Compact(reports), "; ")
}

// brief is the cause of a report, or its condition without one.
func brief(s judge.Said) string { return cmp.Or(s.Cause, s.Condition) }

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
	b.WriteString("| Harm | Scrape | Cases | Reported | In time | Paged | Reported healthy |\n|---|---|---|---|---|---|---|\n")
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

// Misses writes what was said wrongly or too late, as a list by phase. Several harms of a phase can have the same miss.
func Misses(book *story.Book, plays []Played) string {
	var lines []string
	for _, played := range plays {
		for _, all := range played.Said {
			for _, m := range said.Misses(book, played.Run, all) {
				parts := strings.Split(m, ": ")
				if line := "- " + parts[0] + ": " + parts[len(parts)-1] + "\n"; !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	return cmp.Or(strings.Join(lines, ""), "None.\n")
}
