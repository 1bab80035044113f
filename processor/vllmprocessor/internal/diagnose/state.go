package diagnose

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Settings are the choices of a processor.
type Settings struct {
	// These are as in the configuration of the processor. A reading is over the Window, and a server that
	// was silent for MaxStaleness is forgotten.
	Window, MaxStaleness, RelearnAfter, StartTimeout time.Duration
	// Hold is the least number of windows until harm is reported, see evidence. What has no
	// evidence of its own, as errors, has to last for as many.
	Hold                 int
	SpeculationBreakEven float64
	Objectives           []Objective
	// BatchModels are patterns of the models whose users do not wait for each answer: a late first token is no
	// harm, and slow tokens are never great harm.
	BatchModels []string
}

// batch reports whether nobody waits for each answer of a model, so that long waits page nobody.
func (s *Settings) batch(model string) bool {
	return slices.ContainsFunc(s.BatchModels, func(wanted string) bool { return input.MatchPattern(wanted, model) })
}

// HoldTime is how long a state has to last beyond the first window that shows it, in
// nanoseconds.
func (s *Settings) HoldTime() int64 { return int64(s.Window) * int64(s.Hold-1) }

const (
	// explains is the least share of the harm of a primary cause. Without such a cause
	// the reason is not known.
	explains      = 0.35
	explainsAlone = 0.5
	// contributes is the share of the harm from which on a cause is reported in addition
	// to the primary one. Below stillContributes it no longer is.
	contributes      = 0.2
	stillContributes = 0.12
	// overtakes is how many times the primary cause's share another cause needs to become
	// the primary one.
	overtakes = 1.25
	// thrashing is the number of reuses per evicted KV block from which on blocks are
	// evicted that would be needed again.
	thrashing = 0.01
	// shifted is the growth of the work that is worth a notice: twice.
	shifted = 0.69
)

// engine is the state of one engine and model.
type engine struct {
	saved
	number     int
	attributes []input.Attribute
	// asked is what is sent to it, inPool what its pool has taken of that, and beside what the others of the pool
	// are asked for; nil where it is in no pool.
	asked  asked
	inPool Load
	beside *Load
	// described are the details of a pool's causes; nil for an engine, see detail.
	described *[NumCauses]string
	// explainsAny is true of a pool of which a server has a primary cause: so has the pool.
	explainsAny bool
	// began is the time of its first batch since the collector started, at that of its newest
	// reading, both in Unix nanoseconds.
	began, at int64
	baseline  *signal.Baseline
	// next is the level, observed since nextSince, that becomes the baseline if it lasts.
	next      *signal.Baseline
	nextSince int64
	// unlearned are readings that are learned once it is known that no harm followed.
	unlearned []unlearned
	// peers are its siblings, model what they are compared with of it. blocks is the number of KV
	// blocks; 0 where it is not known.
	peers  *Peers
	model  *signal.Model
	blocks float64
	// instead is the median sibling while it shows more than the own baseline; else nil.
	instead *signal.Model
	// slowed is the logarithm by how much longer its steps take for the same work, slowedPrefills
	// that of its prefills. excess is what its GPUs show of that.
	slowed, slowedPrefills float64
	excess                 excess

	// wellAt is when it had served as usual for servedAgain last, since the collector started.
	wellAt int64
	swings swings
	still  standstill
	last   reading
	// resumption is nil where nothing is resumed, or not any more.
	resumption *resumption
	// since is, for each cause, since when its contribution differs from the reported one;
	// 0 where it does not.
	since  [NumCauses]int64
	memory reportedSeries
	// waits is true where the newest batch has nothing of the engine, or only a part of
	// it, so far.
	waits bool
	// follows is the verdict before its first report: that of the server, where it was
	// reported before any engine was known.
	follows Verdict
	// listed is true while the newest batch has the engine, or may still have it.
	listed bool
}

// served is the name of the model that an engine serves; empty without one.
func (e *engine) served() string { return (&input.Group{Attributes: e.attributes}).Value("model_name") }

// Transition is a change of the reported diagnosis.
type Transition struct {
	// At is the time of the reading, Since that of the first reading that showed it, both in Unix nanoseconds.
	At, Since  int64
	Attributes []input.Attribute
	// Pool is true where it is about a pool.
	Pool     bool
	From, To Verdict
	// Details are by cause; empty where a cause has none. Refined is true where the detail of
	// the primary cause has changed, and it is the same cause of the same condition.
	Details [NumCauses]string
	Refined bool
	// Shares are those of the reported harm; 0 without any.
	Shares Shares
	// Signals are those of the reading, Usual those of the baseline.
	Signals, Usual signal.Values
	// Failure is the outcome of the last scrape, where it failed; empty where unknown.
	Failure string
	// Missed is the share of observations beyond the threshold of To.Objective.
	Missed float64
	// Slower is by what share steps take longer for the same work since the version Earlier was
	// replaced by Version, where the detail of slow_steps is sinceVersion.
	Slower           float64
	Earlier, Version string
	// Felt says how long users wait, where they are harmed or were; empty elsewhere.
	Felt string
	// GPU is what the GPUs show of slow_steps; empty where they show nothing.
	GPU string
	// Relearned is true where a stable level has become the baseline.
	Relearned bool
	// Continues is true where nothing has changed: it is what was reported before the collector
	// restarted, and At the time of the last reading before.
	Continues bool
}

// State is the diagnosis of one resource. Its zero value is ready for use.
type State struct {
	// Keeper keeps the baselines of engines that have gone; nil for none.
	Keeper Keeper
	// GPUs calls visit with the GPUs of the server, if it has any; nil where none are known.
	GPUs func(visit func(*gpu.Joined))

	engines []*engine
	// byNumber finds an engine by the number of its group.
	byNumber map[int]*engine
	// queues are the requests that wait at a gateway, where the resource is one.
	queues      []Queue
	server      server
	views       []window.View
	reader      reader
	transitions []Transition
	// version is that of the server; empty where it is not known exactly.
	version string
	// process is when its process began, in Unix seconds; 0 where it does not say.
	process float64
	upgrade Upgrade
}
