package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is what runs of a pod.
type pod struct {
	node *node
	// object is the pod as it was when it was bound, with its address.
	object     *corev1.Pod
	began      time.Time
	containers []*runner
	// ctx ends when the pod has to.
	ctx    context.Context //nolint:containedctx // the life of the pod
	cancel context.CancelFunc

	// grace is how long its programs may take to end; it is short where the test ends.
	grace   atomic.Int64
	deleted atomic.Bool

	mu         sync.Mutex
	conditions []corev1.PodCondition
}

func (n *node) newPod(object *corev1.Pod) *pod {
	p := &pod{node: n, object: object.DeepCopy(), began: time.Now()}
	p.ctx, p.cancel = context.WithCancel(n.ctx)
	p.grace.Store(int64(5 * time.Second))
	// Runs of tests at one time have different addresses.
	i := len(n.pods) + 1
	p.object.Status.PodIP = fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, i/250, 1+i%250)
	for i := range object.Spec.Containers {
		r := &runner{pod: p, spec: &p.object.Spec.Containers[i]}
		r.now.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		p.containers = append(p.containers, r)
	}
	return p
}

// end asks the pod to end within some seconds.
func (p *pod) end(seconds int64) {
	p.grace.Store(seconds * int64(time.Second))
	p.deleted.Store(true)
	p.cancel()
}

// limit is how long a program may take to end now.
func (p *pod) limit() time.Duration { return time.Duration(p.grace.Load()) }

// run runs the pod until it is removed or the test ends.
func (p *pod) run() {
	p.publish()
	for err := p.writeVolumes(); err != nil && p.ctx.Err() == nil; err = p.writeVolumes() {
		for _, r := range p.containers {
			r.wait("ContainerCreating", err.Error())
		}
		pause(p.ctx, time.Second)
	}
	var all sync.WaitGroup
	for _, r := range p.containers {
		all.Go(r.run)
	}
	all.Wait()
	if p.deleted.Load() {
		p.node.complain("remove a pod", p.node.cluster.Client.CoreV1().Pods(p.object.Namespace).Delete(p.node.ctx, p.object.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.object.UID},
		}))
	}
}

// complain tells of an error that is not because the pod or the test is over.
func (n *node) complain(what string, err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && n.ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "the stand-in for a node cannot "+what+":", err)
	}
}

// publish writes the status of the pod.
func (p *pod) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	status := p.status()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": status})
	if err == nil {
		_, err = p.node.cluster.Client.CoreV1().Pods(p.object.Namespace).Patch(p.node.ctx, p.object.Name,
			types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	p.node.complain("write a status", err)
}

// status is the pod's status now, by the states of its containers.
func (p *pod) status() corev1.PodStatus {
	began := metav1.NewTime(p.began)
	status := corev1.PodStatus{Phase: corev1.PodPending, StartTime: &began, PodIP: p.object.Status.PodIP}
	ready := true
	for _, r := range p.containers {
		one := r.status()
		status.ContainerStatuses = append(status.ContainerStatuses, one)
		ready = ready && one.Ready
		if one.State.Running != nil || one.State.Terminated != nil || one.LastTerminationState.Terminated != nil {
			status.Phase = corev1.PodRunning
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		next := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
		if ready || kind == corev1.PodScheduled || kind == corev1.PodInitialized {
			next.Status = corev1.ConditionTrue
		}
		for _, before := range p.conditions {
			if before.Type == next.Type && before.Status == next.Status {
				next = before
			}
		}
		status.Conditions = append(status.Conditions, next)
	}
	p.conditions = status.Conditions
	return status
}

// folder is where this machine has what belongs to the pod.
func (p *pod) folder() string {
	return filepath.Join(p.node.cluster.dir, "pods", string(p.object.UID))
}

// pause waits, and reports whether ctx still lasts.
func pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
