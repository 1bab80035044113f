package discover

import (
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podObject is a pod as the API server sends it.
func podObject(phase, started string, deleted bool, conditions ...any) *unstructured.Unstructured {
	metadata := map[string]any{"name": "a", "uid": "uid-a", "labels": map[string]any{"app": "vllm"}}
	if deleted {
		metadata["deletionTimestamp"] = "2026-06-01T12:00:00Z"
	}
	status := map[string]any{"phase": phase, "podIP": "10.0.0.1", "conditions": conditions}
	if started != "" {
		status["startTime"] = started
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": map[string]any{"nodeName": "n"}, "status": status}}
}

func ready(status, changed string) map[string]any {
	return map[string]any{"type": "Ready", "status": status, "lastTransitionTime": changed}
}

func TestReadPod(t *testing.T) {
	const start = "2026-06-01T10:00:00Z"
	other := map[string]any{"type": "Initialized", "status": "True", "lastTransitionTime": "2026-06-01T11:00:00Z"}
	for name, tt := range map[string]struct {
		pod  *unstructured.Unstructured
		want podState
	}{
		"ready":                           {podObject("Running", start, false, ready("True", start)), podState{Pod: Pod{Ready: true}, running: true, wasReady: true}},
		"ready in lower case":             {podObject("Running", start, false, ready("true", start)), podState{Pod: Pod{Ready: true}, running: true, wasReady: true}},
		"never ready":                     {podObject("Running", start, false, ready("False", start)), podState{running: true}},
		"4 s after the start":             {podObject("Running", start, false, ready("False", "2026-06-01T10:00:04Z")), podState{running: true}},
		"5 s after the start":             {podObject("Running", start, false, ready("False", "2026-06-01T10:00:05Z")), podState{running: true, wasReady: true}},
		"ready before, now unknown":       {podObject("Running", start, false, ready("Unknown", "2026-06-01T11:00:00Z")), podState{running: true, wasReady: true}},
		"no start":                        {podObject("Running", "", false, ready("False", "2026-06-01T11:00:00Z")), podState{running: true}},
		"a start that is not a time":      {podObject("Running", "now", false, ready("False", "2026-06-01T11:00:00Z")), podState{running: true}},
		"no time of the change":           {podObject("Running", start, false, ready("False", "")), podState{running: true}},
		"only other conditions":           {podObject("Running", start, false, other, "not a condition"), podState{running: true}},
		"the condition after another one": {podObject("Running", start, false, other, ready("True", start)), podState{Pod: Pod{Ready: true}, running: true, wasReady: true}},
		"terminating":                     {podObject("Running", start, true, ready("True", start)), podState{Pod: Pod{Ready: true, Terminating: true}, running: true, wasReady: true}},
		"pending":                         {podObject("Pending", "", false), podState{}},
		"failed":                          {podObject("Failed", start, false, ready("False", start)), podState{ended: true}},
		"succeeded":                       {podObject("Succeeded", start, false, ready("False", start)), podState{ended: true}},
		"the node is lost":                {podObject("Unknown", start, false, ready("False", "2026-06-01T11:00:00Z")), podState{wasReady: true}},
		"an object without a status":      {&unstructured.Unstructured{Object: map[string]any{}}, podState{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, readPod(tt.pod))
			trimmed, err := onlyState(tt.pod)
			require.NoError(t, err)
			pod, _ := trimmed.(*unstructured.Unstructured)
			assert.Equal(t, tt.want, readPod(pod), "the state is the same after trimming")
			assert.NotContains(t, pod.Object, "spec")
			assert.Empty(t, pod.GetLabels())
		})
	}
	same, err := onlyState("not a pod")
	require.NoError(t, err)
	assert.Equal(t, "not a pod", same)
}

// The labels of the library are known before the watch has found the pod.
func TestPodOfLabels(t *testing.T) {
	type set = model.LabelSet
	for name, tt := range map[string]struct {
		target, group set
		uid           string
		want          podState
	}{
		"of the group":           {nil, set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_phase": "Running", "__meta_kubernetes_pod_ready": "true"}, "u", podState{Pod: Pod{Ready: true}, running: true}},
		"of the target":          {set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_phase": "Running", "__meta_kubernetes_pod_ready": "false"}, nil, "u", podState{running: true}},
		"the target goes first":  {set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_ready": "false"}, set{"__meta_kubernetes_pod_uid": "v", "__meta_kubernetes_pod_ready": "true"}, "u", podState{}},
		"an empty one counts":    {set{"__meta_kubernetes_pod_uid": ""}, set{"__meta_kubernetes_pod_uid": "v"}, "", podState{}},
		"pending":                {nil, set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_phase": "Pending"}, "u", podState{}},
		"failed":                 {nil, set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_phase": "Failed"}, "u", podState{ended: true}},
		"succeeded":              {nil, set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_phase": "Succeeded"}, "u", podState{ended: true}},
		"not a pod":              {set{"__address__": "a:1"}, nil, "", podState{}},
		"readiness is not known": {nil, set{"__meta_kubernetes_pod_uid": "u", "__meta_kubernetes_pod_ready": "unknown"}, "u", podState{}},
	} {
		t.Run(name, func(t *testing.T) {
			uid, state := podOf(tt.target, tt.group)
			assert.Equal(t, tt.uid, uid)
			assert.Equal(t, tt.want, state)
		})
	}
}

func TestWhichPodsTheShortFormsScrape(t *testing.T) {
	for name, tt := range map[string]struct {
		pod        podState
		ready, any bool
	}{
		"ready":                  {podState{Pod: Pod{Ready: true}, running: true, wasReady: true}, true, true},
		"ready by its labels":    {podState{Pod: Pod{Ready: true}}, true, true},
		"not ready any more":     {podState{running: true, wasReady: true}, true, true},
		"the node is lost":       {podState{wasReady: true}, true, true},
		"never ready":            {podState{running: true}, false, true},
		"pending":                {podState{}, false, false},
		"ended":                  {podState{wasReady: true, ended: true}, false, false},
		"deleted":                {podState{Pod: Pod{Ready: true}, running: true, wasReady: true, deleted: true}, false, false},
		"ready and about to end": {podState{Pod: Pod{Ready: true, Terminating: true}, running: true}, true, true},
	} {
		assert.Equal(t, tt.ready, tt.pod.scraped(true), name)
		assert.Equal(t, tt.any, tt.pod.scraped(false), name)
	}
	no, yes := false, true
	running := &podState{running: true}
	assert.False(t, (&Pods{}).scraped(running), "ready_only is the default")
	assert.False(t, (&Pods{ReadyOnly: &yes}).scraped(running))
	assert.True(t, (&Pods{ReadyOnly: &no}).scraped(running))
}

func TestTheBookOfPods(t *testing.T) {
	changed := make(chan struct{}, 1)
	signals := func() int {
		n := len(changed)
		for range n {
			<-changed
		}
		return n
	}
	book := newPodBook(changed)
	labels := podState{running: true}
	assert.Equal(t, labels, book.find("a", labels), "the labels count until the watch has found the pod")
	assert.Equal(t, labels, (*podBook)(nil).find("a", labels))

	book.set("a", podState{Pod: Pod{Ready: true}, wasReady: true})
	assert.Equal(t, 1, signals())
	book.set("a", podState{Pod: Pod{Ready: true}, wasReady: true})
	assert.Equal(t, 0, signals(), "nothing has changed")
	book.set("a", podState{})
	assert.Equal(t, 1, signals())
	assert.Equal(t, podState{wasReady: true}, book.find("a", labels), "a pod stays one that was ready")
	book.set("b", podState{})
	book.set("c", podState{deleted: true})
	assert.Equal(t, 1, signals(), "one signal for several changes")

	book.forget([]*targetgroup.Group{
		{Labels: model.LabelSet{uidLabel: "c"}},
		{Targets: []model.LabelSet{{uidLabel: "d"}}},
	})
	assert.Len(t, book.pods, 3, "a deleted pod that the library still reports stays deleted")
	book.set("d", podState{deleted: true})
	book.forget([]*targetgroup.Group{{Targets: []model.LabelSet{{uidLabel: "d"}}}})
	assert.NotContains(t, book.pods, "c")
	assert.Contains(t, book.pods, "d")
	assert.Contains(t, book.pods, "a", "only deleted pods are forgotten")
}
