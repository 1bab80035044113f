package replay

import (
	"slices"
	"time"
)

// Episode is a time in which the verdict about a subject stayed the same.
type Episode struct {
	// Subject is what the verdict is about.
	Subject Subject `json:"subject"`
	// From is when the verdict was first given.
	From time.Time `json:"from"`
	// To is when the verdict changed, or the subject was last seen.
	To time.Time `json:"to"`
	// Condition is one of docs/diagnosis.md.
	Condition string `json:"condition"`
	// Severity is from 0 to 3, as in docs/diagnosis.md.
	Severity int `json:"severity"`
	// Cause is the primary cause, one of docs/diagnosis.md.
	Cause string `json:"cause,omitempty"`
	// Detail is the detail of the cause.
	Detail string `json:"detail,omitempty"`
	// Sentence is its meaning.
	Sentence string `json:"sentence"`
	// Evidence are the deciding signals at its start.
	Evidence []string `json:"evidence,omitempty"`
	// Notices are the notices in that time.
	Notices []string `json:"notices,omitempty"`
	// Warmup is true if it ended before the period.
	Warmup bool `json:"warmup,omitempty"`
}

// tracker turns verdicts into episodes. It is not safe for concurrent use.
type tracker struct {
	// silence is the time without a verdict after which an episode is over.
	silence time.Duration
	open    map[Subject]*tracked
	done    []Episode
	// most bounds the number of episodes; dropped counts those above it.
	most, dropped int
}

type tracked struct {
	episode Episode
	last    Verdict
	seen    time.Time
}

// maxEpisodes is how many episodes of one target are kept. A day has 5760 scrapes.
const maxEpisodes = 20_000

func newTracker(silence time.Duration) *tracker {
	return &tracker{silence: silence, open: map[Subject]*tracked{}, most: maxEpisodes}
}

func (t *tracker) see(r *reading) {
	now := t.open[r.subject]
	if now != nil && r.at.Sub(now.seen) > t.silence {
		t.close(now)
		now = nil
	}
	if r.verdict.ended {
		if now != nil {
			now.seen = r.at
			t.close(now)
		}
		return
	}
	if r.verdict.Condition == "" {
		return
	}
	if now != nil && now.last.same(&r.verdict) {
		now.seen = r.at
		for _, n := range r.verdict.Notices {
			if !slices.Contains(now.episode.Notices, n) {
				now.episode.Notices = append(now.episode.Notices, n)
			}
		}
		return
	}
	if now != nil {
		now.seen = r.at
		t.close(now)
	}
	v := r.verdict
	t.open[r.subject] = &tracked{seen: r.at, last: v, episode: Episode{
		Subject: r.subject, From: r.at, Condition: v.Condition, Severity: max(v.Severity, severityOf(v.Condition)),
		Cause: v.Cause, Detail: v.Detail, Sentence: v.Words().Sentence, Evidence: v.evidence(), Notices: v.Notices,
	}}
}

func (t *tracker) close(one *tracked) {
	one.episode.To = one.seen
	delete(t.open, one.episode.Subject)
	if len(t.done) >= t.most {
		t.dropped++
		return
	}
	t.done = append(t.done, one.episode)
}

// finish ends all episodes and returns them in the order of their starts.
func (t *tracker) finish() []Episode {
	for _, one := range t.open {
		t.close(one)
	}
	slices.SortStableFunc(t.done, func(a, b Episode) int { return a.From.Compare(b.From) })
	return t.done
}
