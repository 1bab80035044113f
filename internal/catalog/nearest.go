package catalog

// Nearest returns the name of the metric among those that fit whose name is most
// like the one given, for messages; empty where none fits.
func Nearest(name string, fits func(*Metric) bool) string {
	best, nearest := -1, ""
	for i := range metrics {
		if !fits(&metrics[i]) {
			continue
		}
		if d := editDistance(name, metrics[i].Name); best < 0 || d < best {
			best, nearest = d, metrics[i].Name
		}
	}
	return nearest
}

// editDistance is the number of letters to insert, remove or change to get from
// a to b (Levenshtein).
func editDistance(a, b string) int {
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
