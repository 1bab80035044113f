package window

import "hash/maphash"

// existed remembers removed series or groups: a bounded number of hashes, with a number
// for each. The oldest is forgotten first. Once one has been forgotten, it is unknown
// whether something that is not in the set existed before.
type existed struct {
	limit  int
	number map[uint64]int
	// order is a ring of the hashes. next is the place of the oldest once it is full.
	order []uint64
	next  int
	// lost is true once a hash has been forgotten.
	lost bool
}

const (
	// groupsExisted and seriesExisted are the most hashes of a resource and of a group.
	// A hash takes about 40 bytes.
	groupsExisted = 1024
	seriesExisted = 64
)

// unnumbered stands for a hash without a number.
const unnumbered = -1

var existedSeed = maphash.MakeSeed()

func hashOf(key string) uint64 { return maphash.String(existedSeed, key) }

func hashOfSeries(s labelled) uint64 { return maphash.Comparable(existedSeed, s) }

// add remembers a hash.
func (e *existed) add(hash uint64, number int) {
	if _, known := e.number[hash]; known {
		if number != unnumbered {
			e.number[hash] = number
		}
		return
	}
	if e.number == nil {
		e.number = map[uint64]int{}
	}
	if len(e.order) < e.limit {
		e.order = append(e.order, hash)
	} else {
		e.lost = true
		delete(e.number, e.order[e.next])
		e.order[e.next] = hash
		e.next = (e.next + 1) % e.limit
	}
	e.number[hash] = number
}

// unknown reports whether something may have existed before.
func (e *existed) unknown(hash uint64) bool {
	_, was := e.number[hash]
	return was || e.lost
}
