// Package cluster runs a real control plane of Kubernetes in tests (etcd, an API server with RBAC and the admission of
// pods, and the controllers), which "make cluster" builds, and a stand-in for a node: see Cluster.Node.
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const (
	// patience is how long the control plane may take to start, and anything that Wait waits for.
	patience = 3 * time.Minute
	// look is the time between two looks at what is waited for.
	look = 100 * time.Millisecond
	// controllers are those that pods, their accounts and their namespaces need. There is no scheduler, and none that
	// judges nodes: the stand-in binds pods.
	controllers = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller," +
		"cronjob-controller,serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
		"namespace-controller,garbage-collector-controller,disruption-controller,endpointslice-controller," +
		"clusterrole-aggregation-controller,resourcequota-controller"
)

// Cluster is a running control plane without nodes. It ends with its test.
type Cluster struct {
	// Config is the access of an administrator, Client a client with it, and Kubeconfig a file with the same.
	Config     *rest.Config
	Client     *kubernetes.Clientset
	Kubeconfig string
	// Address is host and port of the API server.
	Address string
	dir     string
	node    *node
}

// Start starts a control plane on loopback and waits until it answers. Without its programs the test is skipped.
func Start(t *testing.T) *Cluster {
	t.Helper()
	programs, err := filepath.Abs(filepath.Join(captures.Root(t), "bin", "tools", "kubernetes"))
	require.NoError(t, err)
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err != nil {
			t.Skip("no control plane of Kubernetes is built; run make cluster:", err)
		}
	}
	c := &Cluster{Address: collector.FreeAddr(t), dir: folder(t)}
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	c.watchdog(t)
	account := filepath.Join(c.dir, "account.key")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for name, content := range map[string]string{
		account:                        string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		filepath.Join(c.dir, "tokens"): `administrator,administrator,1,"system:masters"`,
		c.Kubeconfig: `{apiVersion: v1, kind: Config, current-context: test, contexts: [{name: test, context: {cluster: test, user: administrator}}],
clusters: [{name: test, cluster: {server: "https://` + c.Address + `", certificate-authority: ` + c.ca() + `}}],
users: [{name: administrator, user: {token: administrator}}]}`,
	} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	store, peer := collector.FreeAddr(t), collector.FreeAddr(t)
	etcd := c.program(t, programs+"/etcd", "--data-dir="+c.dir+"/etcd", "--listen-client-urls=http://"+store,
		"--advertise-client-urls=http://"+store, "--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer,
		"--initial-cluster=default=http://"+peer, "--unsafe-no-fsync", "--log-level=error")
	host, port, err := net.SplitHostPort(c.Address)
	require.NoError(t, err)
	server := c.program(t, programs+"/kube-apiserver", "--etcd-servers=http://"+store, "--bind-address="+host, "--secure-port="+port,
		"--cert-dir="+filepath.Dir(c.ca()), "--service-account-key-file="+account, "--service-account-signing-key-file="+account,
		"--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file="+c.dir+"/tokens", "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/24", "--allow-privileged", "--endpoint-reconciler-type=none",
		// The first would taint a node for a controller that is not here, and the second keep claims for one.
		"--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection")
	c.Config = &rest.Config{
		Host: "https://" + c.Address, BearerToken: "administrator", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.ca()},
	}
	c.Wait(t, "the API server", func() bool {
		require.False(t, over(etcd.ended), "etcd ended by itself")
		require.False(t, over(server.ended), "the API server ended by itself")
		if c.Client == nil {
			if _, err := os.Stat(c.ca()); err != nil {
				return false // it writes its certificate first
			}
			c.Client, err = kubernetes.NewForConfig(c.Config)
			require.NoError(t, err)
		}
		status := 0
		c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(10 * time.Second).Do(t.Context()).StatusCode(&status)
		return status == http.StatusOK
	})
	manager := c.program(t, programs+"/kube-controller-manager", "--kubeconfig="+c.Kubeconfig, "--leader-elect=false",
		"--authentication-skip-lookup", "--secure-port=0", "--controllers="+controllers,
		"--service-account-private-key-file="+account, "--root-ca-file="+c.ca())
	c.Wait(t, "the controllers", func() bool {
		require.False(t, over(manager.ended), "the controllers ended by themselves")
		_, err := c.Client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return c
}

// folder is one that users of containers may enter, which t.TempDir is not.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cluster") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // see above
	require.NoError(t, os.Mkdir(filepath.Join(dir, "running"), 0o700))
	return dir
}

// ca is the file with the certificate of the API server and who signed it.
func (c *Cluster) ca() string { return filepath.Join(c.dir, "certificates", "apiserver.crt") }

// program starts a part of the control plane. The errors of its log are shown when the test fails.
func (c *Cluster) program(t *testing.T, name string, args ...string) *process {
	t.Helper()
	log := &collector.Log{}
	command := exec.CommandContext(context.Background(), name, args...) //nolint:gosec // our own program; the clean-up ends it
	command.Stdout, command.Stderr = log, log
	p, err := c.start(command)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.stop(10 * time.Second)
		if text := regexp.MustCompile("(?m)^[IW].*\n").ReplaceAllString(log.String(), ""); t.Failed() {
			t.Logf("the errors in the log of %s:\n%s", filepath.Base(name), text[max(0, len(text)-2000):])
		}
	})
	return p
}

// Wait waits until ok, or fails the test after three minutes.
func (*Cluster) Wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(look) {
		if time.Now().After(deadline) {
			require.FailNow(t, "waited too long for "+what)
		}
	}
}

// Ready are the pods of a namespace that are ready, by name.
func (c *Cluster) Ready(t *testing.T, namespace string) map[string]corev1.Pod {
	t.Helper()
	list, err := c.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				pods[pod.Name] = pod
			}
		}
	}
	return pods
}

// Kubectl runs kubectl as the administrator, with a standard input, and returns what it prints on both outputs, and an
// error where it ends with another status than 0. Where it is not installed the test is skipped.
func (c *Cluster) Kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed:", err)
	}
	command := exec.CommandContext(t.Context(), "kubectl", args...) //nolint:gosec // our own arguments
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}
