package engine

// residency follows sampled KV blocks from when they are taken until they are
// taken for something else, as vLLM does with --kv-cache-metrics
// (core/kv_cache_metrics.py).
type residency struct {
	// share of the blocks taken is followed, chosen by seed and count.
	share       float64
	seed, count uint64
	// now is when the engine takes blocks, in seconds.
	now   float64
	lives map[int32]*blockLife
	// ended are those that were not reported yet.
	ended []blockEnd
}

// blockLife is a block that holds something. uses are the last times at which it
// was found by its content, at most four. Taking it is not a use.
type blockLife struct {
	taken, last float64
	uses        []float64
}

// blockEnd is the observation of an evicted block, in seconds: its lifetime, the time
// since its last use or since it was taken, and the times between uses.
type blockEnd struct {
	lifetime, idle float64
	gaps           []float64
}

const usesKept = 4

// setTime sets the time, in seconds.
func (r *residency) setTime(now float64) {
	if r != nil {
		r.now = now
	}
}

// drop stops following a block.
func (r *residency) drop(b int32) {
	if r != nil {
		delete(r.lives, b)
	}
}

// recordTaken records that a block is taken, which evicts its former content.
func (r *residency) recordTaken(b int32) {
	if r == nil {
		return
	}
	if life := r.lives[b]; life != nil {
		end := blockEnd{lifetime: r.now - life.taken, idle: r.now - life.last}
		for i := 1; i < len(life.uses); i++ {
			end.gaps = append(end.gaps, life.uses[i]-life.uses[i-1])
		}
		r.ended = append(r.ended, end)
		delete(r.lives, b)
	}
	r.count++
	if uniform(r.seed, r.count) < r.share {
		r.lives[b] = &blockLife{taken: r.now, last: r.now}
	}
}

// recordFound records that a block is used again by its content.
func (r *residency) recordFound(b int32) {
	if r == nil {
		return
	}
	life := r.lives[b]
	if life == nil {
		return
	}
	life.last = r.now
	if len(life.uses) == usesKept {
		life.uses = append(life.uses[:0], life.uses[1:]...)
	}
	life.uses = append(life.uses, r.now)
}

// forget drops all blocks, as when the cache is emptied.
func (r *residency) forget() {
	if r != nil {
		clear(r.lives)
	}
}
