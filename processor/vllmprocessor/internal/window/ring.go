package window

// ring stores the newest entries of a timeline. Each entry has stride numbers. The number
// of places is a power of two.
type ring[T any] struct {
	values []T
	stride int
}

func (r *ring[T]) places() int64 { return int64(len(r.values) / r.stride) }

// at returns the entry of a batch. The caller makes sure that it is stored.
func (r *ring[T]) at(seq int64) []T {
	place := int(seq&(r.places()-1)) * r.stride
	return r.values[place : place+r.stride : place+r.stride]
}

// oldest is the oldest batch that is stored where newest is the newest.
func (r *ring[T]) oldest(newest int64) int64 { return newest - r.places() + 1 }

// reserve makes room for keep entries, including the one after newest.
func (r *ring[T]) reserve(newest, keep int64) {
	places := r.places()
	if places >= keep && places > 0 {
		return
	}
	grown := ring[T]{stride: r.stride}
	size := max(places, 2)
	for size < keep {
		size *= 2
	}
	grown.values = make([]T, int(size)*r.stride)
	if places > 0 {
		for seq := max(r.oldest(newest), 0); seq <= newest; seq++ {
			copy(grown.at(seq), r.at(seq))
		}
	}
	*r = grown
}
