package fleet

// Sample is a number at a time, both in unix nanoseconds.
type Sample struct {
	At, Start uint64
	Value     float64
}

// Series is what a backend that follows OTLP knows of one counter. A value counts from the one before, and from zero where
// the start time is another one. A sample whose start is its own time has an unknown past.
type Series struct {
	Known       bool
	First, Last Sample
	Increments  float64
	// Resets are changes of the start time, and Falls samples that fell without. A fall counts from zero.
	Resets, Falls int
	// Fell are the samples of the first fall, the later one last.
	Fell [2]Sample
}

func (s *Series) fall(before, after Sample) {
	s.Falls++
	if s.Falls == 1 {
		s.Fell = [2]Sample{before, after}
	}
}

// Add takes a sample. One that arrives late changes only where the series begins, and is checked.
func (s *Series) Add(p Sample) {
	switch {
	case !s.Known:
		s.Known, s.First, s.Last = true, p, p
	case p.At == s.Last.At:
		if p.Value != s.Last.Value {
			s.fall(s.Last, p)
		}
	case p.At < s.Last.At:
		if p.Start == s.Last.Start && p.Value > s.Last.Value {
			s.fall(p, s.Last)
		}
		if p.At < s.First.At && p.Start == s.First.Start {
			s.Increments += s.First.Value - p.Value
			s.First = p
		}
	default:
		s.follow(p)
	}
}

// follow takes a sample that is later than all others.
func (s *Series) follow(p Sample) {
	before := s.Last
	s.Last = p
	if p.Start != before.Start {
		s.Resets++
		if p.Start != p.At {
			s.Increments += p.Value
		}
		return
	}
	if p.Value < before.Value {
		s.fall(before, p)
		s.Increments += p.Value
		return
	}
	s.Increments += p.Value - before.Value
}
