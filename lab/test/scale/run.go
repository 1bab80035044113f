package scale

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Options are what a run can be asked for.
type Options struct {
	// Collector is the program, Root the folder of the project, Dir where the results go.
	Collector, Root, Dir string
	Engines              int
	// Interval is the collection_interval, Window that of the processor.
	Interval, Window time.Duration
	// Targets and Series are the limits of the first start.
	Targets, Series int
	// Rest is how long nothing is done at first, Settle how long after each action.
	Rest, Settle time.Duration
	// Away is the time between the end of a pod and the start of the next one.
	Away time.Duration
	// Patience bounds every wait.
	Patience time.Duration
	// Slack is how much longer than two intervals a gap may be on a busy machine.
	Slack time.Duration
	// Out gets the progress.
	Out io.Writer
}

// The numbers of shards.
const (
	fewShards  = 4
	manyShards = 6
	// killed is the shard that is killed.
	killed = 1
)

// run is a run in progress.
type run struct {
	Options
	began    time.Time
	engines  []engine
	template *template
	api      *kubeapi.Server
	servers  *servers
	account  *account
	backend  *fleet.Backend
	// before is what the backend had taken before the limits were found.
	before  fleet.Taken
	endAPI  func()
	config  string
	members []*member
	lives   []*life
	actions []*action
	samples []sample
	sampled time.Time
	// maxTargets and maxSeries are the present limits.
	maxTargets, maxSeries int
	result                Result
}

// action is something that was done to the collectors.
type action struct {
	name     string
	from, to time.Time
	// measured is the end of the part in which usage is measured.
	measured time.Time
	// until is the end of the time after it, in which its effects are looked for.
	until time.Time
}

// Run runs the fleet. The error is a failure of the run itself; what the collectors did wrong
// is in Result.Failures.
func Run(ctx context.Context, o Options) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // Ends what is still running.
	r := &run{
		Options: o, began: time.Now(), engines: newLayout(o.Engines), account: newAccount(o.Engines),
		lives: []*life{{member: -1, shards: 1}}, maxTargets: o.Targets, maxSeries: o.Series,
	}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.play(ctx); err != nil {
		return nil, err
	}
	r.judge()
	return &r.result, r.result.write(o.Dir)
}

func (r *run) prepare(ctx context.Context) error {
	if err := os.RemoveAll(r.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	var err error
	epoch := time.UnixMilli(r.began.Add(-time.Hour).UnixMilli())
	testdata := filepath.Join(r.Root, "testdata", "v1-0.20.0")
	if r.template, err = loadTemplate(testdata, epoch); err != nil {
		return err
	}
	if r.servers, err = startServers(ctx, r.template, r.engines); err != nil {
		return err
	}
	r.api, r.endAPI = kubeapi.Start()
	applyPods(r.api, r.engines)
	if r.backend, err = fleet.NewLateBackend(ctx, (&sink{account: r.account}).take); err != nil {
		return err
	}
	content, err := addition(r.Root, r.Interval, r.Window, "http://"+r.backend.Address)
	if err != nil {
		return err
	}
	r.config = filepath.Join(r.Dir, "scale.yaml")
	if err := os.WriteFile(r.config, content, 0o600); err != nil {
		return err
	}
	for i := range manyShards {
		m := &member{number: i}
		if m.own, err = fleet.FreeAddress(); err != nil {
			return err
		}
		r.members = append(r.members, m)
	}
	return nil
}

func (r *run) close() {
	for _, m := range r.members {
		if m.process != nil {
			r.crash(m)
		}
	}
	if r.backend != nil {
		r.backend.Close()
	}
	if r.endAPI != nil {
		r.endAPI()
	}
	if r.servers != nil {
		r.servers.Close()
	}
}

// play does everything.
func (r *run) play(ctx context.Context) error {
	if err := r.findLimits(ctx); err != nil {
		return err
	}
	if err := r.startAll(ctx); err != nil {
		return err
	}
	if err := r.all(ctx, 2, time.Now()); err != nil {
		return err
	}
	stall := r.template.ticksAt(time.Now()) + 20
	r.template.stallAt.Store(stall)
	r.say("all %d engines are read; nothing is done for %s", r.Engines, r.Rest)
	if err := r.pass(ctx, r.Rest*2/3); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{atRest, func(ctx context.Context) error { return r.pass(ctx, r.Rest/3) }},
		{killOne, r.killOne},
		{rollAll, r.rollAll},
		{resizeRolling, r.resizeRolling},
		{resizeAtOnce, r.resizeAtOnce},
	} {
		a := &action{name: step.name, from: time.Now()}
		r.actions = append(r.actions, a)
		r.say("%s", step.name)
		if err := r.measure(ctx, a, step.do); err != nil {
			return err
		}
	}
	r.stopAll()
	return r.drain(ctx)
}

