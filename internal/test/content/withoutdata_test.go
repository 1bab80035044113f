package content

import "github.com/prometheus/prometheus/promql"

type sample = promql.Sample

// withoutData are the panels that have no data on the simulated deployments, each with the
// reason.
var withoutData = map[string]string{}
