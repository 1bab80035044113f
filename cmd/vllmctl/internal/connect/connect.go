// Package connect has the flags with which vllmctl reaches servers and Prometheus: headers,
// tokens, certificates and timeouts. The settings are those of the collector's HTTP client.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
)

// Flags are the values of the flags. The zero value is not usable: call Register.
type Flags struct {
	headers                                                 []string
	tokenFile, caFile, certFile, keyFile, serverName, proxy string
	insecure                                                bool
	timeout                                                 time.Duration
}

// Register adds the flags to a command. timeout is the default of --timeout.
func (f *Flags) Register(flags *pflag.FlagSet, timeout time.Duration) {
	flags.StringArrayVar(&f.headers, "header", nil, "add the header `'Name: value'` to each request; repeatable")
	flags.StringVar(&f.tokenFile, "token-file", "", "send the bearer token in this `file`; it is read again when it changes")
	flags.StringVar(&f.caFile, "ca-file", "", "also trust the certificate authorities in this `file`")
	flags.StringVar(&f.certFile, "cert-file", "", "present the client certificate in this `file`")
	flags.StringVar(&f.keyFile, "key-file", "", "use the key of the client certificate in this `file`")
	flags.StringVar(&f.serverName, "server-name", "", "expect this `name` in the server's certificate")
	flags.BoolVar(&f.insecure, "insecure-skip-verify", false, "accept any certificate; only for tests")
	flags.StringVar(&f.proxy, "proxy-url", "", "use the proxy at this `URL` (default: HTTPS_PROXY and NO_PROXY)")
	flags.DurationVar(&f.timeout, timeoutFlag, timeout, "limit for one answer as a whole")
}

// timeoutFlag has another default in each command.
const timeoutFlag = "timeout"

// Shared returns the flags that are the same in all commands.
func Shared() *pflag.FlagSet {
	all, shared := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Flags).Register(all, 0)
	all.VisitAll(func(f *pflag.Flag) {
		if f.Name != timeoutFlag {
			shared.AddFlag(f)
		}
	})
	return shared
}

// tokenExtension is the name of the extension that adds the token of --token-file.
const tokenExtension = "bearertokenauth/vllmctl"

// Settings returns the settings of the client in the collector's terms, and the sections of
// the extensions that they name. Errors say which flag is wrong. Neither contains the token
// of --token-file.
func (f *Flags) Settings() (client map[string]any, extensions map[string]map[string]any, err error) {
	client, extensions = map[string]any{}, map[string]map[string]any{}
	if f.timeout <= 0 {
		return nil, nil, fmt.Errorf("--timeout %s must be longer than 0", f.timeout)
	}
	client["timeout"] = f.timeout.String()
	headers := map[string]any{}
	for _, h := range f.headers {
		name, value, found := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			// The value may be a secret.
			return nil, nil, errors.New("--header must be written as 'Name: value', on one line")
		}
		if strings.EqualFold(name, "authorization") && f.tokenFile != "" {
			return nil, nil, errors.New("use either --header Authorization or --token-file")
		}
		headers[name] = value
	}
	if len(headers) > 0 {
		client["headers"] = headers
	}
	tls := map[string]any{}
	for _, file := range []struct{ flag, key, path string }{
		{"--ca-file", "ca_file", f.caFile},
		{"--cert-file", "cert_file", f.certFile},
		{"--key-file", "key_file", f.keyFile},
		{"--token-file", "", f.tokenFile},
	} {
		if file.path == "" {
			continue
		}
		if err := readable(file.path); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file.flag, err)
		}
		if file.key != "" {
			tls[file.key] = file.path
		}
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return nil, nil, errors.New("set both --cert-file and --key-file")
	}
	if f.caFile != "" {
		tls["include_system_ca_certs_pool"] = true
	}
	if f.serverName != "" {
		tls["server_name_override"] = f.serverName
	}
	if f.insecure {
		tls["insecure_skip_verify"] = true
	}
	if len(tls) > 0 {
		client["tls"] = tls
	}
	if f.proxy != "" {
		if _, err := url.Parse(f.proxy); err != nil {
			// It may have a password.
			return nil, nil, errors.New("--proxy-url is not a URL; write a percent sign in it as %25")
		}
		client["proxy_url"] = f.proxy
	}
	if f.tokenFile != "" {
		extensions[tokenExtension] = map[string]any{"filename": f.tokenFile}
		client["auth"] = map[string]any{"authenticator": tokenExtension}
	}
	return client, extensions, nil
}

// readable returns an error if a file cannot be opened.
func readable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", path)
	}
	return nil
}

// Connection is a client with the extensions that it needs.
type Connection struct {
	// Client are the settings, for the receiver for example.
	Client confighttp.ClientConfig
	// Host has the extensions.
	Host *configfile.Host
}

// Open starts what the flags need. Close the connection afterwards.
func (f *Flags) Open(ctx context.Context, logger *zap.Logger) (*Connection, error) {
	settings, extensions, err := f.Settings()
	if err != nil {
		return nil, err
	}
	c := &Connection{Client: confighttp.NewDefaultClientConfig()}
	if err := confmap.NewFromStringMap(settings).Unmarshal(&c.Client); err != nil {
		return nil, err
	}
	if c.Host, err = configfile.NewHost(ctx, extensions, logger); err != nil {
		return nil, err
	}
	return c, nil
}

// ErrRedirect is the reason why a redirect is not followed.
var ErrRedirect = errors.New("the server redirects to another host or away from TLS, which would expose the credentials; write the final address")

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 5

// Redirect is a CheckRedirect of a client with credentials.
func Redirect(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Host != first.Host || first.Scheme == "https" && next.URL.Scheme != "https" {
		return ErrRedirect
	}
	if len(before) > maxRedirects {
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	}
	return nil
}

// HTTP returns a client for requests that no component sends, to Prometheus for example. It follows no
// redirect to another host: the headers can have credentials, and Go's client takes
// them along.
func (c *Connection) HTTP(ctx context.Context, logger *zap.Logger) (*http.Client, error) {
	settings := configfile.Telemetry(logger)
	settings.TracerProvider, settings.MeterProvider = nil, nil
	client, err := c.Client.ToClient(ctx, c.Host.GetExtensions(), settings)
	if err != nil {
		return nil, err
	}
	client.CheckRedirect = Redirect
	return client, nil
}

// Close stops the extensions.
func (c *Connection) Close(ctx context.Context) error { return c.Host.Shutdown(ctx) }

var _ component.Host = (*configfile.Host)(nil)

// Address returns the address of a server as the receiver expects it: one without a scheme
// is http, and an IPv6 address alone gets its brackets. The receiver adds the path itself.
func Address(argument string) string {
	if argument == "" || strings.Contains(argument, "://") {
		return argument
	}
	if ip, err := netip.ParseAddr(argument); err == nil && ip.Is6() {
		argument = "[" + argument + "]"
	}
	return "http://" + argument
}
