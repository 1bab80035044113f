package engine

import "github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"

// mediaLookup is an item looked up in the multi-modal cache of the front end.
type mediaLookup struct {
	at    float64
	found bool
}

// lookUpMedia looks an image up. The cache never evicts one.
func (s *Server) lookUpMedia(r *request) {
	if r.media == 0 || r.end == EndRefused {
		return
	}
	if s.media == nil {
		s.media = map[int]bool{}
	}
	s.lookups = append(s.lookups, mediaLookup{s.now, s.media[r.media]})
	s.media[r.media] = true
}

// countMedia counts the lookups so far. vLLM counts them with the next report of an engine,
// whichever that is.
func (s *Server) countMedia(st *observed.Stats, stamp float64) {
	n := 0
	for ; n < len(s.lookups) && s.lookups[n].at <= stamp; n++ {
		st.MediaQueries++
		if s.lookups[n].found {
			st.MediaHits++
		}
	}
	s.lookups = append(s.lookups[:0], s.lookups[n:]...)
}
