package stories

// counts is the share of the hours of a model, traffic and band that were neither harmful nor
// just after harm, and in which no objective was missed for long: traffic varies as the
// traces do, so it has hours above the knee. It is what 597 healthy stories of the seeds
// from 33,000,000 had (4 to 21 in each cell), less a standard error, so that most cells get enough
// hours. It only says how many hours to play, and nothing rests on it.
var counts = map[string]map[string][3]float64{
	"8b-h100": {
		"conversation": {0.97, 0.41, 0},
		"long-context": {0.91, 0.64, 0.19},
		"assistant":    {1, 1, 0.97},
	},
	"8b-l40s": {
		"conversation": {0.93, 0.52, 0.07},
		"batch":        {0.68, 0.46, 0.19},
	},
	"8b-a100": {
		"batch": {0.73, 0.47, 0.14},
	},
	"32b-h200": {
		"tenants":      {0.65, 0.41, 0.14},
		"reasoning":    {0.81, 0.63, 0.33},
		"long-context": {0.99, 0.9, 0.31},
	},
	"70b-tp4-h100": {
		"tenants":   {0.71, 0.45, 0.15},
		"reasoning": {0.8, 0.61, 0.35},
	},
	"70b-tp8-h100-fp8": {
		"assistant": {0.89, 0.8, 0.49},
	},
}

// Below 80 % of the knee every cell is played until enough hours count. Above, which no bar is
// about, that would take many times as long in most cells: nearlyAll is the share from which it
// is done there, too. Otherwise a quarter of the wanted hours are played, and an eighth where the
// share is below hardlyAny.
const nearlyAll, hardlyAny = 0.8, 0.18

// playedHours is how many hours of a band of a background are played so that so many count.
func playedHours(hours float64, place *background, band int) float64 {
	share := counts[place.model][place.traffic][band]
	switch {
	case band < len(bands)-1 || share >= nearlyAll:
		return hours / share
	case share >= hardlyAny:
		return hours / 4
	}
	return hours / 8
}
