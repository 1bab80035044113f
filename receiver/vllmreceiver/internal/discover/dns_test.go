package discover

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// The library asks the servers of /etc/resolv.conf, at the port 53. So the test
// runs itself again where that file is another one: in a mount namespace of its
// own, which only root can make. There it answers as a name server on loopback.
const (
	inNamespace = "VLLM_DISCOVER_DNS_TEST"
	nameServer  = "127.0.0.53:53"
)

func TestNamesAreResolvedAgain(t *testing.T) {
	t.Parallel()
	if os.Getenv(inNamespace) != "" {
		resolveNames(t)
		return
	}
	unshare, err := exec.LookPath("unshare")
	if runtime.GOOS != "linux" || os.Geteuid() != 0 || err != nil {
		t.Skip("needs Linux, root and unshare, to put another /etc/resolv.conf in place for itself alone")
	}
	if listener, err := net.ListenPacket("udp", nameServer); err != nil {
		t.Skip("a name server listens at " + nameServer + " already")
	} else {
		_ = listener.Close()
	}
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	require.NoError(t, os.WriteFile(conf, []byte("nameserver 127.0.0.53\noptions timeout:1\n"), 0o644))
	probe := exec.Command(unshare, "--mount", "--propagation", "private", "mount", "--bind", conf, "/etc/resolv.conf")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no mount namespace is to be had here: %s", out)
	}
	command := exec.Command(unshare, "--mount", "--propagation", "private", "sh", "-c",
		`mount --bind "$1" /etc/resolv.conf && exec "$2" -test.run '^TestNamesAreResolvedAgain$' -test.v`, "sh", conf, os.Args[0])
	command.Env = append(os.Environ(), inNamespace+"=1")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestNamesAreResolvedAgain")
}

// resolveNames is the part of the test in the namespace.
func resolveNames(t *testing.T) {
	t.Helper()
	var second atomic.Bool
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, request *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(request)
		question := request.Question[0]
		add := func(record string) {
			rr, err := dns.NewRR(record)
			if err == nil {
				answer.Answer = append(answer.Answer, rr)
			}
		}
		switch {
		case question.Name == "vllm.test." && question.Qtype == dns.TypeA:
			add("vllm.test. 1 IN A 192.0.2.1")
			if second.Load() {
				add("vllm.test. 1 IN A 192.0.2.2")
			}
		case question.Name == "_metrics._tcp.vllm.test." && question.Qtype == dns.TypeSRV:
			add("_metrics._tcp.vllm.test. 1 IN SRV 0 0 8000 vllm-0.vllm.test.")
		default:
			answer.Rcode = dns.RcodeNameError
		}
		_ = w.WriteMsg(answer)
	})
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		server := &dns.Server{Addr: nameServer, Net: network, Handler: handler, NotifyStartedFunc: func() { close(started) }}
		go func() { _ = server.ListenAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown() })
	}

	r := run(t, 10, `
dns_sd_configs:
  - {names: [vllm.test], type: A, port: 9000, refresh_interval: 1s}
  - {names: [_metrics._tcp.vllm.test], refresh_interval: 1s}
`)
	r.waitFor("an address and a service", "http://192.0.2.1:9000/metrics", "http://vllm-0.vllm.test:8000/metrics")
	second.Store(true)
	r.waitFor("a new replica", "http://192.0.2.1:9000/metrics", "http://192.0.2.2:9000/metrics", "http://vllm-0.vllm.test:8000/metrics")
	second.Store(false)
	r.waitFor("and goes", "http://192.0.2.1:9000/metrics", "http://vllm-0.vllm.test:8000/metrics")
}