// drain runs all members once more without targets, so that they send what is left in their
// queues, also those that the last change has removed.
func (r *run) drain(ctx context.Context) error {
	if err := r.wait(ctx, "the backend", func() (bool, error) { return r.backend.Idle(), nil }); err != nil {
		return err
	}
	for _, m := range r.missing(r.servers.answered()) {
		if m.Member >= fewShards {
			r.result.Left += m.Answers
		}
	}
	r.say("processes without targets send what is left in the queues")
	for _, m := range r.members {
		if err := r.startIn(ctx, m, manyShards, "nothing"); err != nil {
			return err
		}
	}
	if err := r.ready(ctx, r.members...); err != nil {
		return err
	}
	before, since := -1, time.Now()
	err := r.wait(ctx, "the queues", func() (bool, error) {
		left := 0.0
		for _, m := range r.members {
			own, err := fleet.Own(ctx, m.own)
			if err != nil {
				return false, m.process.Ended()
			}
			left += own["otelcol_exporter_queue_size"]
		}
		requests := r.backend.Taken().Requests
		if left > 0 || !r.backend.Idle() || requests != before {
			before, since = requests, time.Now()
		}
		return time.Since(since) > drained, nil
	})
	if err != nil {
		return err
	}
	r.stopAll()
	return nil
}

// drained is how long the queues must be empty while nothing arrives: what has left a queue waits
// for further data for up to five seconds.
const drained = 7 * time.Second

// measure does something and watches what follows. Processor and memory are
// measured in the first part of that.
func (r *run) measure(ctx context.Context, a *action, do func(context.Context) error) error {
	if err := do(ctx); err != nil {
		return err
	}
	a.to = time.Now()
	if a.name == atRest {
		a.measured, a.until = a.to, a.to
		return nil
	}
	first := min(r.Settle, 3*r.Interval)
	if err := r.pass(ctx, first); err != nil {
		return err
	}
	a.measured = time.Now()
	if err := r.pass(ctx, r.Settle-first); err != nil {
		return err
	}
	if err := r.all(ctx, 2, a.to); err != nil {
		return err
	}
	a.until = time.Now()
	return nil
}

// startAll starts the fewer shards at once.
func (r *run) startAll(ctx context.Context) error {
	for _, m := range r.members[:fewShards] {
		if err := r.start(ctx, m, fewShards); err != nil {
			return err
		}
	}
	return r.ready(ctx, r.members[:fewShards]...)
}

// stopAll ends all shards at once.
func (r *run) stopAll() {
	ends := make([]error, len(r.members))
	began := time.Now()
	var all sync.WaitGroup
	for i, m := range r.members {
		if m.process != nil {
			r.sample(m)
			all.Go(func() {
				_, ends[i] = m.process.Stop(fleet.StopLimit)
				m.life.ended = time.Now()
			})
		}
	}
	all.Wait()
	r.result.LongestStop = max(r.result.LongestStop, time.Since(began).Seconds())
	for i, m := range r.members {
		if m.process == nil {
			continue
		}
		m.process, m.life.how = nil, "SIGTERM"
		if ends[i] != nil {
			m.life.how = "SIGKILL"
			r.say("shard %d did not end in order: %v", m.number, ends[i])
		}
	}
}

// all waits until the backend has so many answers of each engine that were given since a time to
// the processes that run now.
func (r *run) all(ctx context.Context, answers int, from time.Time) error {
	since, lives := r.template.ticksAt(from), map[int]bool{}
	for _, m := range r.members {
		if m.process != nil {
			lives[m.life.number] = true
		}
	}
	heard, other := 0, 0
	err := r.wait(ctx, fmt.Sprintf("%d answers of all engines", answers), func() (bool, error) {
		r.look()
		heard, other = r.account.heard(answers, since, lives)
		return heard == r.Engines, r.broken()
	})
	if err != nil {
		return fmt.Errorf("%w (%d of %d engines; not engine %d, of shard %d of %d)", err, heard, r.Engines,
			other, shardOf(&r.engines[max(0, other)], r.servers.Port, fewShards), fewShards)
	}
	return nil
}

// broken is the error of a collector that has ended by itself.
func (r *run) broken() error {
	for _, m := range r.members {
		if m.process != nil {
			if err := m.process.Ended(); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass lets time pass, and watches.
func (r *run) pass(ctx context.Context, d time.Duration) error {
	until := time.Now().Add(d)
	for time.Now().Before(until) {
		if err := r.broken(); err != nil {
			return err
		}
		r.look()
		if err := fleet.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.Out, "%7s  %s\n", time.Since(r.began).Round(time.Second), fmt.Sprintf(format, args...))
}

func (r *run) fail(format string, args ...any) {
	r.result.Failures = append(r.result.Failures, fmt.Sprintf(format, args...))
}
