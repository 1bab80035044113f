package remote

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRedirectsAreFollowedFiveTimesOnTheSameHostWithTLS(t *testing.T) {
	for _, tt := range []struct {
		next, first string
		followed    int
		want        string
	}{
		{"http://a/x", "http://a/", 1, ""},
		{"http://a/x", "http://a/", 5, ""},
		{"http://a/x", "http://a/", 6, "redirects more than 5 times"},
		{"https://a/x", "http://a/", 1, ""},
		{"http://a/x", "https://a/", 1, "away from TLS"},
		{"http://b/x", "http://a/", 1, "to another host"},
	} {
		next, err := url.Parse(tt.next)
		assert.NoError(t, err)
		first, err := url.Parse(tt.first)
		assert.NoError(t, err)
		got := Redirect(next, first, tt.followed, "endpoint")
		assert.Contains(t, got, tt.want)
		assert.Equal(t, tt.want == "", got == "", tt)
	}
}
