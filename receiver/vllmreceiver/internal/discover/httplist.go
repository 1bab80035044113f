package discover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// httpList is Prometheus's http_sd_configs with a bounded reader.
type httpList struct{ *http.SDConfig }

// NewDiscoverer returns a discoverer that asks the endpoint.
func (c *httpList) NewDiscoverer(options discovery.DiscovererOptions) (discovery.Discoverer, error) {
	client, err := config.NewClientFromConfig(c.HTTPClientConfig, "http", options.HTTPClientOptions...)
	if err != nil {
		return nil, err
	}
	interval := time.Duration(c.RefreshInterval)
	client.Timeout = interval
	if c.HTTPClientConfig.FollowRedirects {
		client.CheckRedirect = stay
	}
	return &httpDiscoverer{url: c.URL, client: client, interval: interval, logger: options.Logger}, nil
}

// stay refuses a redirect to another host. The library sends the configured headers there.
func stay(next *nethttp.Request, before []*nethttp.Request) error {
	if reason := remote.Redirect(next.URL, before[0].URL, len(before), "http_sd_configs"); reason != "" {
		return errors.New("it " + reason)
	}
	return nil
}

type httpDiscoverer struct {
	url      string
	client   *nethttp.Client
	interval time.Duration
	logger   *slog.Logger
	// former is the number of groups of the last list.
	former int
}

// Run asks the endpoint until ctx ends.
func (d *httpDiscoverer) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	defer d.client.CloseIdleConnections()
	poll(ctx, d.interval, up, d.read)
}

// read returns the groups of the endpoint. While it fails, the targets of its last list
// stay.
func (d *httpDiscoverer) read(ctx context.Context) (groups []*targetgroup.Group, changed bool) {
	groups, err := d.ask(ctx)
	if err != nil && ctx.Err() == nil {
		d.logger.Error("the targets of http_sd_configs stay as they are, because the list could not be read", "url", d.url, "err", err.Error())
	}
	return groups, err == nil
}

var jsonType = regexp.MustCompile(`^(?i:\s*application/json\s*(;\s*charset="?utf-8"?\s*)?)$`)

// urlLabel is the label with the URL of a target's list.
const urlLabel = model.MetaLabelPrefix + "url"

func (d *httpDiscoverer) ask(ctx context.Context) ([]*targetgroup.Group, error) {
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, d.url, nethttp.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "otelcol-vllm")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-Prometheus-Refresh-Interval-Seconds", strconv.FormatFloat(d.interval.Seconds(), 'f', -1, 64))
	response, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	// The rest of the body is not read: it may be endless.
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != nethttp.StatusOK {
		return nil, fmt.Errorf("the endpoint answered %d %s", response.StatusCode, nethttp.StatusText(response.StatusCode))
	}
	if kind := response.Header.Get("Content-Type"); !jsonType.MatchString(kind) {
		return nil, fmt.Errorf("the endpoint answered with the content type %q instead of application/json", kind)
	}
	content, err := readAtMost(response.Body)
	if err != nil {
		return nil, err
	}
	found, err := decodeJSON(content)
	if err != nil {
		return nil, err
	}
	groups := found.named(d.url, urlLabel)
	former := d.former
	d.former = len(groups)
	return withoutFormer(groups, d.url, former), nil
}
