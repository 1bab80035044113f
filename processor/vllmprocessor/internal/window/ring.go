package window

// ring stores the newest entries of a timeline. An entry is a number.
type ring[T any] struct{ values []T }

func (r *ring[T]) places() int64 { return int64(len(r.values)) }

// at returns the entry of a batch. The caller makes sure that it is stored.
func (r *ring[T]) at(seq int64) *T { return &r.values[seq%r.places()] }

// oldest is the oldest batch that is stored where newest is the newest.
func (r *ring[T]) oldest(newest int64) int64 { return newest - r.places() + 1 }

// reserve makes room for keep entries, including the one after newest.
func (r *ring[T]) reserve(newest, keep int64) {
	places := r.places()
	if places >= keep && places > 0 {
		return
	}
	grown := ring[T]{values: make([]T, sizeFor(keep))}
	if places > 0 {
		for seq := max(r.oldest(newest), 0); seq <= newest; seq++ {
			*grown.at(seq) = *r.at(seq)
		}
	}
	*r = grown
}

// sizeFor returns the number of places for keep entries: 2, 4, 6 and so on, and from 16 on
// each an eighth more than the one before. So a ring that grows with the timeline is not
// copied for each entry, and at most an eighth of it is free once it is large.
func sizeFor(keep int64) int64 {
	size := int64(2)
	for size < keep {
		size += max(2, size/8)
	}
	return size
}
