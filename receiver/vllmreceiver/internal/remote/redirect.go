package remote

import "net/http"

// Leaves reports whether a redirect goes to another host or away from TLS. Credentials would go
// there, and the answer would be that of someone else.
func Leaves(next *http.Request, before []*http.Request) bool {
	first := before[0].URL
	return next.URL.Host != first.Host || first.Scheme == "https" && next.URL.Scheme != "https"
}

// MaxRedirects is how many redirects of one request are followed.
const MaxRedirects = 5
