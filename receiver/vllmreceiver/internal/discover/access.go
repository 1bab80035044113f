package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// restConfig returns the access to the API server of a Kubernetes discovery, in the same
// order of precedence as Prometheus. closeIdle closes its idle connections.
func restConfig(sd *kubernetes.SDConfig) (out *rest.Config, closeIdle func(), err error) {
	closeIdle = func() {}
	switch {
	case sd.KubeConfig != "":
		out, err = clientcmd.BuildConfigFromFlags("", sd.KubeConfig)
		if err != nil {
			return nil, nil, fmt.Errorf("kubeconfig_file: %w", err)
		}
	case sd.APIServer.URL == nil:
		out, err = rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, nil, errors.New("this is not a pod of a Kubernetes cluster; set kubeconfig_file or api_server")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the pod's service account cannot be used: %w", err)
		}
	default:
		transport, err := config.NewRoundTripperFromConfig(sd.HTTPClientConfig, "kubernetes_sd")
		if err != nil {
			return nil, nil, err
		}
		out = &rest.Config{Host: sd.APIServer.String(), Transport: transport}
		closeIdle = func() { utilnet.CloseIdleConnectionsFor(transport) }
	}
	out.UserAgent = "otelcol-vllm"
	return out, closeIdle, nil
}

// resources are the resources that each role lists and watches.
var resources = map[kubernetes.Role][]schema.GroupVersionResource{
	kubernetes.RolePod:      {core("pods")},
	kubernetes.RoleNode:     {core("nodes")},
	kubernetes.RoleService:  {core("services")},
	kubernetes.RoleEndpoint: {core("endpoints"), core("services"), core("pods")},
	kubernetes.RoleEndpointSlice: {
		{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, core("services"), core("pods"),
	},
	kubernetes.RoleIngress: {{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}},
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// access is what those need who ask Kubernetes for one discovery.
type access struct {
	sd     *kubernetes.SDConfig
	client dynamic.Interface
	// close closes the idle connections of the client.
	close  func()
	logger *zap.Logger
	// logged has the texts that were logged.
	logged *warnings
}

func newAccess(sd *kubernetes.SDConfig, logger *zap.Logger, logged *warnings) (*access, error) {
	config, closeIdle, err := restConfig(sd)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	return &access{sd: sd, client: client, close: closeIdle, logger: logger, logged: logged}, err
}

// prober checks the permissions of a Kubernetes discovery. Prometheus's library does not
// report missing permissions: it only finds no targets.
type prober struct {
	*access
	// again is the time until the next attempt after a failure.
	again time.Duration
	found *obstacles
}

// run tries until everything is permitted, and logs each obstacle once.
func (p *prober) run(ctx context.Context) {
	defer p.close()
	denied := false
	for {
		obstacles := p.obstacles(ctx)
		if ctx.Err() != nil {
			return
		}
		for _, obstacle := range obstacles {
			p.logged.warn(p.logger, obstacle)
			denied = true
			p.found.set(p, obstacle)
		}
		if len(obstacles) == 0 {
			p.found.set(p, "")
			if denied {
				p.logger.Info("Kubernetes now lets this collector discover its targets")
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.again):
		}
	}
}

// obstacles returns why this discovery cannot work, as sentences.
func (p *prober) obstacles(ctx context.Context) []string {
	var out []string
	for _, resource := range resources[p.sd.Role] {
		for _, namespace := range namespacesOf(p.sd, resource.Resource) {
			if err := p.try(ctx, resource, namespace); err != nil {
				out = append(out, inWords(err, resource, namespace))
			}
		}
	}
	return out
}

// namespacesOf returns the namespaces in which a discovery looks for a resource.
func namespacesOf(sd *kubernetes.SDConfig, resource string) []string {
	if resource == "nodes" {
		return []string{""}
	}
	names := sd.NamespaceDiscovery.Names
	if sd.NamespaceDiscovery.IncludeOwnNamespace {
		if own, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
			names = append(names[:len(names):len(names)], strings.TrimSpace(string(own)))
		}
	}
	if len(names) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return names
}

// try sends one list and one watch as the discovery does, with small limits.
func (p *prober) try(ctx context.Context, resource schema.GroupVersionResource, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	access := p.client.Resource(resource).Namespace(namespace)
	if _, err := access.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return err
	}
	second := int64(1)
	watching, err := access.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &second})
	if err != nil {
		return err
	}
	watching.Stop()
	return nil
}

// inWords explains an error of the API server and what to do.
func inWords(err error, resource schema.GroupVersionResource, namespace string) string {
	what := resource.Resource
	if resource.Group != "" {
		what += "." + resource.Group
	}
	where, kind := "in all namespaces", "ClusterRole"
	switch {
	case resource.Resource == "nodes":
		where = "of the cluster"
	case namespace != "":
		where, kind = fmt.Sprintf("in the namespace %q", namespace), "Role"
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("Kubernetes does not let this collector list and watch %s %s. Add to the %s of its service account: "+
			"apiGroups: [%q], resources: [%q], verbs: [get, list, watch]", what, where, kind, resource.Group, resource.Resource)
	case apierrors.IsUnauthorized(err):
		return "The Kubernetes API server does not accept this collector's credentials: its token may have expired or belong to another cluster"
	case apierrors.IsNotFound(err):
		return "The Kubernetes API server does not know " + what
	}
	return fmt.Sprintf("Kubernetes cannot be asked for %s %s: %s", what, where, remote.Text(err.Error()))
}

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
