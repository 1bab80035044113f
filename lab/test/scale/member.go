package scale

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// lifePrefix stands before the number of a process in the header of its scrapes.
const lifePrefix = "life-"

// member is one shard: a pod of the StatefulSet, with its volume.
type member struct {
	number int
	// own is the address of its own metrics.
	own     string
	process *fleet.Process
	life    *life
	log     string
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
	_, ownPort, err := net.SplitHostPort(m.own)
	if err != nil {
		return err
	}
	m.process, err = fleet.Start(ctx, m.log, []string{
		"HOME=" + r.Dir, "SHARD=" + strconv.Itoa(m.number), "SHARDS=" + strconv.Itoa(shards), "LIFE=" + lifePrefix + strconv.Itoa(m.life.number),
		"VLLM_NAMESPACE=" + namespace, "VLLM_PORT=" + strconv.Itoa(r.servers.Port), "KUBERNETES_API=" + r.api.URL,
		"MAX_TARGETS=" + strconv.Itoa(r.maxTargets), "MAX_SERIES=" + strconv.Itoa(r.maxSeries),
		"QUEUE_DIR=" + filepath.Join(r.Dir, name), "OWN_PORT=" + ownPort, "INSTANCE=" + name,
	}, r.Collector, "--config", r.example(), "--config", r.config)
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
			return strings.Contains(m.text(), fleet.ReadyLine), m.process.Ended()
		})
		if err != nil {
			return err
		}
		m.life.ready = time.Now()
	}
	return fleet.Sleep(ctx, fleet.Listening)
}

// stop ends a member in order.
func (r *run) stop(m *member) {
	r.sample(m)
	took, err := m.process.Stop(fleet.StopLimit)
	m.process = nil
	m.life.ended, m.life.how = time.Now(), "SIGTERM"
	r.result.LongestStop = max(r.result.LongestStop, took.Seconds())
	if err != nil {
		// As Kubernetes does, the program that starts processes kills one that takes too long.
		m.life.how = "SIGKILL"
		r.say("shard %d did not end in order: %v", m.number, err)
	}
}

// crash kills a member.
func (r *run) crash(m *member) {
	r.sample(m)
	m.process.Kill()
	m.process = nil
	m.life.ended, m.life.how = time.Now(), "SIGKILL"
}

// wait waits until something is so, at most for the patience of the run.
func (r *run) wait(ctx context.Context, what string, ok func() (bool, error)) error {
	return fleet.Wait(ctx, r.Patience, what+"; the logs are in "+r.Dir, ok)
}
