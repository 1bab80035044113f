package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// grpcSettings are the settings of an exporter that speaks gRPC. The collector's own package
// for them, configgrpc, is not a dependency of this module.
type grpcSettings struct {
	Endpoint string                                     `mapstructure:"endpoint"`
	TLS      configtls.ClientConfig                     `mapstructure:"tls"`
	Headers  configopaque.MapList                       `mapstructure:"headers"`
	Auth     configoptional.Optional[configauth.Config] `mapstructure:"auth"`

	_ struct{}
}

// askGRPC connects, does the TLS handshake, and exports nothing.
func askGRPC(ctx context.Context, section map[string]any, host *configfile.Host) Exporter {
	settings := &grpcSettings{TLS: configtls.NewDefaultClientConfig()}
	if err := confmap.NewFromStringMap(section).Unmarshal(settings, confmap.WithIgnoreUnused()); err != nil {
		return unusable(err)
	}
	address, plain := settings.address()
	if scheme, _, found := strings.Cut(address, ":"); found && slices.Contains(otherSchemes, scheme) {
		return Exporter{Code: CodeExporterUnchecked, What: "an endpoint of the kind " + scheme + " is not checked"}
	}
	if auth := settings.Auth.Get(); auth != nil && host.Lacks(auth.AuthenticatorID) {
		return unchecked(auth.AuthenticatorID)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return Exporter{Code: CodeExporterSettings, What: "the endpoint has no port; write for example backend:4317"}
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}}); err == nil && proxy != nil {
		return Exporter{Code: CodeExporterUnchecked, What: "it is reached through the proxy of HTTPS_PROXY, which is not checked for gRPC"}
	}
	began := time.Now()
	// A connection of its own says more clearly than gRPC what fails.
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err, address)
	}
	defer connection.Close()
	transport := insecure.NewCredentials()
	var config *tls.Config
	if !plain {
		config, err = settings.TLS.LoadTLSConfig(ctx)
		if err != nil {
			return unusable(err)
		}
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		transport = credentials.NewTLS(config)
		if _, _, err := transport.ClientHandshake(ctx, cmp.Or(config.ServerName, address), connection); err != nil {
			out := failed(err, address)
			if out.Code == CodeExporterFailed {
				out.Code = CodeExporterTLS
			}
			return out
		}
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(transport), grpc.WithUserAgent("otelcol-vllm")}
	if auth := settings.Auth.Get(); auth != nil {
		client, err := auth.GetGRPCClientAuthenticator(ctx, host.GetExtensions())
		if err != nil {
			return unusable(err)
		}
		perCall, err := client.PerRPCCredentials()
		if err != nil {
			return unusable(err)
		}
		options = append(options, grpc.WithPerRPCCredentials(perCall))
	}
	_ = connection.Close() // Some backends serve one connection at a time.
	client, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		return unusable(err)
	}
	defer client.Close()
	for name, value := range settings.Headers.Iter {
		ctx = metadata.AppendToOutgoingContext(ctx, name, string(value))
	}
	_, err = pmetricotlp.NewGRPCClient(client).Export(ctx, pmetricotlp.NewExportRequest())
	out := byCode(err, address, time.Since(began))
	switch {
	case out.Code != CodeExporterFailed:
	case plain && speaksTLS(ctx, address, mostHandshake):
		return withoutTLS(address)
	case !plain:
		_ = client.Close()
		if reason := refusal(ctx, address, config); reason != "" {
			return Exporter{Code: CodeExporterTLS, What: address + ": " + reason}
		}
	}
	return out
}

// otherSchemes are kinds of endpoints of gRPC that are not a host and port.
var otherSchemes = []string{"unix", "unix-abstract", "passthrough", "xds", "vsock"}

// address is host and port, and whether the connection is plain, as the exporter reads both.
func (s *grpcSettings) address() (address string, plain bool) {
	address, plain = s.Endpoint, s.TLS.Insecure
	if rest, is := strings.CutPrefix(address, "http://"); is {
		return strings.TrimSuffix(rest, "/"), true
	}
	if rest, is := strings.CutPrefix(address, "https://"); is {
		return strings.TrimSuffix(rest, "/"), false
	}
	return strings.TrimLeft(strings.TrimPrefix(address, "dns:"), "/"), plain
}

// byCode judges the answer to a call.
func byCode(err error, address string, took time.Duration) Exporter {
	answer := status.Convert(err)
	what := fmt.Sprintf("%s answers %s: %s", address, answer.Code(), probe.Printable(answer.Message()))
	switch answer.Code() {
	case grpccodes.OK:
		return Exporter{What: fmt.Sprintf("%s accepts an empty request, in %s", address, rounded(took))}
	case grpccodes.Unauthenticated, grpccodes.PermissionDenied:
		return Exporter{Code: CodeExporterAuth, What: what}
	case grpccodes.Unimplemented, grpccodes.NotFound:
		return Exporter{Code: CodeExporterRejected, What: what}
	case grpccodes.InvalidArgument, grpccodes.OutOfRange, grpccodes.FailedPrecondition:
		return Exporter{Code: CodeExporterEmpty, What: what}
	case grpccodes.Unavailable:
		if strings.Contains(answer.Message(), "remote error: tls:") {
			// A backend that wants a certificate ends the connection after the handshake.
			return Exporter{Code: CodeExporterTLS, What: what}
		}
		if strings.Contains(answer.Message(), "HTTP/1.1 header") {
			return Exporter{Code: CodeExporterRejected, What: address + " does not speak gRPC; OTLP uses port 4317 for gRPC, and 4318 for HTTP"}
		}
	case grpccodes.DeadlineExceeded:
		return Exporter{Code: CodeExporterTimeout, What: address + " did not answer within " + mostExporter.String()}
	}
	return Exporter{Code: CodeExporterFailed, What: what}
}
