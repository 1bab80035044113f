package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Several server processes may answer at one address, as behind a load balancer or
// a Service. Under one identity their counters would fall and rise, and every rise
// would be read as an increase that did not happen. Where the bodies name the start
// of their process, the answers are distinguished by it: those of one process are
// emitted, those of the others are dropped, until the one has been silent for so
// long that it must be gone.

const (
	// skew is by how much the clocks of a server and of the collector may differ. Where
	// the server reports its time, its clock is converted to ours first.
	skew = pcommon.Timestamp(5 * time.Minute)
	// patience is how long a process may be silent while others answer for it.
	patience = pcommon.Timestamp(5 * time.Minute)
)

// Foreign reports whether a scrape is the answer of another process than the one
// whose points are emitted, which still runs as far as can be known: it started
// earlier, or it ran already when the other one answered last.
func (t *Target) Foreign(s Scrape) bool {
	return t.coexists(s) && !t.silent(pcommon.NewTimestampFromTime(s.Time))
}

// coexists reports whether the process of a scrape ran while the target's own did.
func (t *Target) coexists(s Scrape) bool { return t.relate(s.process()) == neighbor }

// silent reports whether the target's own process has not answered for so long
// that another one takes its place.
func (t *Target) silent(now pcommon.Timestamp) bool { return now >= t.lastTime+patience }

// pass appends what is known from an answer of another process: that something
// answers. The series of the target's own process stay as they are.
func (t *Target) pass(s Scrape, own Own, out pmetric.Metrics) Report {
	t.resets.foreign = true
	t.own.emit(own, pcommon.NewTimestampFromTime(s.Time), t.scope(out))
	report := Report{}
	report.Dropped[normalize.ReasonOtherProcess] = s.Plan.Points
	return report
}

// takeOver makes the process of a scrape the target's own in place of one that is
// gone. Nothing is known of when its series began.
func (t *Target) takeOver() {
	for i := range t.states {
		st := &t.states[i]
		t.states[i] = state{live: st.live, admitted: st.admitted}
	}
	clear(t.vanished)
	t.forgot, t.restarted = false, false
	t.lastTime, t.process = 0, process{}
}
