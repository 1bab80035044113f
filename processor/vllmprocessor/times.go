package vllmprocessor

const (
	// timesOfEngines is for how many times of one request values are derived from a
	// server with a single engine. One with n engines has the n-th part of it, because
	// each time brings values of each engine, whatever the request says of them.
	// A server of eight engines that is scraped each 15 s can so be an hour late.
	timesOfEngines = 2000
	// leastTimes is for how many times values are derived from any server.
	leastTimes = 3
)

// times is for how many of the newest times of one request values are derived.
func (r *resource) times() int {
	return max(timesOfEngines/max(r.state.Engines(), 1), leastTimes)
}
