package compare

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
)

// measured is what is compared of a run.
type measured struct {
	families map[string]bool
	series   map[string]bool
	phases   []phase
	// grows is by how much each series is greater at the end of the first phase.
	grows map[string]float64
}

// phase has values by name, and the families of which a series changes between two scrapes.
type phase struct {
	values map[string]float64
	moves  map[string]bool
}

// page is one scrape: its samples by name and labels.
type page map[string]float64

func read(body []byte) page {
	out := page{}
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			out[line[:at]] = value
		}
	}
	return out
}

// family is the family of a series.
func family(series string) string {
	name, _, _ := strings.Cut(series, "{")
	for _, ending := range []string{"_bucket", "_count", "_sum", "_total", "_created"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// sum adds up the samples with a name, and with a label where one is given.
func (p page) sum(name, label string) (out float64) {
	for series, v := range p {
		if n, labels, _ := strings.Cut(series, "{"); n == name && strings.Contains(labels, label) {
			out += v
		}
	}
	return out
}

func measure(r *run.Run) *measured {
	m := &measured{families: map[string]bool{}, series: map[string]bool{}, grows: map[string]float64{}}
	pages := make([]page, len(r.Scrapes))
	for i := range r.Scrapes {
		if r.Scrapes[i].Status != http.StatusOK {
			continue
		}
		pages[i] = read(r.Scrapes[i].Body)
		for series := range pages[i] {
			m.families[family(series)] = true
			// What a version is called, and when it began, is not a difference.
			if !strings.HasPrefix(series, "python_info") && !strings.HasPrefix(series, "vllm:lora_requests_info") {
				m.series[series] = true
			}
		}
	}
	for i := range r.Scrapes {
		if len(r.Spans) == 0 || r.Scrapes[i].At > r.Spans[0].To {
			break
		}
		for series, v := range pages[i] {
			m.grows[series] = v - pages[0][series]
		}
	}
	for i := range r.Spans {
		m.phases = append(m.phases, measurePhase(r, i, pages))
	}
	return m
}

// seriesOf are the series of families that another run has as well. Buckets are not among them.
func (m *measured) seriesOf(other *measured) map[string]bool {
	out := maps.Clone(m.series)
	maps.DeleteFunc(out, func(s string, _ bool) bool {
		return !other.families[family(s)] || strings.Contains(s, "_bucket{") || strings.Contains(s, "cache_config_info")
	})
	return out
}

const (
	stepsName, tokensName = "vllm:iteration_tokens_total_count", "vllm:generation_tokens_total"
	runningName           = "vllm:num_requests_running"
)

func measurePhase(r *run.Run, number int, pages []page) phase {
	p := phase{values: map[string]float64{}, moves: map[string]bool{}}
	p.clients(r, number)
	span := r.Spans[number]
	var inside []page
	var at []float64
	for i := range r.Scrapes {
		s := &r.Scrapes[i]
		// A fault begins with its phase: what came before the first scrape in it can be from before.
		if s.At < span.From+0.5 || s.At > span.To-0.5 {
			continue
		}
		if pages[i] == nil {
			p.values["g scrapes without an answer"]++
			continue
		}
		inside, at = append(inside, pages[i]), append(at, s.At)
	}
	for name, short := range map[string]string{
		runningName: "running", "vllm:num_requests_waiting": "waiting", "vllm:kv_cache_usage_perc": "KV usage", "process_open_fds": "process_open_fds",
	} {
		var all []float64
		for _, one := range inside {
			all = append(all, one.sum(name, ""))
		}
		if len(all) > 0 {
			p.values["e "+short+", mean of scrapes"] = mean(all)
			p.values["e "+short+", most"] = slices.Max(all)
			p.values["e "+short+", last scrape"] = all[len(all)-1]
		}
	}
	if len(inside) < 2 {
		return p
	}
	first, last := inside[0], inside[len(inside)-1]
	for i := 1; i < len(inside); i++ {
		for series, v := range inside[i] {
			if before, was := inside[i-1][series]; !was || before != v {
				p.moves[family(series)] = true
			}
		}
	}
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		label := `finished_reason="` + reason + `"`
		p.values["f finished: "+reason] = last.sum("vllm:request_success_total", label) - first.sum("vllm:request_success_total", label)
	}
	for _, status := range []string{"2xx", "4xx", "5xx"} {
		label := `status="` + status + `"`
		p.values["f http_requests: "+status] = last.sum("http_requests_total", label) - first.sum("http_requests_total", label)
	}
	p.values["f preemptions"] = last.sum("vllm:num_preemptions_total", "") - first.sum("vllm:num_preemptions_total", "")
	p.values["f found of the prompts' tokens, %"] = 100 * ratio(last, first, "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
	p.steps(inside, at)
	return p
}

func ratio(last, first page, name, of string) float64 {
	if all := last.sum(of, "") - first.sum(of, ""); all > 0 {
		return (last.sum(name, "") - first.sum(name, "")) / all
	}
	return 0
}

// batches are sizes of batches in tokens per step.
var batches = []struct {
	from float64
	name string
}{{0, "1 to 3"}, {3, "3 to 6"}, {6, "6 to 10"}, {10, "10 to 14"}, {14, "14 and more"}}

// steps are the times of steps by the size of their batch. Only where requests run at both of
// two scrapes was the server likely busy between them.
func (p *phase) steps(inside []page, at []float64) {
	type sum struct{ steps, seconds float64 }
	sums := map[string]sum{}
	for i := 1; i < len(inside); i++ {
		x, y := inside[i-1], inside[i]
		steps := y.sum(stepsName, "") - x.sum(stepsName, "")
		if x.sum(runningName, "") == 0 || y.sum(runningName, "") == 0 || steps <= 0 {
			continue
		}
		batch, name := (y.sum(tokensName, "")-x.sum(tokensName, ""))/steps, ""
		for _, size := range batches {
			if batch >= size.from {
				name = size.name
			}
		}
		s := sums[name]
		sums[name] = sum{s.steps + steps, s.seconds + at[i] - at[i-1]}
	}
	for name, s := range sums {
		p.values["h step, ms, of "+name+" tokens"] = 1000 * s.seconds / s.steps
	}
}

// clients are the values that clients saw.
func (p *phase) clients(r *run.Run, number int) {
	var first, token, whole []float64
	for i := range r.Sent {
		s := &r.Sent[i]
		if s.Phase != number {
			continue
		}
		p.values["a "+string(s.How)]++
		if s.How != judge.Answered || len(s.Tokens) == 0 {
			continue
		}
		first, whole = append(first, s.Tokens[0]), append(whole, s.End)
		if n := len(s.Tokens); n > 1 {
			token = append(token, (s.Tokens[n-1]-s.Tokens[0])/float64(n-1))
		}
	}
	for name, all := range map[string][]float64{"b first token": first, "c per token": token, "d whole answer": whole} {
		if len(all) > 0 {
			slices.Sort(all)
			p.values[name+", mean, s"] = mean(all)
			p.values[name+", p95, s"] = all[len(all)*95/100]
		}
	}
}

func mean(all []float64) (out float64) {
	for _, v := range all {
		out += v / float64(len(all))
	}
	return out
}
