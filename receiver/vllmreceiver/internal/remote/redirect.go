package remote

import (
	"fmt"
	"net/url"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 5

// Redirect returns why a redirect is not followed, as what a server does; empty where it is. To another
// host or away from TLS credentials would go with it, and the answer would be that of someone else.
// followed is how many requests were sent before, and setting is where the final address belongs.
func Redirect(next, first *url.URL, followed int, setting string) string {
	switch {
	case next.Host != first.Host || first.Scheme == "https" && next.Scheme != "https":
		return "redirects to another host or away from TLS, which is not followed because credentials would go there; write the final address in " + setting
	case followed > maxRedirects:
		return fmt.Sprintf("redirects more than %d times", maxRedirects)
	}
	return ""
}
