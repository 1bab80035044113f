package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

const (
	rayWorker  = "WorkerId"
	rayReplica = "ReplicaId"
)

// rayConstants are labels that Ray adds to every series. They usually have one value on
// a node and are then dropped.
var rayConstants = [...]string{"Component", "NodeAddress", "SessionName", "Version"}

// rayLabels has which of Ray's own labels identify the vLLM series of a body. The
// decision is for the whole body, so that a series keeps its attributes when other
// series start or end.
type rayLabels struct {
	// agent is true for the body of a Ray metrics agent.
	agent bool
	// vllm are vLLM's families.
	vllm map[*exposition.Family]bool
	// values has one value of each constant; varies has the constants with several.
	values map[string]string
	varies map[string]bool
	// workers has one worker of each replica. needsWorker is true if a replica has
	// several workers, or if a series has a worker and no replica.
	workers     map[string]string
	needsWorker bool
	// own caches which labels of Ray's own families differ.
	own map[ownLabel]bool
}

// observe reads one family of the body.
func (r *rayLabels) observe(name string, isVLLM bool, family *exposition.Family) {
	r.agent = r.agent || strings.HasPrefix(name, "ray_")
	if !isVLLM {
		return
	}
	if r.vllm == nil {
		r.vllm = map[*exposition.Family]bool{}
		r.values, r.varies, r.workers = map[string]string{}, map[string]bool{}, map[string]string{}
	}
	r.vllm[family] = true
	for i := range family.Series {
		labels := family.Series[i].Labels
		worker := label(labels, rayWorker)
		if worker == "" {
			continue
		}
		for _, constant := range rayConstants {
			value := label(labels, constant)
			if known, ok := r.values[constant]; ok && known != value {
				r.varies[constant] = true
			}
			r.values[constant] = value
		}
		replica := label(labels, rayReplica)
		if known, ok := r.workers[replica]; replica == "" || ok && known != worker {
			r.needsWorker = true
		}
		r.workers[replica] = worker
	}
}

// drops reports whether a label does not identify the series of a family.
func (r *rayLabels) drops(family *exposition.Family, name string) bool {
	if !r.agent {
		return false
	}
	if name == rayWorker {
		return r.vllm[family] && !r.needsWorker
	}
	if !slices.Contains(rayConstants[:], name) {
		return false
	}
	if r.vllm[family] {
		return !r.varies[name]
	}
	// For Ray's own families the decision is per family.
	return !r.differs(family, name)
}

// differs reports whether the series of a family have several values of a label.
func (r *rayLabels) differs(family *exposition.Family, name string) bool {
	if known, ok := r.own[ownLabel{family, name}]; ok {
		return known
	}
	first := label(family.Series[0].Labels, name)
	differs := slices.ContainsFunc(family.Series, func(s exposition.Series) bool { return label(s.Labels, name) != first })
	if r.own == nil {
		r.own = map[ownLabel]bool{}
	}
	r.own[ownLabel{family, name}] = differs
	return differs
}

// ownLabel is a label of one of Ray's own families.
type ownLabel struct {
	family *exposition.Family
	name   string
}

// process returns the server process behind an agent that a series belongs to.
func (r *rayLabels) process(labels []exposition.Label) string {
	if !r.agent {
		return ""
	}
	return label(labels, rayWorker)
}

// identity returns the labels that identify the process of a series of an info family.
func (r *rayLabels) identity(family *exposition.Family, labels []exposition.Label) []exposition.Label {
	var out []exposition.Label
	if !r.agent {
		return nil
	}
	for _, l := range labels {
		if (l.Name == rayReplica || l.Name == rayWorker) && !r.drops(family, l.Name) {
			out = append(out, l)
		}
	}
	return out
}
