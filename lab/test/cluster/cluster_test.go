//go:build e2e

package cluster

import (
	"context"
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

// A program has the environment, the volumes, the user and the account that its pod says, gets SIGTERM, and
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

// A Deployment's pods run until it is scaled to 0; one that crashes or hangs runs again, and what does not run says why
// as a kubelet does, or is refused.
func TestPodsRunOrSayWhyNot(t *testing.T) {
	c := Start(t)
	c.Node(t, "node", map[string]Image{"vllm": {Serve: server}, "shell": shell})
	apply(t, c, "pods.yaml")
	servers := func() []corev1.Pod {
		list, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=chat"})
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
	waits := func(name, reason, message string) {
		c.Wait(t, name+": "+message, func() bool {
			w := state(name).State.Waiting
			return w != nil && w.Reason == reason && strings.Contains(w.Message, message)
		})
	}
	c.Wait(t, "the servers", func() bool {
		ready, all := c.Ready(t, "default"), servers()
		return len(all) == 2 && !slices.ContainsFunc(all, func(pod corev1.Pod) bool { _, ok := ready[pod.Name]; return !ok })
	})
	before := servers()
	for _, pod := range before {
		assert.NotEmpty(t, collector.Get(t, "http://"+pod.Status.PodIP+":8000/metrics"), pod.Name)
	}
	out, err := c.Kubectl(t, "", "scale", "deployment/chat", "--replicas=0")
	require.NoError(t, err, out)
	c.Wait(t, "the end of the servers", func() bool { return len(servers()) == 0 })
	for _, pod := range before {
		assert.Empty(t, collector.Get(t, "http://"+pod.Status.PodIP+":8000/metrics"), "%s still answers", pod.Name)
	}

	waits("absent", "ErrImagePull", "absent:1") // the last one: the node has seen the others
	waits("ends", "ContainerCreating", "no pods that end")
	elsewhere, err := c.Client.CoreV1().Pods("default").Get(t.Context(), "elsewhere", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, elsewhere.Spec.NodeName, "no node has the labels of its nodeSelector")
	waits("waits", "CreateContainerConfigError", `configmaps "later" not found`)
	out, err = c.Kubectl(t, "", "create", "configmap", "later", "--from-literal=colour=red")
	require.NoError(t, err, out)
	c.Wait(t, "the pod that waited", func() bool { return state("waits").Ready })
	waits("crashes", "CrashLoopBackOff", "back-off")
	assert.Equal(t, int32(3), state("crashes").LastTerminationState.Terminated.ExitCode)
	c.Wait(t, "the restart of the pod that hangs", func() bool { return state("hangs").RestartCount > 0 })
	assert.Equal(t, int32(137), state("hangs").LastTerminationState.Terminated.ExitCode, "the first process of a container ignores SIGTERM")

	out, err = c.Kubectl(t, "", "run", "-n", "watch", "root", "--image=vllm")
	require.Error(t, err)
	assert.Contains(t, out, `violates PodSecurity "restricted`)
}
