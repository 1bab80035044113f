package check

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/golang/snappy"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Exporter is one exporter and what it answered. It is plain data.
type Exporter struct {
	Name string
	// Code is that of the finding; empty where everything is in order. What is its sentence,
	// or what is in order.
	Code, What string
}

func (e *Exporter) judge(f *findings) {
	if e.Code == "" {
		f.pass(Exporters, "%s: %s", e.Name, e.What)
		return
	}
	name := e.Name
	if !strings.Contains(name, "::") { // Others have an address to listen at, too.
		name = "exporters::" + name
	}
	f.add(e.Code, name+": "+e.What+".")
}

// mostExporter is how long an exporter may take to answer.
const mostExporter = 5 * time.Second

// asking are the kinds of exporters that can be asked. Each has an older name.
var asking = map[string]func(context.Context, map[string]any, *configfile.Host) Exporter{
	"otlp": askGRPC, "otlp_grpc": askGRPC, "otlphttp": askHTTP, "otlp_http": askHTTP,
	"prometheusremotewrite": askRemoteWrite, "prometheus_remote_write": askRemoteWrite, "prometheus": askPort,
}

// local are exporters that nothing can be asked of.
var local = []string{"debug", "nop"}

// askExporters asks the exporters of all pipelines, each for itself.
func askExporters(ctx context.Context, file *configfile.File, host *configfile.Host, running bool) []Exporter {
	names := usedExporters(file)
	out := make([]Exporter, len(names))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, mostExporter)
			defer cancel()
			kind, _, _ := strings.Cut(name, "/")
			own := ownReceiver(file, name)
			switch ask, can := asking[kind]; {
			case kind == "prometheus" && running:
				out[i] = askRunning(ctx, file.Exporters[name])
			case own != "" && !running:
				out[i].What = "sends to receivers::" + own + " of this configuration"
			case can:
				out[i] = ask(ctx, file.Exporters[name], host)
			case slices.Contains(local, kind):
				out[i].What = "writes nowhere else"
			case kind == "file":
				out[i] = askFile(file.Exporters[name], look)
			default:
				out[i] = askAddress(ctx, file.Exporters[name])
			}
			out[i].Name = name
		})
	}
	wg.Wait()
	return out
}

// askFile asks whether the folder of the exporter file can be written to.
func askFile(section map[string]any, look func(path string) Disk) Exporter {
	path, _ := section["path"].(string)
	folder := filepath.Dir(path)
	creates, _ := section["create_directory"].(bool)
	switch disk := look(folder); {
	case path == "":
		return Exporter{Code: CodeExporterSettings, What: "path is missing"}
	case disk.File != "":
		return Exporter{Code: CodeExporterSettings, What: disk.File + " is a file and not a folder"}
	case disk.Missing && !creates:
		return Exporter{Code: CodeExporterSettings, What: "the folder " + folder + " does not exist"}
	case !disk.Writable:
		return Exporter{Code: CodeExporterSettings, What: "the folder " + folder + " cannot be written to by this user"}
	}
	return Exporter{What: folder + " can be written to"}
}

// askAddress connects to the endpoint of an exporter of another kind, and sends nothing.
func askAddress(ctx context.Context, section map[string]any) Exporter {
	out := Exporter{Code: CodeExporterUnchecked, What: "an exporter of this kind is not checked"}
	address, _ := section["endpoint"].(string)
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = hostPort(u)
	}
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return out
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err, address)
	}
	_ = connection.Close()
	out.What += ", but " + address + " accepts connections"
	return out
}

// httpSettings are the settings of an exporter that speaks HTTP.
type httpSettings struct {
	Client  confighttp.ClientConfig `mapstructure:",squash"`
	Metrics string                  `mapstructure:"metrics_endpoint"`

	_ struct{}
}

// newHTTP reads the settings of an exporter.
func newHTTP(section map[string]any) (*httpSettings, error) {
	settings := &httpSettings{Client: confighttp.NewDefaultClientConfig()}
	return settings, confmap.NewFromStringMap(section).Unmarshal(settings, confmap.WithIgnoreUnused())
}

// otlpPath is the path for metrics of OTLP over HTTP.
const otlpPath = "/v1/metrics"

// askHTTP sends an empty request for metrics: it has no resource, so no point is stored.
func askHTTP(ctx context.Context, section map[string]any, host *configfile.Host) Exporter {
	settings, err := newHTTP(section)
	if err != nil {
		return unusable(err)
	}
	address := settings.Metrics
	if address == "" && settings.Client.Endpoint != "" {
		base := strings.TrimSuffix(settings.Client.Endpoint, "/")
		if strings.HasSuffix(base, otlpPath) {
			return Exporter{Code: CodeExporterSettings, What: "the endpoint ends in " + otlpPath + ", which the exporter adds itself; " +
				"remove it there, or write the whole address as metrics_endpoint"}
		}
		address = base + otlpPath
	}
	// Nothing is the encoding of a message without fields.
	return post(ctx, settings, host, address, nil, map[string]string{"Content-Type": "application/x-protobuf"})
}

// askRemoteWrite sends a write without series.
func askRemoteWrite(ctx context.Context, section map[string]any, host *configfile.Host) Exporter {
	settings, err := newHTTP(section)
	if err != nil {
		return unusable(err)
	}
	return post(ctx, settings, host, settings.Client.Endpoint, snappy.Encode(nil, nil), map[string]string{
		"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0",
	})
}

