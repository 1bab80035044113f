package check

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// askPort finds out whether the exporter could listen at its address.
func askPort(ctx context.Context, section map[string]any, _ *configfile.Host) Exporter {
	var settings struct {
		Endpoint string `mapstructure:"endpoint"`
	}
	if err := confmap.NewFromStringMap(section).Unmarshal(&settings, confmap.WithIgnoreUnused()); err != nil {
		return unusable(err)
	}
	host, port, err := net.SplitHostPort(settings.Endpoint)
	if err != nil {
		return Exporter{Code: CodeExporterSettings, What: "the endpoint is not an address to listen at; write for example 0.0.0.0:9464"}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", settings.Endpoint)
	if err == nil {
		_ = listener.Close()
		return Exporter{What: settings.Endpoint + " is free"}
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if servesMetrics(ctx, "http://"+net.JoinHostPort(host, port)+"/metrics") {
		return Exporter{Code: CodePortCollector, What: settings.Endpoint + " is taken by a program that serves Prometheus metrics"}
	}
	return Exporter{Code: CodePortTaken, What: "cannot listen: " + probe.Printable(err.Error())}
}

// askRunning finds out whether the running collector listens at the address of the exporter. It takes no port.
func askRunning(ctx context.Context, section map[string]any) Exporter {
	endpoint, _ := section["endpoint"].(string)
	host, port, _ := net.SplitHostPort(endpoint)
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return Exporter{Code: CodeExporterRefused, What: "nothing listens at " + endpoint + ", although the collector runs"}
	}
	_ = connection.Close()
	return Exporter{What: "the running collector listens at " + endpoint}
}

// servesMetrics reports whether an address answers with Prometheus text.
func servesMetrics(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	begin, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	media := response.Header.Get("Content-Type")
	return response.StatusCode == http.StatusOK && (strings.HasPrefix(media, "text/plain") || strings.HasPrefix(media, "application/openmetrics-text")) &&
		(len(begin) == 0 || strings.Contains(string(begin), "# TYPE ") || strings.Contains(string(begin), "# HELP "))
}
