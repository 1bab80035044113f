package remote

import "net/url"

// Leaves reports whether a redirect goes to another host or away from TLS. Credentials would go
// there, and the answer would be that of someone else.
func Leaves(next, first *url.URL) bool {
	return next.Host != first.Host || first.Scheme == "https" && next.Scheme != "https"
}

// MaxRedirects is how many redirects of one request are followed.
const MaxRedirects = 5
