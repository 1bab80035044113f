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

// rayConstants are labels that Ray puts on every series. They mostly have one
// value on a node, and then say nothing about a series.
var rayConstants = [...]string{"Component", "NodeAddress", "SessionName", "Version"}

// rayLabels knows which of Ray's own labels identify the vLLM series of a body.
// That is decided for the body as a whole, so that a series keeps its attributes
// when others come and go.
type rayLabels struct {
	// agent is true for the body of a Ray metrics agent.
	agent bool
	// vllm are the families that are vLLM's.
	vllm map[*exposition.Family]bool
	// values has one value of each constant, varies those that have several.
	values map[string]string
	varies map[string]bool
	// workers has one worker of each replica, and needsWorker is true where a
	// replica has several or a series has a worker only.
	workers     map[string]string
	needsWorker bool
	// own remembers which labels of Ray's own families differ.
	own map[ownLabel]bool
}

// note looks at one family of the body.
func (r *rayLabels) note(name string, isVLLM bool, family *exposition.Family) {
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

// drops tells whether a label of a family says nothing about its series.
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
	// Of Ray's own families each decides for itself.
	return !r.differs(family, name)
}

// differs tells whether the series of a family have several values of a label.
func (r *rayLabels) differs(family *exposition.Family, name string) bool {
	if known, ok := r.own[ownLabel{family, name}]; ok {
		return known
	}
	first, differs := label(family.Series[0].Labels, name), false
	for i := range family.Series {
		if label(family.Series[i].Labels, name) != first {
			differs = true
			break
		}
	}
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

// process separates the series of the server processes behind an agent.
func (r *rayLabels) process(labels []exposition.Label) string {
	if !r.agent {
		return ""
	}
	return label(labels, rayWorker)
}

// identity are the labels that say which process a series of an info family
// comes from.
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
