// Package compare compares a run of a real vLLM with one of the simulator, point by point.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
)

// Table compares a run of a real server with a simulated one of the same stories, and returns tables in Markdown. heard is the
// harm of each with what was said of it.
func Table(played, simulated *run.Run, heard [2][]judge.Heard) string {
	var b strings.Builder
	both := [2]*measured{measure(played), measure(simulated)}
	b.WriteString("| phase | what | real | simulated | simulated / real |\n|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| | requests/s that it serves | %.2f | %.2f | %s |\n", played.Capacity, simulated.Capacity, quotient(played.Capacity, simulated.Capacity))
	for i := range min(len(played.Spans), len(simulated.Spans)) {
		name := played.Play.Phases[i].Name
		for _, what := range names(both[0].phases[i].values, both[1].phases[i].values) {
			x, y := both[0].phases[i].values[what], both[1].phases[i].values[what]
			if x != 0 || y != 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, what[2:], figure(x), figure(y), quotient(x, y))
			}
		}
	}
	exposed(&b, both)
	b.WriteString("\n| grows otherwise in the steady phase | real | simulated |\n|---|---|---|\n")
	for _, series := range names(both[0].grows, both[1].grows) {
		x, is := both[0].grows[series]
		y, too := both[1].grows[series]
		if counted := !strings.Contains(series, "_bucket{") && !strings.Contains(series, "_created"); is && too && counted && apart(x, y) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", series, figure(x), figure(y))
		}
	}
	b.WriteString("\n| phase | moves only on the real server | moves only on the simulated one |\n|---|---|---|\n")
	for i := range min(len(played.Spans), len(simulated.Spans)) {
		x, y := both[0].phases[i].moves, both[1].phases[i].moves
		x, y = shared(x, both[1].families), shared(y, both[0].families)
		if !maps.Equal(x, y) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", played.Play.Phases[i].Name, listed(without(x, y)), listed(without(y, x)))
		}
	}
	harmed(&b, played, simulated, heard)
	return b.String()
}

// figures are the values of the short form.
var figures = []string{
	"a answered", "b first token, mean, s", "b first token, p95, s", "c per token, mean, s",
	"e running, mean of scrapes", "e waiting, most", "e KV usage, most",
}

// Both is a run of a real server and one of the simulator, with the harm of each.
type Both struct {
	Runs  [2]*run.Run
	Heard [2][]judge.Heard
}

// Summary is the short form of Table for several runs: how the simulated value relates to the real one, over all phases.
func Summary(all []Both) string {
	quotients := map[string][]float64{}
	felt := map[[2]bool]int{}
	for _, one := range all {
		x, y := measure(one.Runs[0]), measure(one.Runs[1])
		for i := range min(len(x.phases), len(y.phases)) {
			for _, of := range figures {
				if first := x.phases[i].values[of]; first != 0 {
					quotients[of] = append(quotients[of], y.phases[i].values[of]/first)
				}
			}
		}
		for _, h := range harms(one.Runs[0], one.Runs[1], one.Heard) {
			felt[[2]bool{h.said[0] != notFelt, h.said[1] != notFelt}]++
		}
	}
	var b strings.Builder
	b.WriteString("| Simulated / real | Phases | Median | A tenth below | A tenth above |\n|---|---|---|---|---|\n")
	for _, of := range figures {
		if q := slices.Sorted(slices.Values(quotients[of])); len(q) > 0 {
			fmt.Fprintf(&b, "| %s | %d | %.2f | %.2f | %.2f |\n", of[2:], len(q), q[len(q)/2], q[len(q)/10], q[len(q)*9/10])
		}
	}
	fmt.Fprintf(&b, "\nUsers felt %d harms on both, %d on the real server only, and %d on the simulated one only.\n", felt[[2]bool{true, true}], felt[[2]bool{true, false}], felt[[2]bool{false, true}])
	return b.String()
}

// exposed says which families and series only one of two runs has.
func exposed(b *strings.Builder, both [2]*measured) {
	for _, one := range []struct {
		what string
		sets [2]map[string]bool
	}{
		{"families", [2]map[string]bool{both[0].families, both[1].families}},
		{"series, beside those of such families", [2]map[string]bool{both[0].seriesOf(both[1]), both[1].seriesOf(both[0])}},
	} {
		fmt.Fprintf(b, "\nOnly the real server has these %s: %s.\n\nOnly the simulated one has: %s.\n",
			one.what, listed(without(one.sets[0], one.sets[1])), listed(without(one.sets[1], one.sets[0])))
	}
}

// harmed is what was felt and said in each of two runs.
func harmed(b *strings.Builder, played, simulated *run.Run, heard [2][]judge.Heard) {
	b.WriteString("\n| phase | harm | real | simulated |\n|---|---|---|---|\n")
	for _, one := range harms(played, simulated, heard) {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", one.phase, one.what, one.said[0], one.said[1])
	}
}

// apart reports whether two numbers differ by more than a third, and by more than one.
func apart(x, y float64) bool {
	return math.Abs(x-y) > max(1, 0.33*max(math.Abs(x), math.Abs(y)))
}

// names are those of values that at least one of two runs has. They begin with a letter and a
// blank, which make their order.
func names(x, y map[string]float64) []string {
	all := maps.Clone(x)
	maps.Copy(all, y)
	return slices.Sorted(maps.Keys(all))
}

func without(all, some map[string]bool) map[string]bool {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return some[name] })
	return out
}

func shared(all, with map[string]bool) map[string]bool {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name string, _ bool) bool { return !with[name] })
	return out
}

func listed(all map[string]bool) string {
	if len(all) == 0 {
		return "none"
	}
	return "`" + strings.Join(slices.Sorted(maps.Keys(all)), "`, `") + "`"
}

func figure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func quotient(x, y float64) string {
	if x == 0 || y == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", y/x)
}

const notFelt = "not felt"

// harm is harm that was felt in a phase, in one of two runs or in both.
type harm struct {
	phase, what string
	said        [2]string
}

func harms(played, simulated *run.Run, heard [2][]judge.Heard) (out []harm) {
	for side, r := range []*run.Run{played, simulated} {
		for i := range heard[side] {
			h := &heard[side][i]
			phase := r.PhaseAt(h.From)
			what := string(h.Level) + ": " + h.What
			at := slices.IndexFunc(out, func(o harm) bool { return o.phase == phase && o.what == what && o.said[side] == "" })
			if at < 0 {
				out = append(out, harm{phase: phase, what: what})
				at = len(out) - 1
			}
			said := "not reported"
			if h.Reported() {
				said = fmt.Sprintf("%s after %.0f s, cleared after %.0f s", strings.TrimSuffix(h.Report.Condition+" "+h.Report.Cause, " "), h.After, h.Cleared)
			}
			out[at].said[side] = fmt.Sprintf("%.0f to %.0f s, worst %.2g: %s", h.From, h.To, h.Worst, said)
		}
	}
	for i := range out {
		for side := range out[i].said {
			out[i].said[side] = cmp.Or(out[i].said[side], notFelt)
		}
	}
	return out
}
