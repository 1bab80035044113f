package scrape

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Validate reports all mistakes together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	add := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	unread := slices.ContainsFunc(c.unread, func(err error) bool { return strings.HasPrefix(err.Error(), "targets:") })
	switch {
	case c.Client.Endpoint == "" && len(c.Targets) == 0 && !c.Discovery.isSet() && !unread:
		add("endpoint", "no server to scrape; set endpoint to one, for example http://vllm-0:8000, list several under targets, or let discovery find them")
	case c.Client.Endpoint != "" && len(c.Targets) > 0:
		add("endpoint", "set either endpoint or targets; move this endpoint into the list of targets")
	}
	if c.Client.Endpoint != "" {
		if _, err := ParseEndpoint(c.Client.Endpoint); err != nil {
			add("endpoint", "%v", err)
		}
	}
	seen := map[string]int{}
	for i := range c.Targets {
		key := fmt.Sprintf("targets::%d::endpoint", i)
		address, err := ParseEndpoint(c.Targets[i].Client.Endpoint)
		if err != nil {
			add(key, "%v", err)
			continue
		}
		id := KeyOf(c, address, c.Targets[i].ResourceAttributes, nil)
		if first, ok := seen[id]; ok {
			what := "server"
			if c.Targets[i].ResourceAttributes[InstanceAttribute] != nil {
				what = InstanceAttribute
			}
			add(key, "the same %s as targets::%d; remove one, or give it its own resource_attributes::service.instance.id", what, first)
			continue
		}
		seen[id] = i
		for name, value := range c.Targets[i].ResourceAttributes {
			switch value.(type) {
			case string, bool, int, int64, float64:
			default:
				add(fmt.Sprintf("targets::%d::resource_attributes::%s", i, name), "must be a text, a number or true or false, not %T", value)
			}
		}
	}
	validateClient("", &c.Client, &confighttp.ClientConfig{}, add)
	for i := range c.Targets {
		validateClient(fmt.Sprintf("targets::%d::", i), &c.Targets[i].Client, &c.Client, add)
	}
	c.Discovery.validate(add)
	c.validateCanaries(add)
	c.validateNumbers(add)
	c.validateNames(add)
	return errors.Join(errs...)
}

// validateClient finds mistakes in the settings of a client. Those that a target inherits are
// reported once.
func validateClient(key string, client, inherited *confighttp.ClientConfig, add func(key, format string, args ...any)) {
	if !slices.Equal(client.Headers, inherited.Headers) {
		for _, header := range client.Headers {
			// Every request would fail, for example with a secret from a file that ends with a line break.
			if !httpguts.ValidHeaderFieldName(header.Name) || !httpguts.ValidHeaderFieldValue(string(header.Value)) {
				// The value may be a secret.
				add(key+"headers::"+strconv.Quote(header.Name), "the name or the value cannot be sent; remove line breaks and control characters")
			}
		}
	}
	for _, file := range []struct{ key, name, inherited string }{
		{"ca_file", client.TLS.CAFile, inherited.TLS.CAFile},
		{"cert_file", client.TLS.CertFile, inherited.TLS.CertFile},
		{"key_file", client.TLS.KeyFile, inherited.TLS.KeyFile},
	} {
		if file.name == "" || file.name == file.inherited {
			continue
		}
		if _, err := os.Stat(file.name); err != nil {
			add(key+"tls::"+file.key, "the file cannot be read: %v", err)
		}
	}
	switch client.Compression {
	case "", "none", configcompression.TypeGzip, inherited.Compression:
	default:
		add(key+"compression", "%q cannot be asked for; write gzip for servers over a slow network, or leave it out", client.Compression)
	}
	for _, limit := range []struct {
		key          string
		n, inherited int
	}{
		{"max_conns_per_host", client.MaxConnsPerHost, inherited.MaxConnsPerHost},
		// Unmarshal of the client puts the section into its deprecated fields.
		{"keepalive::max_idle_conns", client.MaxIdleConns, inherited.MaxIdleConns},
		{"keepalive::max_idle_conns_per_host", client.MaxIdleConnsPerHost, inherited.MaxIdleConnsPerHost},
	} {
		// net/http takes negative numbers as no limit.
		if limit.n < 0 && limit.n != limit.inherited {
			add(key+limit.key, "must not be negative; 0 is the default of Go's HTTP client")
		}
	}
	if client.ProxyURL == inherited.ProxyURL {
		return
	}
	// The error of url.Parse would repeat the address with its secrets.
	switch address, err := url.ParseRequestURI(client.ProxyURL); {
	case client.ProxyURL == "":
	case err != nil || address.Host == "":
		add(key+"proxy_url", "is not a URL; write for example http://proxy:3128")
	case !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, address.Scheme):
		add(key+"proxy_url", "a proxy cannot have the scheme %q; write http, https, socks5 or socks5h, for example http://proxy:3128", address.Scheme)
	}
}

