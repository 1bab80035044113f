package kubeapi

// Pod describes a pod.
type Pod struct {
	Namespace, Name, Node, IP string
	// UID is uid- and the name where it is empty.
	UID    string
	Labels map[string]string
	// OwnerKind and OwnerName are its controller.
	OwnerKind, OwnerName string
	// Containers have names and, where they declare one, a port.
	Containers []Container
	// Pending is a pod that does not run yet, and Unready one that is not ready.
	Pending, Unready bool
	// Phase is the phase where it is neither Running nor Pending.
	Phase string
	// Terminating is a pod with a deletion timestamp.
	Terminating bool
	// Started is when it was started, and ReadyChanged when its condition Ready
	// changed last, as RFC 3339; empty without.
	Started, ReadyChanged string
}

// Container is a container of a pod; Port 0 declares none.
type Container struct {
	Name string
	Port int
}

// Object returns the pod as the API has it.
func (p Pod) Object() Object {
	labels := Object{}
	for name, value := range p.Labels {
		labels[name] = value
	}
	uid := p.UID
	if uid == "" {
		uid = "uid-" + p.Name
	}
	m := Object{"namespace": p.Namespace, "name": p.Name, "uid": uid, "labels": labels}
	if p.OwnerKind != "" {
		m["ownerReferences"] = []any{Object{
			"apiVersion": "apps/v1", "kind": p.OwnerKind, "name": p.OwnerName, "uid": "owner", "controller": true,
		}}
	}
	containers := []any{}
	for _, c := range p.Containers {
		container := Object{"name": c.Name, "image": "vllm/vllm-openai"}
		if c.Port != 0 {
			container["ports"] = []any{Object{"containerPort": c.Port, "protocol": "TCP"}}
		}
		containers = append(containers, container)
	}
	phase, ready := "Running", "True"
	if p.Pending {
		phase = "Pending"
	}
	if p.Pending || p.Unready {
		ready = "False"
	}
	if p.Phase != "" {
		phase = p.Phase
	}
	if p.Terminating {
		m["deletionTimestamp"] = "2026-06-01T12:00:30Z"
		m["deletionGracePeriodSeconds"] = 30
	}
	condition := Object{"type": "Ready", "status": ready}
	status := Object{"podIP": p.IP, "phase": phase, "conditions": []any{condition}}
	if p.ReadyChanged != "" {
		condition["lastTransitionTime"] = p.ReadyChanged
	}
	if p.Started != "" {
		status["startTime"] = p.Started
	}
	return Object{
		"kind": podKind, "apiVersion": "v1", "metadata": m,
		"spec": Object{"nodeName": p.Node, "containers": containers}, "status": status,
	}
}

// Pool returns an InferencePool of the newer group.
func Pool(namespace, name string, selector map[string]string, ports ...int) Object {
	targets := []any{}
	for _, port := range ports {
		targets = append(targets, Object{"number": port})
	}
	return pool(Pools, namespace, name, Object{"selector": Object{"matchLabels": selector}, "targetPorts": targets})
}

// OldPool returns an InferencePool of the older group.
func OldPool(namespace, name string, selector map[string]string, port int) Object {
	return pool(OldPools, namespace, name, Object{"selector": selector, "targetPortNumber": port})
}

func pool(resource, namespace, name string, spec Object) Object {
	kind, apiVersion := kindOf(resource)
	return Object{
		"kind": kind, "apiVersion": apiVersion, "spec": spec,
		"metadata": Object{"namespace": namespace, "name": name, "uid": "uid-" + name},
	}
}
