//go:build e2e

package cluster

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// shell has the programs of this machine.
var shell = Image{Files: map[string]string{"/bin": "/bin", "/lib": "/lib", "/lib64": "/lib64", "/usr": "/usr"}}

// server is a stand-in for a vLLM server.
func server(ctx context.Context, c Container) error {
	s, err := vllmsim.New(vllmsim.Config{Dialect: "v1", Version: "0.20.0"})
	if err != nil {
		return err
	}
	port := strings.TrimPrefix(c.Args[0], "--port=")
	return s.Serve(ctx, c.IP+":"+port, func([]string) {})
}

// apply applies a file of testdata with kubectl.
func apply(t *testing.T, c *Cluster, file string) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	out, err := c.Kubectl(t, string(content), "apply", "-f", "-")
	require.NoError(t, err, out)
}

// A collector in a pod finds two servers with the rights of its account; one that crashes runs again, a
// Deployment of size 0 has no pods, and what is not allowed is refused.
func TestPodsOfControllersRun(t *testing.T) {
	binary := collector.Binary(t)
	c := Start(t)
	c.Node(t, "node", map[string]Image{
		"vllm":         {Serve: server},
		"otelcol-vllm": {Files: map[string]string{"/otelcol-vllm": binary}, Entrypoint: []string{"/otelcol-vllm"}, User: 10001},
	})
	apply(t, c, "pods.yaml")
	c.Wait(t, "the pods", func() bool { return len(c.Ready(t, "models")) == 2 && len(c.Ready(t, "watch")) == 1 })
	servers := c.Ready(t, "models")
	for name, pod := range servers {
		assert.NotEmpty(t, collector.Get(t, "http://"+pod.Status.PodIP+":8000/metrics"), name)
	}
	one := c.Ready(t, "watch")["collector-0"]
	c.Wait(t, "what the collector finds", func() bool {
		page := string(collector.Get(t, "http://"+one.Status.PodIP+":9464/metrics"))
		return !slices.ContainsFunc(slices.Collect(maps.Keys(servers)), func(name string) bool { return !strings.Contains(page, name) })
	})

	require.NoError(t, c.Kill("watch", "collector-0", ""))
	c.Wait(t, "the restart", func() bool {
		again := c.Ready(t, "watch")["collector-0"]
		return len(again.Status.ContainerStatuses) == 1 && again.Status.ContainerStatuses[0].RestartCount == 1
	})
	status := c.Ready(t, "watch")["collector-0"].Status.ContainerStatuses[0]
	assert.Equal(t, int32(137), status.LastTerminationState.Terminated.ExitCode)

	out, err := c.Kubectl(t, "", "scale", "-n", "models", "deployment/chat", "--replicas=0")
	require.NoError(t, err, out)
	c.Wait(t, "the end of the servers", func() bool {
		list, err := c.Client.CoreV1().Pods("models").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	for name, pod := range servers {
		assert.Empty(t, collector.Get(t, "http://"+pod.Status.PodIP+":8000/metrics"), "%s still answers", name)
	}

	out, err = c.Kubectl(t, "", "run", "-n", "watch", "root", "--image=vllm")
	require.Error(t, err)
	assert.Contains(t, out, `violates PodSecurity "restricted`)
}

// A program has the environment, the volumes, the user and the account that its pod says, is told to end, and
// then its pod is gone and its claim is not.
func TestAContainerHasWhatItsPodSays(t *testing.T) {
	c := Start(t)
	c.Node(t, "node", map[string]Image{"shell": shell})
	apply(t, c, "shell.yaml")
	c.Wait(t, "the shell", func() bool { return len(c.Ready(t, "default")) == 1 })
	assert.Equal(t, "blue hello sesame one . $(NOT)\nsesame4711\n4712\n4712 4713\nshell\nkept\n", c.Logs("default", "shell", "main"))

	token, err := c.Exec(t.Context(), "default", "shell", "main", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	require.NoError(t, err, token)
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token
	guest, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	who, err := guest.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:default:guest", who.Status.UserInfo.Username)
	_, err = guest.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "forbidden")
	out, err := c.Exec(t.Context(), "default", "shell", "main", "sh", "-c", "echo $GREETING; ls /home /etc; echo no > /secret/word")
	require.Error(t, err)
	assert.Contains(t, out, "hello\n")
	assert.Contains(t, out, "Read-only file system")
	assert.Contains(t, out, "cannot access '/home'", "it sees what is not of its image")

	out, err = c.Kubectl(t, "", "delete", "pod", "shell", "--timeout=60s")
	require.NoError(t, err, out)
	assert.Contains(t, c.Logs("default", "shell", "main"), "ended by request")
	apply(t, c, "shell.yaml")
	c.Wait(t, "the next pod", func() bool { return len(c.Ready(t, "default")) == 1 })
	assert.True(t, strings.HasSuffix(c.Logs("default", "shell", "main"), "\nkept\nkept\n"), "a claim outlives its pod")
}

// A DaemonSet has a pod on each node, a Job is done, and what cannot run or ends says so as a kubelet does.
func TestPodsThatDoNotRunSayWhy(t *testing.T) {
	c := Start(t)
	c.Node(t, "one", map[string]Image{"shell": shell})
	apply(t, c, "kinds.yaml")
	pods := func(selector string) []corev1.Pod {
		list, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		require.NoError(t, err)
		return list.Items
	}
	state := func(name string) corev1.ContainerStatus {
		pod, err := c.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if len(pod.Status.ContainerStatuses) == 0 {
			return corev1.ContainerStatus{}
		}
		return pod.Status.ContainerStatuses[0]
	}
	waiting := func(name, reason string) {
		c.Wait(t, reason, func() bool { w := state(name).State.Waiting; return w != nil && w.Reason == reason })
	}
	waiting("absent", "ErrImagePull") // it is the last one, so the node has seen those for the other node
	c.Node(t, "two", map[string]Image{"shell": shell})
	c.Wait(t, "the pods of the DaemonSet and of the Job", func() bool {
		var nodes []string
		for _, pod := range pods("app=agent") {
			if pod.Status.Phase == corev1.PodRunning {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		slices.Sort(nodes)
		job, err := c.Client.BatchV1().Jobs("default").Get(t.Context(), "once", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 1 && slices.Equal(nodes, []string{"one", "two"})
	})
	assert.Equal(t, "two", pods("job-name=once")[0].Spec.NodeName)
	waiting("waits", "CreateContainerConfigError")
	assert.Contains(t, state("waits").State.Waiting.Message, `configmaps "later" not found`)
	out, err := c.Kubectl(t, "", "create", "configmap", "later", "--from-literal=colour=red")
	require.NoError(t, err, out)
	c.Wait(t, "the pod that waited", func() bool { return state("waits").Ready })
	pod, err := c.Client.CoreV1().Pods("default").Get(t.Context(), "waits", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "two", pod.Spec.NodeName, "an affinity as the controller of a DaemonSet writes it")
	waiting("crashes", "CrashLoopBackOff")
	assert.Equal(t, int32(3), state("crashes").LastTerminationState.Terminated.ExitCode)
	c.Wait(t, "the restart of the pod that hangs", func() bool { return state("hangs").RestartCount > 0 })
}
