package connect_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
)

func flags(t *testing.T, args ...string) *connect.Flags {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := &connect.Flags{}
	f.Register(set, 3*time.Second)
	require.NoError(t, set.Parse(args))
	return f
}

// ask sends a request with the flags, and returns its header.
func ask(t *testing.T, args ...string) http.Header {
	t.Helper()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }))
	defer server.Close()
	c, err := flags(t, args...).Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	client, err := c.HTTP(t.Context(), zap.NewNop())
	require.NoError(t, err)
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	client.CloseIdleConnections()
	require.NoError(t, c.Close(t.Context()))
	return got
}

func TestHeadersAndTheTokenOfAFileAreSent(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	got := ask(t, "--header", "X-Scope-OrgID: a: b", "--header", "X-Two:2", "--token-file", token)
	assert.Equal(t, "a: b", got.Get("X-Scope-OrgID"))
	assert.Equal(t, "2", got.Get("X-Two"))
	assert.Equal(t, "Bearer s3cret", got.Get("Authorization"))
	assert.Empty(t, ask(t).Get("Authorization"))
}

func TestTLSFlagsDecideWhichServerIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pemOf(server), 0o600))
	for name, c := range map[string]struct {
		args  []string
		works bool
	}{
		"none":       {nil, false},
		"authority":  {[]string{"--ca-file", ca}, true},
		"other name": {[]string{"--ca-file", ca, "--server-name", "elsewhere"}, false},
		"its name":   {[]string{"--ca-file", ca, "--server-name", "example.com"}, true},
		"any":        {[]string{"--insecure-skip-verify"}, true},
	} {
		conn, err := flags(t, c.args...).Open(t.Context(), zap.NewNop())
		require.NoError(t, err, name)
		client, err := conn.HTTP(t.Context(), zap.NewNop())
		require.NoError(t, err, name)
		response, err := client.Get(server.URL)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		assert.Equal(t, c.works, err == nil, "%s: %v", name, err)
		client.CloseIdleConnections()
		require.NoError(t, conn.Close(t.Context()))
	}
}

func TestTheTimeoutEndsARequest(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	conn, err := flags(t, "--timeout", "50ms").Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	client, err := conn.HTTP(t.Context(), zap.NewNop())
	require.NoError(t, err)
	_, err = client.Get(server.URL)
	assert.ErrorContains(t, err, "exceeded")
}

func TestAMistakeNamesItsFlagAndNoSecret(t *testing.T) {
	folder := t.TempDir()
	token := filepath.Join(folder, "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no colon":      {[]string{"--header", "s3cret"}, "--header must be written as 'Name: value'"},
		"two lines":     {[]string{"--header", "a: s3cret\nb: c"}, "--header must be written as 'Name: value'"},
		"bad name":      {[]string{"--header", "a b: s3cret"}, "--header must be written as 'Name: value'"},
		"both":          {[]string{"--header", "authorization: s3cret", "--token-file", token}, "either --header Authorization or --token-file"},
		"no token":      {[]string{"--token-file", folder + "/none"}, "--token-file: "},
		"token folder":  {[]string{"--token-file", folder}, "is a folder"},
		"no authority":  {[]string{"--ca-file", folder + "/none"}, "--ca-file: "},
		"half a client": {[]string{"--cert-file", token}, "set both --cert-file"},
		"no proxy":      {[]string{"--proxy-url", "http://u:s3cret@h/%zz"}, "--proxy-url is not a URL"},
		"no time":       {[]string{"--timeout", "0s"}, "--timeout 0s must be longer than 0"},
	} {
		_, err := flags(t, c.args...).Open(t.Context(), zap.NewNop())
		require.ErrorContains(t, err, c.want, name)
		assert.NotContains(t, err.Error(), "s3cret", name)
	}
}

func TestAnAddressWithoutASchemeIsHTTP(t *testing.T) {
	for written, want := range map[string]string{
		"vllm-0:8000": "http://vllm-0:8000", "vllm-0:8000/x": "http://vllm-0:8000/x", "[::1]:8000": "http://[::1]:8000",
		"https://vllm-0": "https://vllm-0", "": "", "::1": "http://[::1]", "10.0.0.1": "http://10.0.0.1",
	} {
		assert.Equal(t, want, connect.Address(written))
	}
}

// A server, or who is on the way to it, must not send the credentials of the flags elsewhere.
func TestARedirectToAnotherHostDoesNotGetTheCredentials(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("X-Api-Key"))
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/slash":
			http.Redirect(w, r, "/slash/", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		}
	}))
	defer server.Close()
	c, err := flags(t, "--header", "X-Api-Key: secret").Open(t.Context(), zap.NewNop())
	require.NoError(t, err)
	client, err := c.HTTP(t.Context(), zap.NewNop())
	require.NoError(t, err)
	get := func(path string) error {
		response, err := client.Get(server.URL + path)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		return err
	}
	require.ErrorIs(t, get("/away"), connect.ErrRedirect)
	assert.False(t, asked)
	require.NoError(t, get("/slash"))
	assert.Equal(t, []string{"/away secret", "/slash secret", "/slash/ secret"}, seen)
	assert.ErrorContains(t, get("/round"), "redirects more than 5 times")
}

func TestARedirectAwayFromTLSIsNotFollowed(t *testing.T) {
	request := func(address string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		require.NoError(t, err)
		return r
	}
	require.ErrorIs(t, connect.Redirect(request("http://a/"), []*http.Request{request("https://a/")}), connect.ErrRedirect)
	require.ErrorIs(t, connect.Redirect(request("http://a:2/"), []*http.Request{request("http://a:1/")}), connect.ErrRedirect)
	require.NoError(t, connect.Redirect(request("https://a/"), []*http.Request{request("http://a/")}))
}