func (c *Config) validateNumbers(add func(key, format string, args ...any)) {
	if interval := c.Controller.CollectionInterval; interval > 0 && interval < minInterval {
		add("collection_interval", "%s is too short; write a unit, for example 15s", interval)
	}
	if c.Controller.InitialDelay < 0 {
		add("initial_delay", "must not be negative")
	}
	if delay := c.Controller.InitialDelay; delay > maxDelay {
		add("initial_delay", "%s is too long: nothing is scraped until then; write at most %s, for example 1s", delay, maxDelay)
	}
	if c.Controller.CollectionInterval > 0 && c.Client.Timeout > c.Controller.CollectionInterval {
		add("timeout", "%s is longer than collection_interval (%s), so scrapes would be skipped; make it shorter", c.Client.Timeout, c.Controller.CollectionInterval)
	}
	if c.Client.Timeout < 0 {
		add("timeout", "must not be negative")
	}
	if c.Client.Timeout == 0 {
		add("timeout", "must be more than 0, or a scrape of a server that hangs would never end; the default is 10s")
	}
	for i := range c.Targets {
		key := fmt.Sprintf("targets::%d::", i)
		switch timeout := c.Targets[i].Client.Timeout; {
		case timeout <= 0:
			add(key+"timeout", "must be more than 0")
		case timeout > c.Controller.CollectionInterval && timeout != c.Client.Timeout:
			add(key+"timeout", "%s is longer than collection_interval (%s), so scrapes would be skipped; make it shorter", timeout, c.Controller.CollectionInterval)
		}
	}
	if c.Limits.BodySize <= 0 {
		add("limits::body_size", "must be more than 0; the default is 8MiB")
	}
	if c.Limits.Memory < 0 {
		add("limits::memory", "must not be negative; leave it out for an eighth of GOMEMLIMIT")
	}
	usual := defaultLimits()
	for _, limit := range []struct {
		key      string
		n, usual int
	}{
		{"series", c.Limits.Series, usual.Series},
		{"adapters", c.Limits.Adapters, usual.Adapters},
		{"devices", c.Limits.Devices, usual.Devices},
		{"targets", c.Limits.Targets, usual.Targets},
	} {
		if limit.n <= 0 {
			add("limits::"+limit.key, "must be more than 0; the default is %d", limit.usual)
		}
	}
}

// maxDelay is the longest valid delay of the first scrape.
const maxDelay = time.Hour

// minInterval is the shortest valid interval. A shorter one is a mistake: a number without
// a unit means nanoseconds.
const minInterval = time.Millisecond

func (c *Config) validateNames(add func(key, format string, args ...any)) {
	if c.Naming != NamingCanonical && c.Naming != NamingWire {
		add("naming", "%q is unknown; write canonical or wire", string(c.Naming))
	}
	switch c.Source {
	case normalize.SourceAuto, normalize.SourceVLLM, normalize.SourceGateway, normalize.SourceLoRA, normalize.SourceDCGM, normalize.SourceAMD:
	default:
		add("source", "%q is unknown; write auto, vllm, gateway, lora, dcgm or amd", string(c.Source))
	}
	for i, prefix := range c.Prefixes {
		switch key := fmt.Sprintf("prefixes::%d", i); {
		case prefix == "":
			add(key, "must not be empty")
		case strings.ContainsAny(prefix, " \t\r\n{}\""):
			add(key, "%q cannot be the prefix of a metric: names have no spaces, braces or quotes; write for example ray_", prefix)
		}
	}
	if wanted := c.Metrics["vllm.healthy"].Enabled; wanted != nil && *wanted && !c.HealthCheck {
		add("metrics::vllm.healthy", "this metric needs the answer of /health; set health_check: true as well")
	}
	if c.GenAI.Enabled && c.Naming == NamingWire {
		add("gen_ai::enabled", "the mirror exists only with naming: canonical; change one of the two settings")
	}
	if c.ServiceName == "" {
		add("service_name", "must not be empty; to leave the attribute out, set resource_attributes::service.name::enabled to false")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		if mistake := unknownMetric(name); mistake != "" {
			add("metrics::"+name, "%s", mistake)
		}
	}
}

// unknownMetric returns what is wrong with the name of a switch; empty if the receiver can
// emit a metric of this name.
func unknownMetric(name string) string {
	emitted := func(m *catalog.Metric) bool { return m.EmittedBy == "receiver" }
	if m, ok := catalog.ByName(name); ok {
		if emitted(m) {
			return ""
		}
		return "the processor derives this metric; switch it under processors::vllm::metrics"
	}
	for _, prefix := range append([]string{catalog.Router.Name}, catalog.DisabledPrefixes...) {
		if strings.HasPrefix(name, prefix) {
			return ""
		}
	}
	for i := range catalog.Accelerators.Exporters {
		if strings.HasPrefix(name, catalog.Accelerators.Exporters[i].Unknown) {
			return ""
		}
	}
	return fmt.Sprintf("no metric has this name; did you mean %s?", catalog.Nearest(name, emitted))
}
