package catalog

import "strings"

// Nearest returns the name that is most similar to the given one, among the metrics for
// which fits is true. It is for error messages, and empty if no metric fits.
func Nearest(name string, fits func(*Metric) bool) string {
	for _, match := range BySource(name) {
		if fits(match.Metric) {
			return match.Metric.Name
		}
	}
	best, nearest := -1, ""
	for _, meant := range []string{name, spelledOut(name), usage.Replace(name)} {
		if d, found := nearestTo(meant, fits); found != "" && (best < 0 || d < best) {
			best, nearest = d, found
		}
	}
	return nearest
}

// abbreviations are the common abbreviations of the latencies.
var abbreviations = map[string]string{
	"ttft": "time_to_first_token", "itl": "inter_token_latency", "tpot": "request.time_per_output_token", "e2e": "e2e_request_latency",
}

// spelledOut replaces an abbreviation in a name by its full form.
func spelledOut(name string) string {
	rest, long := "", name
	if begin, end, found := strings.Cut(name, "_"); found {
		long, rest = begin, "_"+end
	}
	namespace := ""
	if i := strings.LastIndexByte(long, '.'); i >= 0 {
		namespace, long = long[:i+1], long[i+1:]
	}
	if full, known := abbreviations[long]; known {
		return namespace + full + rest
	}
	return name
}

// usage is the word of vLLM and of others for what is called utilization here.
var usage = strings.NewReplacer("usage_perc", "utilization", "usage", "utilization")

func nearestTo(name string, fits func(*Metric) bool) (best int, nearest string) {
	best = -1
	for i := range metrics {
		if !fits(&metrics[i]) {
			continue
		}
		if d := EditDistance(name, metrics[i].Name); best < 0 || d < best {
			best, nearest = d, metrics[i].Name
		}
	}
	return best, nearest
}

// EditDistance is the number of letters to insert, remove or change to get from a to b
// (Levenshtein distance).
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
