package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Image is what a container of this image runs: a program, or a function of the test.
type Image struct {
	// Files are the files and folders of the image, with where they are on this machine. A container sees no others
	// besides its volumes, /proc, /dev and /sys, so a program is linked statically, or the image has the folders
	// /bin, /lib and so on of this machine.
	Files map[string]string
	// Entrypoint is what runs where the container has no command.
	Entrypoint []string
	// User is who runs it where the pod names no user.
	User int64
	// Serve runs instead of a program until ctx ends; an error is exit status 1. It listens on the address of the pod.
	// Volumes and exec are for programs only.
	Serve func(ctx context.Context, c Container) error
}

// Container is what a function of an Image gets: the address of its pod, and its command with its args.
type Container struct {
	IP   string
	Args []string
}

type node struct {
	cluster *Cluster
	name    string
	labels  map[string]string
	images  map[string]Image
	ctx     context.Context //nolint:containedctx // the life of the node

	mu   sync.Mutex
	pods map[types.UID]*pod
	wait sync.WaitGroup
}

// Node registers the one node of the cluster, which runs these images, and removes its pods with the test. It needs the
// rights of root on Linux; without them the test is skipped.
//
// It is a stand-in for a kubelet, its runtime and the scheduler. It binds each pod whose nodeSelector it meets (it has
// the labels kubernetes.io/hostname, os and arch), and runs what the containers say, in a file system of its own, as
// the user that the pod says, with its environment, its volumes and the token of its account. It keeps the status:
// probes by exec and HTTP, restarts and phases.
//
// What it does not have: networks. The addresses of pods are on loopback, so two pods that listen on the same port of
// all addresses or of 127.0.0.1 collide (those with vllm_fleet do, also with one that runs on this machine); nothing
// answers at the address of a Service, no name is resolved, and no NetworkPolicy counts. Resources have no limits;
// security contexts count as far as user, groups and a root file system that is read-only. A volume is written once: a
// changed ConfigMap reaches only new pods, and tokens are not renewed (they last an hour). Affinities, taints, modes of
// files, hooks, headers of probes, workingDir and binaryData are ignored. A pod with init containers, with the network
// of the host, with volumes other than emptyDir, claims, ConfigMaps, Secrets and projections, or that may end (a Job's)
// does not start and says why.
func (c *Cluster) Node(t *testing.T, name string, images map[string]Image) {
	t.Helper()
	require.Nil(t, c.node, "a cluster has one node")
	if out, err := exec.CommandContext(t.Context(), "unshare", "-m", "-u", "mount", "-t", "tmpfs", "tmpfs", "/mnt").CombinedOutput(); err != nil {
		t.Skip("pods need the right to mount:", string(out), err)
	}
	labels := map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	_, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{cluster: c, name: name, labels: labels, images: images, ctx: ctx, pods: map[types.UID]*pod{}}
	c.node = n
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.changed(o) },
		UpdateFunc: func(_, o any) { n.changed(o) },
		DeleteFunc: func(o any) { n.gone(o) },
	})
	require.NoError(t, err)
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		n.wait.Wait()
		if t.Failed() {
			for _, p := range n.pods {
				for _, one := range p.containers {
					log := one.log.String()
					t.Logf("the end of the log of %s/%s %s:\n%s", p.object.Namespace, p.object.Name, one.spec.Name, log[max(0, len(log)-4000):])
				}
			}
		}
	})
}

// changed binds a pod, starts it, or ends it.
func (n *node) changed(o any) {
	object, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	switch known := n.known(object.UID); {
	case object.Spec.NodeName == "":
		if n.fits(object) {
			// It may be deleted before.
			_ = n.cluster.Client.CoreV1().Pods(object.Namespace).Bind(n.ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: n.name},
			}, metav1.CreateOptions{})
		}
	case object.Spec.NodeName != n.name:
	case known == nil:
		p := n.newPod(object)
		n.mu.Lock()
		n.pods[object.UID] = p
		n.mu.Unlock()
		n.wait.Go(p.run)
	case object.DeletionTimestamp != nil:
		known.end(*object.DeletionGracePeriodSeconds)
	}
}

// gone ends what is left of a pod that was removed by force.
func (n *node) gone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if object, ok := o.(*corev1.Pod); ok {
		if known := n.known(object.UID); known != nil {
			known.end(0)
		}
	}
}

// fits reports whether a pod may run here, by its nodeSelector.
func (n *node) fits(object *corev1.Pod) bool {
	for name, value := range object.Spec.NodeSelector {
		if n.labels[name] != value {
			return false
		}
	}
	return object.DeletionTimestamp == nil
}

func (n *node) known(uid types.UID) *pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods[uid]
}

var errNotHere = errors.New("no such container runs here")

// find returns a container of the newest pod of a name, by its name, or without one the first.
func (c *Cluster) find(namespace, name, container string) (*runner, error) {
	var newest *pod
	if c.node != nil {
		c.node.mu.Lock()
		defer c.node.mu.Unlock()
		for _, p := range c.node.pods {
			if p.object.Namespace == namespace && p.object.Name == name && (newest == nil || newest.began.Before(p.began)) {
				newest = p
			}
		}
	}
	if newest != nil {
		for _, r := range newest.containers {
			if r.spec.Name == container || container == "" {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("%s/%s %s: %w", namespace, name, container, errNotHere)
}

// Logs is what all runs of a container have printed, also of a pod that is gone. Without a name it is the first one.
func (c *Cluster) Logs(namespace, pod, container string) string {
	r, err := c.find(namespace, pod, container)
	if err != nil {
		return err.Error()
	}
	return r.log.String()
}

// Exec runs a command in a container, as kubectl exec does, and returns both of its outputs, and an error where the
// container does not run or the command ends with another status than 0. Without a name it is the first container.
func (c *Cluster) Exec(ctx context.Context, namespace, pod, container string, argv ...string) (string, error) {
	r, err := c.find(namespace, pod, container)
	if err != nil {
		return "", err
	}
	return r.exec(ctx, argv)
}
