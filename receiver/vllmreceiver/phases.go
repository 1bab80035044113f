package vllmreceiver

import (
	"hash/fnv"
	"time"
)

// The scrapes of many targets are spread over the interval, in groups: the targets of a group
// are scraped at the same moment. A scrape that follows another one at once finds the code, the
// layout and the plan in the cache of the processor, and takes less than half of the processor
// time of one for which the machine was woken up (docs/why/performance.md).
const (
	// longestStep is the longest time between two groups.
	longestStep = time.Second
	// together is the size of a group where the step is shorter than that. It bounds how many
	// bodies are in memory at a time.
	together = 16
)

// step returns the time between two groups for a number of targets. It is at most the interval.
// Each step is a half of the next longer one, so that the groups of any number of targets fall
// together.
func step(interval time.Duration, targets int) time.Duration {
	out := min(longestStep, interval)
	for longest := interval * together / time.Duration(max(1, targets)); out > longest && out > 1; {
		out /= 2
	}
	return out
}

// phaseOf returns when the i-th of a number of targets is scraped for the first time, after the
// first one. It is less than the interval.
func phaseOf(interval time.Duration, i, targets int) time.Duration {
	return (interval * time.Duration(i) / time.Duration(targets)).Truncate(step(interval, targets))
}

// phaseAt is the same for a target that is found later, one of a number of targets. It depends
// on the address, so that the targets that a restart finds at once are spread as well. passed is
// the time since the first target began: the groups of all targets fall together.
func phaseAt(interval time.Duration, address string, targets int, passed time.Duration) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(address))
	after := passed + time.Duration(hash.Sum64()%uint64(interval))
	return after.Truncate(step(interval, targets)) - passed
}
