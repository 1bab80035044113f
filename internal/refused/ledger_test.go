package refused

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

var errRefused = errors.New("the queue is full")

const plenty = 1 << 20

// send sends a batch whose outcome is known at once, and returns what was in it.
func send(l *Ledger, err error, series ...string) []string {
	batch := batchOf(15, series...)
	sent := l.Send(15, batch)
	sent.Done(err, plenty)
	return seriesIn(batch)
}

func TestEndsAreSentUntilABatchIsAccepted(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	assert.True(t, l.Idle())
	send(l, errRefused, "a", "-b")
	assert.False(t, l.Idle())
	assert.Equal(t, []string{"a", "-b"}, send(l, errRefused, "a"))
	assert.Equal(t, []string{"-a", "-b"}, send(l, errRefused, "-a"))
	assert.Equal(t, []string{"c", "-a", "-b"}, send(l, nil, "c"))
	assert.True(t, l.Idle())
	assert.Equal(t, []string{"c"}, send(l, nil, "c"))
}

// Ends are on their way, and a later batch arrives. It does not have them: they may arrive.
// When they are refused they come with the batch after it, but for the series that the later
// batch has shown to live, also where that one was refused and the batch after it is only a part.
func TestEndsOnTheirWayWhileALaterBatchArrives(t *testing.T) {
	t.Parallel()
	for _, later := range []error{nil, errRefused} {
		l := &Ledger{}
		under := l.Send(15, batchOf(15, "a", "-b", "-c"))
		assert.False(t, l.Idle())
		batch := batchOf(30, "a", "b")
		sent := l.Send(30, batch)
		assert.Equal(t, []string{"a", "b"}, seriesIn(batch))
		sent.Done(later, plenty)
		under.Done(errRefused, plenty)
		assert.Equal(t, []string{"a", "-c"}, send(l, nil, "a"))
		assert.True(t, l.Idle())
	}
}

// Two batches with ends are on their way, and both are refused.
func TestEndsOfSeveralRefusedBatchesAreKept(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	first, second := l.Send(15, batchOf(15, "-a")), l.Send(30, batchOf(30, "-b"))
	second.Done(errRefused, plenty)
	first.Done(errRefused, plenty)
	assert.ElementsMatch(t, []string{"-a", "-b"}, send(l, nil))
}

// Of what is kept there are at most so many bytes, however many batches are refused. The others
// are counted.
func TestRefusedEndsAreBounded(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	const room = 1000
	dropped := 0
	for i := range 100 {
		batch := batchOf(15, fmt.Sprintf("-series.%d", i))
		dropped += l.Send(15, batch).Done(errRefused, room)
	}
	kept := l.Close()
	assert.LessOrEqual(t, len(kept), room)
	assert.Greater(t, kept.Count(), 10)
	assert.Equal(t, 100, kept.Count()+dropped)

	// Several that are on their way at once.
	l = &Ledger{}
	var sent []*Sent
	for i := range 100 {
		sent = append(sent, l.Send(15, batchOf(15, fmt.Sprintf("-series.%d", i))))
	}
	dropped = 0
	for _, s := range sent {
		dropped += s.Done(errRefused, room)
	}
	kept = l.Close()
	assert.LessOrEqual(t, len(kept), room)
	assert.Equal(t, 100, kept.Count()+dropped)
}

func TestWhatIsRefusedAfterTheEndOfASourceIsDropped(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	send(l, errRefused, "-a")
	sent := l.Send(30, batchOf(30, "-b"))
	assert.Zero(t, l.Close().Count(), "both are in the batch that is on its way")
	assert.Equal(t, 2, sent.Done(errRefused, plenty))
	assert.Empty(t, l.Close())

	l = &Ledger{}
	send(l, errRefused, "-a")
	again := NewLedger(l.Close())
	assert.Equal(t, []string{"b", "-a"}, send(again, nil, "b"))
}

// Perhaps the ends are what a consumer does not take: then it takes no batch with them.
func TestEndsThatAreRefusedPermanentlyAreGivenUp(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	permanent := consumererror.NewPermanent(errRefused)
	for try := range 5 {
		batch := batchOf(15, "a")
		if try == 0 {
			batch = batchOf(15, "a", "-b", "-c")
		}
		dropped := l.Send(15, batch).Done(permanent, plenty)
		assert.Equal(t, []string{"a", "-b", "-c"}, seriesIn(batch))
		assert.Equal(t, map[bool]int{true: 2}[try == 4], dropped)
	}
	assert.Equal(t, []string{"a"}, send(l, nil, "a"))

	// An accepted batch between them begins the count again.
	for range 3 {
		l.Send(15, batchOf(15, "-b")).Done(permanent, plenty)
	}
	send(l, nil, "a")
	for range 4 {
		assert.Zero(t, l.Send(15, batchOf(15, "-b")).Done(permanent, plenty))
	}
}
