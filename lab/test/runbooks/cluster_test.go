//go:build e2e

package runbooks

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/cluster"
)

// objects are two servers behind a Service and an InferencePool. Nothing runs: no kubelet is asked.
const objects = `
kubectl create namespace models
kubectl apply -f - <<E
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: inferencepools.inference.networking.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, a stand-in"}}
spec:
  {group: inference.networking.k8s.io, scope: Namespaced, names: {kind: InferencePool, plural: inferencepools},
   versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
---
apiVersion: v1
kind: Node
metadata: {name: gpu-1}
---
apiVersion: v1
kind: Service
metadata: {name: chat, namespace: models}
spec: {selector: {app: chat}, ports: [{port: 8000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: models}
spec:
  {replicas: 2, selector: {matchLabels: {app: chat}},
   template: {metadata: {labels: {app: chat}}, spec: {nodeName: gpu-1, containers: [{name: vllm, image: "vllm:0.31.0"}]}}}
E
kubectl wait --for=condition=Established crd --all; sleep 3
kubectl apply -f - <<E
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: chat, namespace: models}
spec: {selector: {matchLabels: {app: chat}}}
E
n=0; for p in $(kubectl -n models get pods -o name); do
n=$((n+1)); kubectl -n models patch $p --subresource=status --type=merge -p '{"status": {"phase": "Running", "podIP": "10.0.0.'$n'", "podIPs": [{"ip": "10.0.0.'$n'"}]}}'
done; sleep 3`

// A pod that its runbook takes out leaves the Service and the pool and goes on, another one takes its place, and it
// comes back; what is rolled back and scaled is. The answers are those of a real API server and its controllers.
func TestTheCommandsOnACluster(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip(err)
	}
	environment := "KUBECONFIG=" + cluster.Start(t).Kubeconfig
	_, errors := bash(t, objects, nil, environment)
	require.Empty(t, errors)
	pod, errors := bash(t, `kubectl -n models get pods -o jsonpath='{.items[0].metadata.name}'`, nil, environment)
	require.NotEmpty(t, pod, errors)
	const behind = `echo "behind: $(k get endpointslices -l kubernetes.io/service-name=chat -o jsonpath='{.items[*].endpoints[*].targetRef.name}')"
SELECTOR=$(k get inferencepool chat -o jsonpath='{.spec.selector.matchLabels}' | tr -d '{}"' | tr : =)
echo "pool: "$(k get pods -l "$SELECTOR" -o name)
`
	// play runs the blocks of a page that have one of these words, after the set-up.
	play := func(page, then string, with ...string) string {
		all := commands(t, page)
		script := strings.ReplaceAll(all[0], "POD=chat-0", "POD="+pod)
		for _, block := range all[1:] {
			if slices.ContainsFunc(with, func(word string) bool { return strings.Contains(block, word) }) {
				script += block
			}
		}
		script = strings.ReplaceAll(script, "k rollout status", ": no kubelet makes pods ready") // it would wait
		out, errors := bash(t, script+"sleep 3\n"+then, nil, environment)
		assert.NotContains(t, errors, "error:", page) // a flag that kubectl does not have, for example
		return out
	}
	out := play("stalled", behind+`echo; k get pods -o name; echo; back "$POD" app; sleep 3; echo BACK; `+behind, "selectors")
	assert.Regexp(t, `service/chat .* app=chat `, out)
	assert.Contains(t, out, `chat {"matchLabels":{"app":"chat"}}`)
	before, after, _ := strings.Cut(out, "BACK\n")
	assert.NotRegexp(t, "(behind|pool): .*"+pod, before)
	assert.Regexp(t, "behind: \\S", before, "the other pod stays")
	assert.Regexp(t, "\n(pod/chat-\\S+\n){3}\n", before, "it goes on, and another one has its place")
	assert.Regexp(t, "behind: .*"+pod, after)
	assert.Regexp(t, "pool: .*"+pod, after)

	_, errors = bash(t, "kubectl -n models set image deployment/chat vllm=vllm:0.32.0; sleep 3", nil, environment)
	require.Empty(t, errors)
	out = play("slow_steps", `k get deployment chat -o jsonpath='{.spec.template.spec.containers[0].image}'`, "changed", "rollout undo")
	assert.Contains(t, out, "vllm:0.32.0")
	assert.Contains(t, out, "rolled back")
	assert.True(t, strings.HasSuffix(out, "vllm:0.31.0"), out)
	assert.Contains(t, play("demand_exceeds_capacity", "k get deployment chat -o jsonpath='{.spec.replicas}'", "k scale"), "scaled\n3")
}
