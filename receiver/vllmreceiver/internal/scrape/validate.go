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
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"
	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Validate reports all mistakes together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	add := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	switch {
	case c.Client.Endpoint == "" && len(c.Targets) == 0 && !c.Discovery.isSet():
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
		if !slices.Equal(c.Targets[i].Client.Headers, c.Client.Headers) {
			validateHeaders(fmt.Sprintf("targets::%d::", i), c.Targets[i].Client.Headers, add)
		}
		for name, value := range c.Targets[i].ResourceAttributes {
			switch value.(type) {
			case string, bool, int, int64, float64:
			default:
				add(fmt.Sprintf("targets::%d::resource_attributes::%s", i, name), "must be a text, a number or true or false, not %T", value)
			}
		}
	}
	validateHeaders("", c.Client.Headers, add)
	validateFiles("", &c.Client.TLS, nil, add)
	for i := range c.Targets {
		validateFiles(fmt.Sprintf("targets::%d::", i), &c.Targets[i].Client.TLS, &c.Client.TLS, add)
	}
	validateCompression("", &c.Client, add)
	for i := range c.Targets {
		if c.Targets[i].Client.Compression != c.Client.Compression {
			validateCompression(fmt.Sprintf("targets::%d::", i), &c.Targets[i].Client, add)
		}
	}
	c.Discovery.validate(add)
	c.validateCanaries(add)
	c.validateNumbers(add)
	c.validateNames(add)
	return errors.Join(errs...)
}

// validateHeaders finds headers with which every request would fail, for example a secret
// that was read from a file and ends with a line break.
func validateHeaders(key string, headers configopaque.MapList, add func(key, format string, args ...any)) {
	for _, header := range headers {
		if !httpguts.ValidHeaderFieldName(header.Name) || !httpguts.ValidHeaderFieldValue(string(header.Value)) {
			// The value may be a secret.
			add(key+"headers::"+strconv.Quote(header.Name), "the name or the value cannot be sent; remove line breaks and control characters")
		}
	}
}

// validateCompression finds a compression that the receiver cannot ask for.
func validateCompression(key string, client *confighttp.ClientConfig, add func(key, format string, args ...any)) {
	switch client.Compression {
	case "", "none", configcompression.TypeGzip:
	default:
		add(key+"compression", "%q cannot be asked for; write gzip for servers over a slow network, or leave it out", client.Compression)
	}
}

// validateFiles finds the files for TLS that cannot be read. A file that targets inherit
// is reported once.
func validateFiles(key string, tls, inherited *configtls.ClientConfig, add func(key, format string, args ...any)) {
	for _, file := range []struct {
		key  string
		name func(*configtls.ClientConfig) string
	}{
		{"ca_file", func(c *configtls.ClientConfig) string { return c.CAFile }},
		{"cert_file", func(c *configtls.ClientConfig) string { return c.CertFile }},
		{"key_file", func(c *configtls.ClientConfig) string { return c.KeyFile }},
	} {
		name := file.name(tls)
		if name == "" || inherited != nil && name == file.name(inherited) {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			add(key+"tls::"+file.key, "the file cannot be read: %v", err)
		}
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
	validateConnections("", &c.Client, nil, add)
	c.validateProxy("proxy_url", c.Client.ProxyURL, add)
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
		validateConnections(key, &c.Targets[i].Client, &c.Client, add)
		if proxy := c.Targets[i].Client.ProxyURL; proxy != c.Client.ProxyURL {
			c.validateProxy(key+"proxy_url", proxy, add)
		}
	}
	if c.Limits.BodySize <= 0 {
		add("limits::body_size", "must be more than 0; the default is 8MiB")
	}
	if c.Limits.Memory < 0 {
		add("limits::memory", "must not be negative; leave it out for an eighth of GOMEMLIMIT")
	}
	if c.Limits.Series <= 0 {
		add("limits::series", "must be more than 0; the default is 20000")
	}
	if c.Limits.Adapters <= 0 {
		add("limits::adapters", "must be more than 0; the default is 1000")
	}
	if c.Limits.Devices <= 0 {
		add("limits::devices", "must be more than 0; the default is 256")
	}
	if c.Limits.Targets <= 0 {
		add("limits::targets", "must be more than 0; the default is 1000")
	}
}

// maxDelay is the longest valid delay of the first scrape.
const maxDelay = time.Hour

// validateConnections finds negative numbers, which net/http takes as no limit. One that targets
// inherit is reported once.
func validateConnections(key string, client, inherited *confighttp.ClientConfig, add func(key, format string, args ...any)) {
	for _, limit := range []struct {
		key string
		of  func(*confighttp.ClientConfig) int
	}{
		{"max_conns_per_host", func(c *confighttp.ClientConfig) int { return c.MaxConnsPerHost }},
		// Unmarshal of the client puts the section into its deprecated fields.
		{"keepalive::max_idle_conns", func(c *confighttp.ClientConfig) int { return c.MaxIdleConns }},
		{"keepalive::max_idle_conns_per_host", func(c *confighttp.ClientConfig) int { return c.MaxIdleConnsPerHost }},
	} {
		if n := limit.of(client); n < 0 && (inherited == nil || n != limit.of(inherited)) {
			add(key+limit.key, "must not be negative; 0 is the default of Go's HTTP client")
		}
	}
}

// minInterval is the shortest valid interval. A shorter one is a mistake: a number without
// a unit means nanoseconds.
const minInterval = time.Millisecond

func (c *Config) validateProxy(key, proxy string, add func(key, format string, args ...any)) {
	if proxy == "" {
		return
	}
	// The error of url.Parse would repeat the address with its secrets.
	switch address, err := url.ParseRequestURI(proxy); {
	case err != nil || address.Host == "":
		add(key, "is not a URL; write for example http://proxy:3128")
	case !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, address.Scheme):
		add(key, "the scheme %q is none of a proxy; write http, https, socks5 or socks5h, for example http://proxy:3128", address.Scheme)
	}
}

func (c *Config) validateNames(add func(key, format string, args ...any)) {
	if c.Naming != NamingCanonical && c.Naming != NamingWire {
		add("naming", "%q is unknown; write canonical or wire", string(c.Naming))
	}
	if _, ok := planSources[c.Source]; !ok {
		add("source", "%q is unknown; write auto, vllm, gateway, lora, dcgm or amd", string(c.Source))
	}
	for i, prefix := range c.Prefixes {
		switch key := fmt.Sprintf("prefixes::%d", i); {
		case prefix == "":
			add(key, "must not be empty")
		case strings.ContainsAny(prefix, " \t\r\n{}\""):
			add(key, "%q is in front of no metric: names have no spaces, braces or quotes; write for example ray_", prefix)
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
