package gpu

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Requests about servers and GPUs come at the same time, while servers end. The number of GPUs that
// are kept is right afterwards: none without servers.
func TestManyRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := NewStore(time.Minute)
	s.seen.Store(true)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range int64(500) {
				key := strconv.Itoa((i + int(j)) % 3)
				s.Place(key, Owner{PodUID: "u" + strconv.Itoa(int(j/100)%2), Host: "h"})
				w := Workload{Key: key, Exporter: key, Owner: Owner{PodUID: "u" + key}}
				s.sends(w, j, reading("GPU-"+strconv.Itoa(i), map[Field]float64{Power: float64(j)}))
				s.Of(key, func(joined *Joined) {
					for _, d := range joined.Devices {
						_ = d.MeanOf(Power, span(0, j), joined.Apart)
					}
				})
				if j%7 == 0 {
					s.Remove(key)
				}
				if j%50 == 0 {
					s.Expire(at(j))
				}
			}
		})
	}
	all.Wait()
	for i := range 3 {
		s.Remove(strconv.Itoa(i))
	}
	assert.Zero(t, s.Devices())
	assert.Empty(t, s.workloads)
	assert.Empty(t, s.at)
}
