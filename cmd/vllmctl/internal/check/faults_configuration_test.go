package check_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// transfer lets the simulator have a KV connector.
var transfer = engine.Transfer{Share: 0.5, Latency: 0.001, BytesPerSecond: 1e10}

// whole writes a configuration with a healthy server, these processors in its pipeline, and
// more sections.
func whole(tb testing.TB, processors, exporters, names, rest string) string {
	tb.Helper()
	return written(tb, "receivers: {vllm: {"+patient+"endpoint: "+serve(tb, healthy(tb))+"}}\n"+
		"processors: {vllm: {}, batch: {}, cumulativetodelta: {}}\nexporters: {"+exporters+"}\n"+rest+
		"service: {"+serviceOf(rest)+"pipelines: {metrics: {receivers: [vllm], processors: ["+processors+"], exporters: ["+names+"]}}}\n")
}

// serviceOf lists the extension that the rest configures.
func serviceOf(rest string) string {
	if rest == "" {
		return ""
	}
	return "extensions: [file_storage], "
}

func configurationFaults() []fault {
	order := func(name, processors string, want ...string) fault {
		return fault{name, want, func(t world) string { return whole(t, processors, "debug: {}", "debug", "") }}
	}
	discovering := func(name, files string, want ...string) fault {
		return fault{name, want, func(t world) string {
			list := filepath.Join(t.TempDir(), "targets.json")
			require.NoError(t, os.WriteFile(list, []byte(files), 0o600))
			return configuration(t, "discovery: {file_sd_configs: [{files: ["+list+"]}]}", "")
		}}
	}
	queue := func(name, settings, storage string, want ...string) fault {
		return fault{name, want, func(t world) string {
			return whole(t, "vllm", "otlphttp: {endpoint: "+backend(t, http.StatusOK)+", sending_queue: {"+settings+"}}", "otlphttp",
				"extensions: {file_storage: {"+storage+"}}\n")
		}}
	}
	return []fault{
		{"setting that does not exist", []string{check.CodeConfigInvalid}, func(t world) string {
			return configuration(t, "endpoint: http://127.0.0.1:1, nonsense: 1", "")
		}},
		{"variable that is not set", []string{check.CodeConfigWarning}, func(t world) string {
			return configuration(t, "service_name: \"a${env:CHECK_TEST_NOT_SET}\", endpoint: "+serve(t, healthy(t)), "")
		}},
		{"another receiver only", []string{check.CodeNoReceiver}, func(t world) string {
			return written(t, "receivers: {otlp: {}}\nexporters: {debug: {}}\nservice: {pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}}\n")
		}},
		{"one server in two receivers", []string{check.CodeTargetTwice}, func(t world) string {
			address := serve(t, healthy(t))
			return written(t, "receivers: {vllm/a: {"+patient+"endpoint: "+address+"}, vllm/b: {"+patient+"endpoint: "+address+"}}\nprocessors: {vllm: {}}\nexporters: {debug: {}}\n"+
				"service: {pipelines: {metrics: {receivers: [vllm/a, vllm/b], processors: [vllm], exporters: [debug]}}}\n")
		}},
		order("no processor", "batch", check.CodeNoProcessor, check.CodeConfigWarning),
		order("batch first", "batch, vllm", check.CodeBatchFirst),
		order("deltas first", "cumulativetodelta, vllm", check.CodeDeltaFirst),
		{"window below two scrapes", []string{check.CodeWindow}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, healthy(t)), "window: 59s")
		}},
		{"small preset before a larger one", []string{check.CodePreset}, func(t world) string {
			return configuration(t, "preset: essential, endpoint: "+serve(t, healthy(t)), "")
		}},
		{"metric that the processor removes", []string{check.CodePreset}, func(t world) string {
			return configuration(t, "metrics: {vllm.time_to_first_token: {enabled: true}}, endpoint: "+serve(t, healthy(t)), "preset: essential")
		}},
		{"connector without the diagnosis", []string{check.CodeNoDiagnosis}, func(t world) string {
			return written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {diagnosis: {enabled: false}}}\n"+
				"connectors: {vllm_diagnosis: {}}\nexporters: {debug: {}}\nservice: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], "+
				"exporters: [debug, vllm_diagnosis]}, logs: {receivers: [vllm_diagnosis], exporters: [debug]}}}\n")
		}},
		{"pool by an attribute of no target", []string{check.CodePoolAttribute}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, healthy(t)), "pool: {group_by: [model_name, nosuch]}")
		}},
		{"storage that is none", []string{check.CodeQueueStorage}, func(t world) string {
			return written(t, "extensions: {storage_check: {}}\nreceivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {storage: storage_check}}\n"+
				"exporters: {debug: {}}\nservice: {extensions: [storage_check], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n")
		}},
		discovering("list without targets", "[]", check.CodeDiscoveryNone),
		discovering("list that is none", "nonsense", check.CodeDiscoveryWarn),
		{"list with too many targets", []string{check.CodeDiscoveryOver}, func(t world) string {
			list := filepath.Join(t.TempDir(), "targets.json")
			first := serve(t, healthy(t))[len("http://"):]
			require.NoError(t, os.WriteFile(list, fmt.Appendf(nil, `[{"targets":[%q,"127.255.255.1:1","127.255.255.1:2"]}]`, first), 0o600))
			return configuration(t, "limits: {targets: 1}, discovery: {file_sd_configs: [{files: ["+list+"]}]}", "")
		}},
		{"Kubernetes outside of a cluster", []string{check.CodeDiscoveryError, check.CodeKubeUnknown}, func(t world) string {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			return configuration(t, "discovery: {kubernetes: {selector: a=b}}", "")
		}},
		{"queue in memory", []string{check.CodeQueueMemory}, func(t world) string {
			return whole(t, "vllm", "otlphttp: {endpoint: "+backend(t, http.StatusOK)+"}", "otlphttp", "")
		}},
		queue("storage that does not exist", "storage: file_storage/other", "directory: /tmp", check.CodeQueueStorage),
		queue("directory that does not exist", "storage: file_storage", "directory: /nonexistent/queue", check.CodeQueueDirectory),
		queue("directory that is a file", "storage: file_storage", "directory: /dev/null", check.CodeQueueDirectory),
		queue("directory below a file", "storage: file_storage, queue_size: 1", "create_directory: true, directory: /dev/null/queue", check.CodeQueueDirectory),
		queue("directory of another user", "storage: file_storage, queue_size: 1", "directory: /proc/1", check.CodeQueueWrite),
		queue("queue larger than the disk", "storage: file_storage, sizer: bytes, queue_size: 1000000000000000000", "directory: "+os.TempDir(), check.CodeQueueSpace),
	}
}

