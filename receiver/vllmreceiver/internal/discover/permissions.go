package discover

import (
	"reflect"
	"slices"

	"github.com/prometheus/prometheus/discovery/kubernetes"
	"k8s.io/client-go/rest"
)

// Permission is what a discovery needs of Kubernetes: to list and watch a resource.
type Permission struct {
	Group, Resource string
	// Namespace is where; empty means in the whole cluster.
	Namespace string
	// Choice is the same for permissions of which one is enough; 0 for all others.
	Choice int
	// sd is the discovery, for its access to the API server.
	sd *kubernetes.SDConfig
}

// Access returns the access to the API server that the discovery would use. closeIdle closes
// its idle connections.
func (p *Permission) Access() (access *rest.Config, closeIdle func(), err error) {
	return restConfig(p.sd)
}

// Permissions returns what the mechanisms of the settings need of Kubernetes; none without
// Kubernetes. The pods of an InferencePool are in its own namespace.
func (s *Settings) Permissions() []Permission {
	var out []Permission
	add := func(sd *kubernetes.SDConfig) {
		for _, resource := range resources[sd.Role] {
			for _, namespace := range namespacesOf(sd, resource.Resource) {
				p := Permission{Group: resource.Group, Resource: resource.Resource, Namespace: namespace, sd: sd}
				if !slices.ContainsFunc(out, func(known Permission) bool { return known.same(&p) }) {
					out = append(out, p)
				}
			}
		}
	}
	for _, c := range s.Mechanisms {
		if sd, ok := c.(*kubernetes.SDConfig); ok {
			add(sd)
		}
	}
	if k := s.Kubernetes; k != nil {
		add(k.Pods.expand(k.Namespaces, k.Selector))
	}
	if p := s.InferencePool; p != nil {
		sd := p.Pods.expand([]string{p.Namespace}, "")
		add(sd)
		for _, kind := range poolKinds {
			out = append(out, Permission{Group: kind.Group, Resource: kind.Resource, Namespace: p.Namespace, Choice: 1, sd: sd})
		}
	}
	return out
}

// same reports whether two permissions are the same one of the same API server.
func (p *Permission) same(other *Permission) bool {
	return p.Group == other.Group && p.Resource == other.Resource && p.Namespace == other.Namespace &&
		p.sd.KubeConfig == other.sd.KubeConfig && reflect.DeepEqual(p.sd.APIServer, other.sd.APIServer)
}