func unusable(err error) Exporter {
	return Exporter{Code: CodeExporterSettings, What: "the settings cannot be used: " + probe.Printable(strings.Join(mistakes(err.Error()), "; "))}
}

// post sends a request and judges the answer by its status.
func post(ctx context.Context, settings *httpSettings, host *configfile.Host, address string, body []byte, headers map[string]string) Exporter {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Exporter{Code: CodeExporterSettings, What: "the endpoint is not an address; write for example http://backend:4318"}
	}
	telemetry := configfile.Telemetry(zap.NewNop())
	telemetry.TracerProvider, telemetry.MeterProvider = nil, nil
	// The headers here say what the body is.
	settings.Client.Compression = ""
	if auth := settings.Client.Auth.Get(); auth != nil && host.Lacks(auth.AuthenticatorID) {
		return unchecked(auth.AuthenticatorID)
	}
	client, err := settings.Client.ToClient(ctx, host.GetExtensions(), telemetry)
	if err != nil {
		return unusable(err)
	}
	defer client.CloseIdleConnections()
	client.CheckRedirect = sameRequest
	dialed := ""
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(address string) { dialed = address }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return unusable(err)
	}
	request.Header.Set("User-Agent", "otelcol-vllm")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	began := time.Now()
	response, err := client.Do(request)
	if err != nil {
		if dialed != "" && dialed != hostPort(u) {
			if settings.Client.Auth.HasValue() { // It may ask for a token first.
				return failed(err, "the token endpoint or proxy "+dialed)
			}
			return failed(err, "the proxy "+dialed)
		}
		out := failed(err, u.Host)
		if out.Code == CodeExporterFailed && u.Scheme == "https" {
			if config, err := settings.Client.TLS.LoadTLSConfig(ctx); err == nil {
				if reason := refusal(ctx, hostPort(u), config); reason != "" {
					return Exporter{Code: CodeExporterTLS, What: u.Host + ": " + reason}
				}
			}
		}
		return out
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	_ = response.Body.Close()
	if response.StatusCode == http.StatusBadRequest && u.Scheme == "http" && speaksTLS(ctx, hostPort(u), mostHandshake) {
		return withoutTLS(u.Host)
	}
	out := byStatus(response.StatusCode, u.Host, time.Since(began))
	if out.Code == CodeExporterRejected && response.StatusCode/100 != 3 && strings.HasSuffix(u.Path, otlpPath) {
		out.What += " at " + u.Path + ": perhaps it is not an OTLP backend"
	}
	return out
}

// hostPort is the address of a server with its port.
func hostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// sameRequest follows a redirect that repeats the request at the same host. Others become a
// GET, which stores nothing, or hand the credentials to another host.
func sameRequest(next *http.Request, before []*http.Request) error {
	last := before[len(before)-1]
	if next.Method != last.Method || next.URL.Host != last.URL.Host || last.URL.Scheme == "https" && next.URL.Scheme != "https" || len(before) > mostRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// mostRedirects is how many redirects are followed.
const mostRedirects = 5

// withoutTLS is the finding about a plain request to a backend with TLS.
func withoutTLS(host string) Exporter {
	return Exporter{Code: CodeExporterTLS, What: host + " speaks TLS, and the exporter is configured without it"}
}

// unchecked is the finding about an exporter whose authenticator this program does not have.
func unchecked(authenticator component.ID) Exporter {
	return Exporter{Code: CodeExporterUnchecked, What: fmt.Sprintf("its authenticator %s does not run here, so the backend was not checked", authenticator)}
}

// byStatus judges the status of an answer.
func byStatus(status int, host string, took time.Duration) Exporter {
	what := host + " answers " + named(status)
	switch {
	case status/100 == 2:
		return Exporter{What: fmt.Sprintf("%s accepts an empty request, in %s", host, rounded(took))}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Exporter{Code: CodeExporterAuth, What: what}
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusUnsupportedMediaType,
		status == http.StatusNotImplemented, status/100 == 3:
		return Exporter{Code: CodeExporterRejected, What: what}
	case status/100 == 5:
		return Exporter{Code: CodeExporterFailed, What: what}
	}
	return Exporter{Code: CodeExporterEmpty, What: what}
}

// failed judges a request to a host without an answer.
func failed(err error, host string) Exporter {
	// The text of a url.Error repeats the address, which may have secrets.
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	var (
		dns        *net.DNSError
		verify     *tls.CertificateVerificationError
		unknown    x509.UnknownAuthorityError
		hostname   x509.HostnameError
		record     tls.RecordHeaderError
		operation  *net.OpError
		netTimeout net.Error
	)
	out := Exporter{Code: CodeExporterFailed, What: host + ": " + probe.Printable(err.Error())}
	switch {
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "readLoopPeekFailLocked"):
		// A server of gRPC speaks first, and net/http notices it before or after its request.
		out.Code, out.What = CodeExporterRejected, host+" does not speak HTTP/1; OTLP uses port 4317 for gRPC, and 4318 for HTTP"
	case errors.As(err, &dns):
		out.Code, out.What = CodeExporterDNS, "the host name of "+host+" does not resolve"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &netTimeout) && netTimeout.Timeout():
		out.Code, out.What = CodeExporterTimeout, host+" did not answer within "+mostExporter.String()
	case errors.Is(err, syscall.ECONNREFUSED):
		out.Code, out.What = CodeExporterRefused, host+" refuses the connection"
	case errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &hostname), errors.As(err, &record),
		errors.As(err, &operation) && operation.Op == "remote error", strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		out.Code = CodeExporterTLS
	}
	return out
}