// backend answers every request with a status.
func backend(tb testing.TB, status int) string {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
}

// grpcBackend answers an export with a code.
func grpcBackend(tb testing.TB, code codes.Code, has bool) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(code, "no")
	}))
	if has {
		pmetricotlp.RegisterGRPCServer(server, &accepting{})
	}
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	return listener.Addr().String()
}

// redirecting answers with a redirect, and accepts what comes to the other path.
func redirecting(tb testing.TB, status int) string {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/other" {
			http.Redirect(w, r, "/other", status)
		}
	}))
}

// secureGRPC is a backend whose certificate is for other.example.
func secureGRPC(tb testing.TB, client tls.ClientAuthType) (address, authority string) {
	tb.Helper()
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, &accepting{})
	return secure(tb, server, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"other.example"} },
		&tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, ClientAuth: client})
}

// otherAuthenticator writes a configuration whose exporter, without its closing brace, uses an
// authenticator that vllmctl cannot run.
func otherAuthenticator(tb testing.TB, exporter, name string) string {
	tb.Helper()
	return written(tb, "extensions: {headers_setter: {headers: [{key: a, value: b}]}}\nreceivers: {vllm: {"+patient+"endpoint: "+serve(tb, healthy(tb))+"}}\n"+
		"processors: {vllm: {}}\nexporters: {"+exporter+", auth: {authenticator: headers_setter}}}\n"+
		"service: {extensions: [headers_setter], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: ["+name+"]}}}\n")
}

