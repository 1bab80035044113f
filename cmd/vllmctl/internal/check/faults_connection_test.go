package check_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

// names replaces the DNS for a test: these names have these addresses, and no other exists.
func names(tb testing.TB, hosts map[string][]string) {
	tb.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(tb, err)
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer := new(dns.Msg)
		answer.SetReply(r)
		addresses, known := hosts[strings.TrimSuffix(r.Question[0].Name, ".")]
		if !known {
			answer.Rcode = dns.RcodeNameError
		}
		for _, a := range addresses {
			if r.Question[0].Qtype == dns.TypeA {
				answer.Answer = append(answer.Answer, &dns.A{
					Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(a),
				})
			}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	before := net.DefaultResolver
	dialer := &net.Dialer{}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dialTo(dialer, packets.LocalAddr().String())}
	tb.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Shutdown()
	})
}

// on returns the address with another host name.
func on(address, host string) string {
	return strings.Replace(address, "127.0.0.1", host, 1)
}

func connectionFaults() []fault {
	status := func(code int, want string) fault {
		return fault{fmt.Sprintf("status %d", code), []string{want}, func(t world) string {
			return configuration(t, "endpoint: "+answers(t, code, "text/plain", "no"), "")
		}}
	}
	return []fault{
		{"name that does not resolve", []string{check.CodeDNS}, func(t world) string {
			names(t, nil)
			return configuration(t, "endpoint: http://vllm.example.test:8000", "")
		}},
		{"name with two addresses", []string{check.CodeSeveralAddresses}, func(t world) string {
			names(t, map[string][]string{"vllm.example.test": {"127.0.0.1", "127.0.0.2"}})
			return configuration(t, "endpoint: "+on(serve(t, healthy(t)), "vllm.example.test"), "")
		}},
		{"credentials over plain HTTP", []string{check.CodePlainCredentials}, func(t world) string {
			names(t, map[string][]string{"vllm.example.test": {"127.0.0.1"}})
			return configuration(t, "endpoint: "+on(serve(t, healthy(t)), "vllm.example.test")+", headers: {Authorization: secret}", "")
		}},
		{"authenticator of another kind", []string{check.CodeAuthUnchecked}, func(t world) string {
			return written(t, "extensions: {headers_setter: {headers: [{key: a, value: b}]}}\n"+
				"receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+", auth: {authenticator: headers_setter}}}\nprocessors: {vllm: {}}\nexporters: {debug: {}}\n"+
				"service: {extensions: [headers_setter], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n")
		}},
		{"authenticator that fails to start beside one that runs", []string{check.CodeConfigInvalid, check.CodeAuthUnchecked}, func(t world) string {
			return written(t, "extensions: {bearertokenauth: {filename: /nonexistent/token}, bearertokenauth/b: {token: b}}\n"+
				"receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+", auth: {authenticator: bearertokenauth}}, vllm/b: {"+patient+"endpoint: "+serve(t, healthy(t))+", auth: {authenticator: bearertokenauth/b}}}\n"+
				"processors: {vllm: {}}\nexporters: {debug: {}}\n"+
				"service: {extensions: [bearertokenauth, bearertokenauth/b], pipelines: {metrics: {receivers: [vllm, vllm/b], processors: [vllm], exporters: [debug]}}}\n")
		}},
		{"refused", []string{check.CodeRefused}, func(t world) string {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, listener.Close())
			return configuration(t, "endpoint: http://"+listener.Addr().String(), "")
		}},
		{"reset", []string{check.CodeReset}, func(t world) string {
			return configuration(t, "endpoint: "+raw(t, func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096))
				_ = c.(*net.TCPConn).SetLinger(0)
			}), "")
		}},
		{"silent", []string{check.CodeTimeout}, func(t world) string {
			return configuration(t, "timeout: 200ms, endpoint: "+raw(t, func(c net.Conn) {
				for {
					if _, err := c.Read(make([]byte, 4096)); err != nil {
						return
					}
				}
			}), "")
		}},
		{"slow", []string{check.CodeSlow}, func(t world) string {
			s := healthy(t)
			return configuration(t, "timeout: 500ms, endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					time.Sleep(300 * time.Millisecond)
				}
				s.ServeHTTP(w, r)
			})), "")
		}},
		{"authority that is no certificate", []string{check.CodeRequestFailed}, func(t world) string {
			file := filepath.Join(t.TempDir(), "ca.pem")
			require.NoError(t, os.WriteFile(file, []byte("no certificate"), 0o600))
			return configuration(t, "endpoint: https://127.0.0.1:1, tls: {ca_file: "+file+"}", "")
		}},
		{"no credentials", []string{check.CodeAuthMissing}, func(t world) string {
			return configuration(t, "endpoint: "+answers(t, http.StatusUnauthorized, "text/plain", "no"), "")
		}},
		{"wrong credentials", []string{check.CodeAuthRejected}, func(t world) string {
			return configuration(t, "headers: {Authorization: secret}, endpoint: "+answers(t, http.StatusUnauthorized, "text/plain", "no"), "")
		}},
		{"token that a picker cannot verify", []string{check.CodeAuthToken}, func(t world) string {
			return configuration(t, "headers: {Authorization: secret}, endpoint: "+answers(t, http.StatusInternalServerError, "text/plain", "Authentication failed"), "")
		}},
		status(http.StatusForbidden, check.CodeAuthForbidden),
		status(http.StatusNotFound, check.CodeNotFound),
		status(http.StatusInternalServerError, check.CodeServerError),
		status(http.StatusServiceUnavailable, check.CodeServerError),
		status(http.StatusTooManyRequests, check.CodeStatus),
		{"redirect to another host", []string{check.CodeRedirect}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, http.RedirectHandler("http://192.0.2.1/metrics", http.StatusFound)), "")
		}},
		{"redirect to a slash", []string{check.CodeRedirected}, func(t world) string {
			s := healthy(t)
			return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					http.Redirect(w, r, "/metrics/", http.StatusTemporaryRedirect)
					return
				}
				s.ServeHTTP(w, r)
			})), "")
		}},
	}
}

