package scrape

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// picker answers as the authentication in front of an endpoint picker's metrics
// does: a token that it does not know is an internal error there.
func picker(w http.ResponseWriter, r *http.Request) {
	switch token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case !isBearer || token == "":
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case token == "without-a-role":
		http.Error(w, "Authorization denied for user system:serviceaccount:monitoring:norbac", http.StatusForbidden)
	case token != "good":
		http.Error(w, "Authentication failed", http.StatusInternalServerError)
	default:
		_, _ = w.Write([]byte("# TYPE inference_pool_ready_pods gauge\ninference_pool_ready_pods{name=\"p\"} 4\n"))
	}
}

// hostWith has one extension.
type hostWith struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h.extensions }

// A token in a file passes through everything that a picker answers, and the
// operator reads each time what to do.
func TestATokenFileAgainstAPickersAuthentication(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(picker))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) { require.NoError(t, os.WriteFile(file, []byte(token), 0o600)) }
	write("expired")

	factory := bearertokenauthextension.NewFactory()
	settings := factory.CreateDefaultConfig().(*bearertokenauthextension.Config)
	settings.Filename = file
	extension, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), settings)
	require.NoError(t, err)
	require.NoError(t, extension.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, extension.Shutdown(t.Context())) })
	id := component.NewID(factory.Type())

	s, logs := scraperOf(t, func(c *Config) {
		c.Client.Endpoint = server.URL
		c.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
		c.Client.DisableKeepAlives = true
	})
	require.NoError(t, s.Start(t.Context(), hostWith{componenttest.NewNopHost(), map[component.ID]component.Component{id: extension}}))
	t.Cleanup(func() { s.Close() })

	for _, step := range []struct{ token, words string }{
		{"expired", "could not verify the token"},
		{"without-a-role", "nonResourceURLs: [/metrics], verbs: [get]"},
		{"good", ""},
	} {
		// The file has the first token already: the extension can miss a change while it starts to watch.
		if step.token != "expired" {
			write(step.token)
		}
		// The extension needs a moment to see that the file changed.
		require.Eventually(t, func() bool {
			// The log has one line for each time that a target starts to fail, and a few in ten minutes.
			s.failures.failure, s.failures.budget = nil, lineBudget{}
			out, _ := scrapeOnce(t.Context(), s)
			if step.words == "" {
				return totalOf(out, pool+"endpoint.ready").value == 4
			}
			all := logs.All()
			return len(all) > 0 && strings.Contains(all[len(all)-1].Message, step.words)
		}, 30*time.Second, 20*time.Millisecond, step.token)
	}
	for _, entry := range logs.All() {
		assert.NotContains(t, entry.Message, "norbac", "what the server wrote is not repeated")
	}
}

// scraperOf returns the scraper of a configuration's one target, not started.
func scraperOf(t *testing.T, change func(*Config)) (*Target, *observer.ObservedLogs) {
	t.Helper()
	cfg := DefaultConfig()
	change(cfg)
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.WarnLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	group, err := NewGroup(cfg, settings)
	require.NoError(t, err)
	t.Cleanup(group.Shutdown)
	return group.NewTarget(Configured(cfg)[0]), logs
}

func TestCredentialsOverPlainHTTPAreWarnedOf(t *testing.T) {
	token := configopaque.MapList{{Name: "authorization", Value: "Bearer x"}}
	for name, tt := range map[string]struct {
		endpoint string
		headers  configopaque.MapList
		want     int
	}{
		"a token to another machine":  {"http://epp.example:9090", token, 1},
		"a password in the address":   {"http://user:word@epp.example:9090", nil, 1},
		"a token over TLS":            {"https://epp.example:9090", token, 0},
		"a token to this machine":     {"http://127.0.0.2:9090", token, 0},
		"a token to this machine, v6": {"http://[::1]:9090", token, 0},
		"a token to localhost":        {"http://localhost:9090", token, 0},
		"no token":                    {"http://epp.example:9090", configopaque.MapList{{Name: "X-Tenant", Value: "a"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := scraperOf(t, func(c *Config) {
				c.Client.Endpoint, c.Client.Headers = tt.endpoint, tt.headers
			})
			require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
			assert.Equal(t, tt.want, logs.Len())
			for _, entry := range logs.All() {
				assert.Contains(t, entry.Message, "plain HTTP")
				assert.NotContains(t, entry.Message+fields(entry.ContextMap()), "word")
			}
			s.Close()
		})
	}
}

func TestAnAuthenticatorThatDoesNotRunIsNamed(t *testing.T) {
	s, _ := scraperOf(t, func(cfg *Config) {
		cfg.Client.Endpoint = "http://127.0.0.1:1"
		cfg.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewIDWithName("bearertokenauth", "gateway")})
	})
	require.EqualError(t, s.Start(t.Context(), componenttest.NewNopHost()), `auth::authenticator: the extension "bearertokenauth/gateway" does not run; `+
		"configure it under extensions and list it under service::extensions")
}
