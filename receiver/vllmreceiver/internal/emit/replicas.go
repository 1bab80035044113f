package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Several server processes may answer at one address, as behind a load balancer or
// a Service. Under one identity their counters would fall and rise, and every rise
// would be read as an increase that did not happen. The answers are distinguished by
// the start of their process, if the bodies name it. The answers of one process are
// emitted and those of the others dropped, until that process has been silent for
// patience.

const (
	// skew is by how much the clocks of a server and of the collector may differ. Where
	// the server reports its time, its clock is converted to ours first.
	skew = pcommon.Timestamp(5 * time.Minute)
	// patience is how long a process may be silent while others answer for it.
	patience = pcommon.Timestamp(5 * time.Minute)
)

// Foreign reports whether another process answered than the one whose points are
// emitted, although that one probably still runs. The other process started earlier, or
// it already ran when the target's own answered last.
func (t *Target) Foreign(s Scrape) bool {
	return t.coexists(s) && !t.silent(pcommon.NewTimestampFromTime(s.Time))
}

// coexists reports whether the process of a scrape ran while the target's own did.
func (t *Target) coexists(s Scrape) bool { return t.relate(s.process()) == neighbor }

// silent reports whether the target's own process has not answered for so long
// that another one takes its place.
func (t *Target) silent(now pcommon.Timestamp) bool { return now >= t.lastTime+patience }

// emitForeign appends only the points about the scrape itself: another process
// answered. The series of the target's own process do not change.
func (t *Target) emitForeign(s Scrape, own Own, out pmetric.Metrics) Report {
	t.own.emit(own, pcommon.NewTimestampFromTime(s.Time), t.scope(out))
	report := Report{Foreign: true}
	report.Dropped[normalize.ReasonOtherProcess] = s.Plan.Points
	return report
}

// takeOver prepares for another process in place of the target's own, which is gone.
// The start of each of its series is unknown.
func (t *Target) takeOver() {
	for i := range t.states {
		st := &t.states[i]
		t.states[i] = state{live: st.live, admitted: st.admitted}
	}
	clear(t.vanished)
	t.forgot, t.restarted = false, false
	t.lastTime, t.process = 0, process{}
}