// accepting accepts every export.
type accepting struct {
	pmetricotlp.UnimplementedGRPCServer
}

func exporterFaults() []fault {
	remembered := "sending_queue: {enabled: false}, "
	to := func(name, kind, settings, want string) fault {
		return fault{name, []string{want}, func(t world) string {
			return whole(t, "vllm", kind+": {"+settings+"}", kind, "")
		}}
	}
	status := func(kind string, code int, want ...string) fault {
		return fault{fmt.Sprintf("%s %d", kind, code), want, func(t world) string {
			return whole(t, "vllm", fmt.Sprintf("%s: {%sendpoint: %s}", kind, remembered, backend(t, code)), kind, "")
		}}
	}
	call := func(code codes.Code, want ...string) fault {
		return fault{"otlp " + code.String(), want, func(t world) string {
			return whole(t, "vllm", fmt.Sprintf("otlp: {%stls: {insecure: true}, endpoint: %q}", remembered, grpcBackend(t, code, code == codes.OK)), "otlp", "")
		}}
	}
	return []fault{
		{"backend name that does not resolve", []string{check.CodeExporterDNS}, func(t world) string {
			names(t, nil)
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: \"http://backend.example.test:4318\"}", "otlphttp", "")
		}},
		to("path of OTLP twice", "otlphttp", remembered+"endpoint: \"http://127.0.0.1:1/v1/metrics\"", check.CodeExporterSettings),
		to("backend that refuses, HTTP", "otlphttp", remembered+"endpoint: \"http://127.0.0.1:1\"", check.CodeExporterRefused),
		to("backend that refuses, gRPC", "otlp", remembered+"tls: {insecure: true}, endpoint: \"127.0.0.1:1\"", check.CodeExporterRefused),
		to("endpoint that is none", "otlphttp", remembered+"endpoint: \"nonsense\"", check.CodeExporterSettings),
		to("endpoint without a port", "otlp", remembered+"endpoint: backend", check.CodeExporterSettings),
		to("kind that is not known", "kafka", "", check.CodeExporterUnchecked),
		{"backend that is silent", []string{check.CodeExporterTimeout}, func(t world) string {
			silent := raw(t, func(c net.Conn) {
				for {
					if _, err := c.Read(make([]byte, 4096)); err != nil {
						return
					}
				}
			})
			return whole(t, "vllm", "otlphttp: {"+remembered+"timeout: 300ms, endpoint: "+silent+"}", "otlphttp", "")
		}},
		{"backend with a certificate of its own, HTTP", []string{check.CodeExporterTLS}, func(t world) string {
			address, _ := secure(t, http.NotFoundHandler(), nil, nil)
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: "+address+"}", "otlphttp", "")
		}},
		{"backend with a certificate of its own, gRPC", []string{check.CodeExporterTLS}, func(t world) string {
			address, _ := secure(t, http.NotFoundHandler(), nil, nil)
			return whole(t, "vllm", "otlp: {"+remembered+"endpoint: "+address+"}", "otlp", "")
		}},
		{"backend without TLS, gRPC", []string{check.CodeExporterTLS}, func(t world) string {
			return whole(t, "vllm", fmt.Sprintf("otlp: {%sendpoint: %q}", remembered, grpcBackend(t, codes.OK, true)), "otlp", "")
		}},
		{"backend with TLS, HTTP without", []string{check.CodeExporterTLS}, func(t world) string {
			address, _ := secure(t, http.NotFoundHandler(), nil, nil)
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: "+strings.Replace(address, "https:", "http:", 1)+"}", "otlphttp", "")
		}},
		{"certificate of gRPC for another host whose name is configured", nil, func(t world) string {
			address, authority := secureGRPC(t, tls.NoClientCert)
			return whole(t, "vllm", "otlp: {"+remembered+"endpoint: "+address+", tls: {server_name_override: other.example, ca_file: "+authority+"}}", "otlp", "")
		}},
		{"client certificate wanted by gRPC", []string{check.CodeExporterTLS}, func(t world) string {
			address, authority := secureGRPC(t, tls.RequireAnyClientCert)
			return whole(t, "vllm", "otlp: {"+remembered+"endpoint: "+address+", tls: {server_name_override: other.example, ca_file: "+authority+"}}", "otlp", "")
		}},
		{"client certificate wanted by gRPC, alert lost", []string{check.CodeExporterTLS}, func(t world) string {
			address, authority := secureGRPC(t, tls.RequireAnyClientCert)
			return whole(t, "vllm", "otlp: {"+remembered+"endpoint: "+resetting(t, address, 2)+", tls: {server_name_override: other.example, ca_file: "+authority+"}}", "otlp", "")
		}},
		{"client certificate wanted by HTTP, alert lost", []string{check.CodeExporterTLS}, func(t world) string {
			address, authority := secure(t, http.NotFoundHandler(), nil, &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert})
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: "+resetting(t, address, 1)+", tls: {ca_file: "+authority+"}}", "otlphttp", "")
		}},
		{"gRPC at the port of HTTP", []string{check.CodeExporterRejected}, func(t world) string {
			return whole(t, "vllm", fmt.Sprintf("otlp: {%stls: {insecure: true}, endpoint: %q}", remembered, backend(t, http.StatusOK)[len("http://"):]), "otlp", "")
		}},
		{"HTTP at the port of gRPC", []string{check.CodeExporterRejected}, func(t world) string {
			return whole(t, "vllm", fmt.Sprintf("otlphttp: {%sendpoint: \"http://%s\"}", remembered, grpcBackend(t, codes.OK, true)), "otlphttp", "")
		}},
		to("socket of gRPC", "otlp", remembered+"endpoint: \"unix:///run/backend.sock\"", check.CodeExporterUnchecked),
		{"redirect that makes a GET of the write", []string{check.CodeExporterRejected}, func(t world) string {
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: "+redirecting(t, http.StatusFound)+"}", "otlphttp", "")
		}},
		{"redirect that repeats the write", nil, func(t world) string {
			return whole(t, "vllm", "otlphttp: {"+remembered+"endpoint: "+redirecting(t, http.StatusPermanentRedirect)+"}", "otlphttp", "")
		}},
		{"authenticator of another kind, HTTP", []string{check.CodeExporterUnchecked}, func(t world) string {
			return otherAuthenticator(t, "otlphttp: {"+remembered+"endpoint: "+backend(t, http.StatusUnauthorized), "otlphttp")
		}},
		{"authenticator of another kind, gRPC", []string{check.CodeExporterUnchecked}, func(t world) string {
			return otherAuthenticator(t, fmt.Sprintf("otlp: {%stls: {insecure: true}, endpoint: %q", remembered, grpcBackend(t, codes.Unauthenticated, false)), "otlp")
		}},
		{"backend with TLS, gRPC without", []string{check.CodeExporterTLS}, func(t world) string {
			address, _ := secure(t, http.NotFoundHandler(), nil, nil)
			return whole(t, "vllm", fmt.Sprintf("otlp: {%stls: {insecure: true}, endpoint: %q}", remembered, address[len("https://"):]), "otlp", "")
		}},
		status("otlphttp", http.StatusOK),
		status("otlphttp", http.StatusUnauthorized, check.CodeExporterAuth),
		status("otlphttp", http.StatusNotFound, check.CodeExporterRejected),
		status("otlphttp", http.StatusNotImplemented, check.CodeExporterRejected),
		status("otlphttp", http.StatusServiceUnavailable, check.CodeExporterFailed),
		status("otlphttp", http.StatusBadRequest, check.CodeExporterEmpty),
		status("prometheusremotewrite", http.StatusNoContent, check.CodeQueueMemory),
		status("prometheusremotewrite", http.StatusForbidden, check.CodeExporterAuth, check.CodeQueueMemory),
		call(codes.OK),
		call(codes.Unauthenticated, check.CodeExporterAuth),
		call(codes.Unimplemented, check.CodeExporterRejected),
		call(codes.InvalidArgument, check.CodeExporterEmpty),
		call(codes.Internal, check.CodeExporterFailed),
		{"port that is taken", []string{check.CodePortTaken}, func(t world) string {
			return whole(t, "vllm", "prometheus: {endpoint: \""+serve(t, http.NotFoundHandler())[len("http://"):]+"\"}", "prometheus", "")
		}},
		{"address of another machine", []string{check.CodePortTaken}, func(t world) string {
			return whole(t, "vllm", "prometheus: {endpoint: \"192.0.2.1:9464\"}", "prometheus", "")
		}},
		{"port of a collector that runs", []string{check.CodePortCollector}, func(t world) string {
			return whole(t, "vllm", "prometheus: {endpoint: \""+answers(t, http.StatusOK, text, "# HELP up A.\n# TYPE up gauge\nup 1\n")[len("http://"):]+"\"}", "prometheus", "")
		}},
	}
}

