package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/peers/load"
)

// lifePrefix stands before the number of a process in the header of its scrapes.
const lifePrefix = "life-"

// member is one shard: a pod of the StatefulSet, with its volume.
type member struct {
	number int
	// own is the port of its own metrics.
	own     int
	process *load.Process
	// kill ends the process as a crash does.
	kill context.CancelFunc
	life *life
	log  string
}

// start runs a process of a member, with the environment that a StatefulSet gives it.
func (r *run) start(ctx context.Context, m *member, shards int) error {
	return r.startIn(ctx, m, shards, namespace)
}

// startIn runs one that looks for engines in a namespace.
func (r *run) startIn(ctx context.Context, m *member, shards int, namespace string) error {
	if len(r.lives) == mostLives {
		return fmt.Errorf("more than %d processes", mostLives)
	}
	m.life = &life{number: len(r.lives), member: m.number, shards: shards, began: time.Now()}
	r.lives = append(r.lives, m.life)
	name := fmt.Sprintf("shard-%d", m.number)
	m.log = filepath.Join(r.Dir, fmt.Sprintf("%s-%s%d.log", name, lifePrefix, m.life.number))
	ctx, m.kill = context.WithCancel(ctx)
	var err error
	// A program is started by env, which becomes that program, so that it has these variables
	// and no others.
	m.process, err = load.NewProcess(ctx, m.log, "/usr/bin/env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+r.Dir,
		"SHARD="+strconv.Itoa(m.number), "SHARDS="+strconv.Itoa(shards), "LIFE="+lifePrefix+strconv.Itoa(m.life.number),
		"VLLM_NAMESPACE="+namespace, "VLLM_PORT="+strconv.Itoa(r.port), "KUBERNETES_API="+r.api.URL,
		"MAX_TARGETS="+strconv.Itoa(r.maxTargets), "MAX_SERIES="+strconv.Itoa(r.maxSeries),
		"QUEUE_DIR="+filepath.Join(r.Dir, name), "OWN_PORT="+strconv.Itoa(m.own), "INSTANCE="+name,
		r.Collector, "--config", r.example(), "--config", r.config)
	return err
}

// text is the log of the process so far.
func (m *member) text() string {
	content, err := os.ReadFile(m.log)
	if err != nil {
		return ""
	}
	return string(content)
}

// ready waits until all components of the members have started.
func (r *run) ready(ctx context.Context, members ...*member) error {
	for _, m := range members {
		err := r.wait(ctx, fmt.Sprintf("the start of shard %d", m.number), func() (bool, error) {
			return strings.Contains(m.text(), "Everything is ready. Begin running and processing data."), m.process.Ended()
		})
		if err != nil {
			return err
		}
		m.life.ready = time.Now()
	}
	// The collector begins to listen for signals after that line.
	return sleep(ctx, 300*time.Millisecond)
}

// stop ends a member in order.
func (r *run) stop(m *member) {
	r.sample(m)
	began := time.Now()
	err := m.process.Stop()
	m.kill()
	m.process = nil
	m.life.ended, m.life.how = time.Now(), "SIGTERM"
	r.result.LongestStop = max(r.result.LongestStop, time.Since(began).Seconds())
	if err != nil {
		// As Kubernetes does, the program that starts processes kills one that takes too long.
		m.life.how = "SIGKILL"
		r.say("shard %d did not end in order: %v", m.number, err)
		r.result.NotInOrder++
	}
}

// crash kills a member.
func (r *run) crash(m *member) {
	r.sample(m)
	m.kill()
	_ = m.process.Stop() // Waits until it is gone.
	m.process = nil
	m.life.ended, m.life.how = time.Now(), "SIGKILL"
}

// wait waits until something is so, at most for the patience of the run.
func (r *run) wait(ctx context.Context, what string, ok func() (bool, error)) error {
	deadline := time.Now().Add(r.Patience)
	for {
		done, err := ok()
		switch {
		case err != nil:
			return fmt.Errorf("while waiting for %s: %w", what, err)
		case done:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("waited %s for %s; the logs are in %s", r.Patience, what, r.Dir)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var ownLine = regexp.MustCompile(`(?m)^(otelcol_[a-z_]+)(?:\{[^}]*\})? (\S+)$`)

// ownMetrics reads what a collector says of itself; the series of one name are added.
func ownMetrics(ctx context.Context, port int) (map[string]float64, error) {
	content, err := get(ctx, "http://127.0.0.1:"+strconv.Itoa(port)+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, found := range ownLine.FindAllSubmatch(content, -1) {
		if v, err := strconv.ParseFloat(string(found[2]), 64); err == nil {
			out[string(found[1])] += v
		}
	}
	return out, nil
}
