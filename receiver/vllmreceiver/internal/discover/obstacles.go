package discover

import (
	"maps"
	"slices"
	"sync"
)

// obstacles has why parts of the discovery do not work now.
type obstacles struct {
	// changed, if not nil, is called with one obstacle, as a sentence, or with "" if there is none.
	changed func(string)

	mu sync.Mutex
	// found has the obstacle of each part.
	found map[any]string
	last  string
}

func newObstacles(changed func(string)) *obstacles {
	return &obstacles{changed: changed, found: map[any]string{}}
}

// set sets the obstacle of one part; "" means that the part works.
func (o *obstacles) set(part any, sentence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sentence == "" {
		delete(o.found, part)
	} else {
		o.found[part] = sentence
	}
	one := ""
	if len(o.found) > 0 {
		one = slices.Min(slices.Collect(maps.Values(o.found)))
	}
	if one != o.last && o.changed != nil {
		o.last = one
		o.changed(one)
	}
}
