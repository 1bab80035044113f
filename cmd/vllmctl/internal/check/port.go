package check

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
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

// defaults are where extensions listen that a configuration need not give an address.
var defaults = map[string]string{
	"health_check": "localhost:13133", "health_check_v2": "localhost:13133", "pprof": "localhost:1777", "vllm_fleet": "localhost:55690", "zpages": "localhost:55679",
}

// listeners are the addresses of a collector's extensions and own metrics, by where the configuration has them.
func listeners(file *configfile.File) map[string]string {
	out := map[string]string{}
	for _, name := range file.Started {
		kind, _, _ := strings.Cut(name, "/")
		address, listens := defaults[kind]
		section := file.Extensions[name]
		if part, has := section["http"].(map[string]any); has {
			section = part
		}
		if set, has := section["endpoint"].(string); has {
			address = set
		}
		if listens {
			out["extensions::"+name] = address
		}
	}
	var own struct {
		Level   string `mapstructure:"level"`
		Readers []struct {
			Pull struct {
				Exporter struct {
					Prometheus *struct {
						Host string `mapstructure:"host"`
						Port int    `mapstructure:"port"`
					} `mapstructure:"prometheus"`
				} `mapstructure:"exporter"`
			} `mapstructure:"pull"`
		} `mapstructure:"readers"`
	}
	const name = "service::telemetry::metrics"
	err := confmap.NewFromStringMap(file.Telemetry).Unmarshal(&own, confmap.WithIgnoreUnused())
	if err != nil || strings.EqualFold(own.Level, "none") {
		return out
	}
	if _, set := file.Telemetry["readers"]; !set {
		out[name] = "localhost:8888"
	}
	for _, reader := range own.Readers {
		if p := reader.Pull.Exporter.Prometheus; p != nil {
			out[name] = net.JoinHostPort(p.Host, strconv.Itoa(p.Port))
		}
	}
	return out
}

// askListeners finds out whether the collector could listen there, or does if it runs, and returns what is wrong.
func askListeners(ctx context.Context, file *configfile.File, running bool) (wrong []Exporter) {
	ctx, cancel := context.WithTimeout(ctx, mostExporter)
	defer cancel()
	addresses, collector := listeners(file), false
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		if host, _, err := net.SplitHostPort(addresses[name]); err != nil || host == "" {
			continue // The host is mostly a variable that is not set.
		}
		section := map[string]any{"endpoint": addresses[name]}
		one := Exporter{}
		if running {
			one = askRunning(ctx, section)
		} else {
			one = askPort(ctx, section, nil)
		}
		if one.Name = name; one.Code != "" {
			wrong = append(wrong, one)
		}
		collector = collector || one.Code == CodePortCollector
	}
	for i := range wrong {
		if collector && wrong[i].Code == CodePortTaken {
			wrong[i].Code = CodePortCollector // The collector with the metrics has this port as well.
		}
	}
	return wrong
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
