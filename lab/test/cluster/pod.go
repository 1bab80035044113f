package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is what runs of a pod.
type pod struct {
	node *Node
	// object is the pod as it was when it was bound, with its addresses.
	object     *corev1.Pod
	began      time.Time
	containers []*runner
	// ctx ends when the pod has to.
	ctx    context.Context //nolint:containedctx // the life of the pod
	cancel context.CancelFunc

	mu sync.Mutex
	// grace is how long its programs may take to end.
	grace      time.Duration
	deleted    bool
	problem    string
	conditions []corev1.PodCondition
}

func (n *Node) newPod(object *corev1.Pod) *pod {
	p := &pod{node: n, object: object.DeepCopy(), began: time.Now()}
	p.ctx, p.cancel = context.WithCancel(n.ctx)
	ip := "127.0.0.1"
	if !object.Spec.HostNetwork {
		// Runs of tests at one time have different addresses.
		i := n.cluster.pods.Add(1)
		ip = fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, i/250, 1+i%250)
	}
	p.object.Status.PodIP, p.object.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	p.object.Status.HostIP, p.object.Status.HostIPs = "127.0.0.1", []corev1.HostIP{{IP: "127.0.0.1"}}
	for i := range object.Spec.Containers {
		p.containers = append(p.containers, newRunner(p, &p.object.Spec.Containers[i]))
	}
	return p
}

// end asks the pod to end, and shortens the time that it has for that.
func (p *pod) end(seconds *int64) {
	grace := 30 * time.Second
	if seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	p.mu.Lock()
	if !p.deleted || grace < p.grace {
		p.grace = grace
	}
	p.deleted = true
	p.mu.Unlock()
	p.cancel()
}

// limit is how long a program may take to end now.
func (p *pod) limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.deleted {
		return 5 * time.Second // the test ends
	}
	return p.grace
}

// run runs the pod until its containers are over or it is removed.
func (p *pod) run() {
	defer p.cancel()
	p.publish()
	for err := p.writeVolumes(); err != nil && p.ctx.Err() == nil; err = p.writeVolumes() {
		p.say(err.Error())
		pause(p.ctx, time.Second)
	}
	p.say("")
	var all sync.WaitGroup
	for _, r := range p.containers {
		all.Go(r.run)
	}
	all.Wait()
	if p.ctx.Err() == nil {
		p.publish() // it has ended by itself
	}
	p.mu.Lock()
	deleted := p.deleted
	p.mu.Unlock()
	if deleted {
		p.node.remove(p.object)
	}
}

// say publishes why the pod does not run, where it is news.
func (p *pod) say(problem string) {
	p.mu.Lock()
	news := p.problem != problem
	p.problem = problem
	p.mu.Unlock()
	if news {
		p.publish()
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
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && p.node.ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "the stand-in for a node cannot write a status:", err)
	}
}

// status is the pod's status now, by the states of its containers.
func (p *pod) status() corev1.PodStatus {
	began := metav1.NewTime(p.began)
	status := corev1.PodStatus{
		Phase: corev1.PodPending, Message: p.problem, StartTime: &began, QOSClass: p.object.Status.QOSClass,
		PodIP: p.object.Status.PodIP, PodIPs: p.object.Status.PodIPs, HostIP: p.object.Status.HostIP, HostIPs: p.object.Status.HostIPs,
	}
	ready, over, failed, run := true, true, false, false
	for _, r := range p.containers {
		one := r.status()
		status.ContainerStatuses = append(status.ContainerStatuses, one)
		ready, over = ready && one.Ready, over && r.over()
		failed = failed || r.over() && one.State.Terminated.ExitCode != 0
		run = run || one.State.Running != nil || one.LastTerminationState.Terminated != nil || r.over()
	}
	switch {
	case over && failed:
		status.Phase = corev1.PodFailed
	case over:
		status.Phase = corev1.PodSucceeded
	case run:
		status.Phase = corev1.PodRunning
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

// folder is a folder of the pod on this machine.
func (p *pod) folder(parts ...string) string {
	return p.node.folder(append([]string{"pods", string(p.object.UID)}, parts...)...)
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