func kubernetesFaults() []fault {
	found := func(t world, api *kubeapi.Server, discovery string) string {
		address := serve(t, healthy(t))
		_, port, err := net.SplitHostPort(address[len("http://"):])
		require.NoError(t, err)
		api.Apply(kubeapi.Pods, kubeapi.Pod{Namespace: "vllm", Name: "a", UID: "1", IP: "127.0.0.1", Labels: map[string]string{"app": "vllm"}, Containers: []kubeapi.Container{{Name: "vllm", Port: 8000}}}.Object())
		return configuration(t, fmt.Sprintf("discovery: {%s}", fmt.Sprintf(discovery, api.URL, port)), "")
	}
	pods := "kubernetes: {namespaces: [vllm], selector: app=vllm, api_server: %q, port: %s}"
	return []fault{
		{"permissions that are there", nil, func(t world) string { return found(t, kubeapi.New(t), pods) }},
		{"watch that is not allowed", []string{check.CodeKubeDenied}, func(t world) string {
			api := kubeapi.New(t)
			api.Deny("watch", kubeapi.Pods)
			return found(t, api, pods)
		}},
		{"pool that is missing", []string{check.CodeDiscoveryError}, func(t world) string {
			return configuration(t, fmt.Sprintf("discovery: {inference_pool: {name: p, namespace: vllm, api_server: %q}}", kubeapi.New(t, kubeapi.Pools).URL), "")
		}},
		{"pods with other labels", []string{check.CodeDiscoveryNone}, func(t world) string {
			return found(t, kubeapi.New(t), "kubernetes: {namespaces: [vllm], selector: app=other, api_server: %q, port: %s}")
		}},
		{"pools that are missing and not allowed", []string{check.CodeKubeDenied, check.CodeDiscoveryError}, func(t world) string {
			api := kubeapi.New(t, kubeapi.Pools)
			api.Deny("list", kubeapi.Pools)
			api.Deny("list", kubeapi.OldPools)
			return configuration(t, fmt.Sprintf("discovery: {inference_pool: {name: p, namespace: vllm, api_server: %q}}", api.URL), "")
		}},
		{"API server that is not there", []string{check.CodeKubeUnknown, check.CodeDiscoveryWarn}, func(t world) string {
			return configuration(t, `discovery: {kubernetes: {namespaces: [vllm], selector: a=b, api_server: "http://127.0.0.1:1"}}`, "")
		}},
	}
}

// Export accepts what comes.
func (*accepting) Export(context.Context, pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	return pmetricotlp.NewExportResponse(), nil
}