func tlsFaults() []fault {
	certificate := func(name, code string, trusted bool, change func(*x509.Certificate)) fault {
		return fault{name, []string{code}, func(t world) string {
			address, authority := secure(t, healthy(t), change, nil)
			if !trusted {
				return configuration(t, "endpoint: "+address, "")
			}
			return configuration(t, "endpoint: "+address+", tls: {ca_file: "+authority+"}", "")
		}}
	}
	return []fault{
		certificate("unknown authority", check.CodeTLSAuthority, false, nil),
		certificate("expired certificate", check.CodeTLSExpired, true, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }),
		certificate("certificate of tomorrow", check.CodeTLSNotYet, true, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }),
		certificate("certificate of another host", check.CodeTLSHost, true, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 9)} }),
		certificate("certificate of the last days", check.CodeTLSSoon, true, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(72 * time.Hour) }),
		{"https for plain HTTP", []string{check.CodeTLSPlain}, func(t world) string {
			return configuration(t, "endpoint: "+strings.Replace(serve(t, healthy(t)), "http:", "https:", 1), "")
		}},
		{"http for TLS", []string{check.CodeTLSNeeded}, func(t world) string {
			address, _ := secure(t, healthy(t), nil, nil)
			return configuration(t, "endpoint: "+strings.Replace(address, "https:", "http:", 1), "")
		}},
		{"client certificate wanted", []string{check.CodeTLSClient}, func(t world) string {
			address, authority := secure(t, healthy(t), nil, &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert})
			return configuration(t, "endpoint: "+address+", tls: {ca_file: "+authority+"}", "")
		}},
		{"old TLS", []string{check.CodeTLSFailed}, func(t world) string {
			address, authority := secure(t, healthy(t), nil, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
			return configuration(t, "endpoint: "+address+", tls: {ca_file: "+authority+"}", "")
		}},
		{"certificate not verified", []string{check.CodeTLSUnverified}, func(t world) string {
			address, _ := secure(t, healthy(t), nil, nil)
			return configuration(t, "endpoint: "+address+", tls: {insecure_skip_verify: true}", "")
		}},
	}
}
