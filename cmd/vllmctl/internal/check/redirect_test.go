package check

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The headers of an exporter are credentials, which a redirect must not take to another host or out of TLS.
func TestTheWriteOfACheckFollowsNoRedirectAway(t *testing.T) {
	t.Parallel()
	request := func(address string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, http.NoBody)
		require.NoError(t, err)
		return r
	}
	for address, want := range map[string]error{
		"https://backend/v1/metrics/": nil,
		"http://backend/v1/metrics":   http.ErrUseLastResponse,
		"https://other/v1/metrics":    http.ErrUseLastResponse,
		"https://backend:8443/v1":     http.ErrUseLastResponse,
	} {
		assert.Equal(t, want, sameRequest(request(address), []*http.Request{request("https://backend/v1/metrics")}), address)
	}
}
