package check

import "slices"

// codes has what each code means and what to do. It is also the documentation.
var codes = slices.Concat(answerCodes, serverCodes, configurationCodes)

// answerCodes are about the connection and the body.
var answerCodes = []Code{
	{
		CodeDNS, Connection, Problem, "The host name of the target does not resolve.",
		"Check the spelling. Check that the name resolves where the collector runs: Services have other names inside a cluster. If the sentence has a timeout or a refused connection, the DNS server does not answer.",
	},
	{
		CodeSeveralAddresses, Connection, Warning, "The host name has several addresses, so each scrape can reach another server.",
		"List each server as a target, or use discovery: counters of several servers cannot be read as one.",
	},
	{
		CodeRefused, Connection, Problem, "Nothing listens at the address.",
		"Start the server, wait until it has loaded the model, or correct the port (vLLM: 8000). A server on 127.0.0.1 is not reachable from other machines.",
	},
	{
		CodeReset, Connection, Problem, "The connection closed before the answer was complete.",
		"Look at the logs of the server and of each proxy. One of them closes connections, or limits the length of answers.",
	},
	{
		CodeTimeout, Connection, Problem, "The server did not answer within the timeout.",
		"If no connection was made, check firewalls and network policies. Otherwise the server is overloaded: raise timeout (`--timeout` here) up to the collection interval. If the answer does not end, another program may listen there.",
	},
	{
		CodeSlow, Connection, Warning, "The answer took more than half of the timeout.",
		"A busier server can miss the timeout. Find what is slow: the network, a proxy, or the API server process. Raise timeout up to the collection interval.",
	},
	{
		CodeRequestFailed, Connection, Problem, "The request failed in another way.",
		"Read the sentence, and try the address with curl where the collector runs.",
	},
	{
		CodeTLSAuthority, Connection, Problem, "The certificate comes from an authority that is not trusted here.",
		"Set tls::ca_file (`--ca-file` here) to the certificate of that authority.",
	},
	{
		CodeTLSExpired, Connection, Problem, "The certificate, or one of its authorities, has expired.",
		"Renew it. Restart the server if it does not reload certificates.",
	},
	{
		CodeTLSNotYet, Connection, Problem, "The certificate, or one of its authorities, is not valid yet.",
		"Check the clocks of this machine and of the authority.",
	},
	{
		CodeTLSHost, Connection, Problem, "The certificate belongs to another host.",
		"Use a name from the certificate in the address, or set tls::server_name_override (`--server-name` here) to it.",
	},
	{
		CodeTLSPlain, Connection, Problem, "The address has https, but the server speaks plain HTTP.",
		"Write http:// in the address, or give vLLM a certificate (--ssl-certfile and --ssl-keyfile).",
	},
	{
		CodeTLSNeeded, Connection, Problem, "The address has http, but the server speaks TLS.",
		"Write https:// in the address.",
	},
	{
		CodeTLSClient, Connection, Problem, "The server closed the TLS handshake, probably because it wants a client certificate.",
		"Set tls::cert_file and tls::key_file (`--cert-file` and `--key-file` here).",
	},
	{
		CodeTLSFailed, Connection, Problem, "The TLS handshake failed in another way.",
		"Read the sentence, and compare with `openssl s_client -connect HOST:PORT`.",
	},
	{
		CodeTLSSoon, Connection, Warning, "The certificate expires within 14 days.",
		"Renew it. Once it has expired, every scrape fails.",
	},
	{
		CodeTLSUnverified, Connection, Warning, "The certificate is not verified: another machine can answer and read the credentials.",
		"Remove insecure_skip_verify, and set tls::ca_file to the authority of the server.",
	},
	{
		CodePlainCredentials, Connection, Warning, "Credentials go over plain HTTP, where anyone on the network path can read them.",
		"Write https in the address, or use a loopback sidecar or an encrypting mesh.",
	},
	{
		CodeAuthMissing, Connection, Problem, "The server wants credentials, and none are configured.",
		"Set auth or headers for this target (`--token-file` or `--header` here). For an endpoint picker, use a bearertokenauth extension with the token file of a service account.",
	},
	{
		CodeAuthRejected, Connection, Problem, "The server rejects the configured credentials.",
		"Check that they are current and of the right kind. Check the form of the header, for example `Authorization: Bearer ...`.",
	},
	{
		CodeAuthToken, Connection, Problem, "The endpoint picker could not verify the token and answered 500.",
		"Use a current token of this cluster. A bearertokenauth extension with filename (`--token-file` here) reloads renewed tokens. If the token is right, the picker cannot reach the Kubernetes API.",
	},
	{
		CodeAuthForbidden, Connection, Problem, "The server does not allow this path.",
		"Without credentials, set auth or headers for this target (`--token-file` or `--header` here). For an endpoint picker, bind a ClusterRole with nonResourceURLs: [/metrics], verbs: [get] to the service account; see examples/kubernetes/base/gateway/rbac.yaml.",
	},
	{
		CodeAuthUnchecked, Connection, Warning, "The target was not checked, because its authenticator does not run here.",
		"If it failed to start, see the problem under configuration. Otherwise run `vllmctl check URL` with `--token-file` or `--header`.",
	},
	{
		CodeNotFound, Connection, Problem, "There is nothing at this path.",
		"Correct the path. vLLM serves /metrics on its API port, and a Ray agent on its own port (default 8080).",
	},
	{
		CodeServerError, Connection, Problem, "The server answered with an error.",
		"Look at the log of the server, and of a proxy in front of it.",
	},
	{
		CodeStatus, Connection, Problem, "The server answered with an unexpected status.",
		"Check that this address serves metrics. 429 means that something limits the rate of requests.",
	},
	{
		CodeRedirect, Connection, Problem, "The server redirects, and the redirect is not followed.",
		"Write the final address. A redirect to another host or away from TLS would expose credentials.",
	},
	{
		CodeRedirected, Connection, Info, "The server redirects within itself, which costs a request at each scrape.",
		"Write the final address in the endpoint, for example with a slash at the end.",
	},

	{
		CodeEmpty, Body, Problem, "The body has no metrics.",
		"Remove --disable-log-stats from the server. With several API server processes, check that PROMETHEUS_MULTIPROC_DIR is writable.",
	},
	{
		CodeHTML, Body, Problem, "The answer is a web page.",
		"Correct the port and the path. A page with status 200 often comes from a proxy, a login or a load balancer.",
	},
	{
		CodeNotText, Body, Problem, "The answer is not Prometheus text.",
		"Correct the port and the path. vLLM serves /metrics on its API port.",
	},
	{
		CodeGzip, Body, Problem, "The body is not compressed as its Content-Encoding says, or by an unrequested method.",
		"Look at the proxy in front of the server: it changes the body or the header.",
	},
	{
		CodeTooLarge, Body, Problem, "The body exceeded limits::body_size and was dropped.",
		"If the server really is that large, raise limits::body_size and the memory of the collector. Otherwise find what it exposes.",
	},
	{
		CodeHeaders, Body, Problem, "The headers of the answer are too large for a server of metrics.",
		"Check that this is the right address.",
	},
	{
		CodeNearLimit, Body, Warning, "The body has more than 70 % of limits::body_size.",
		"Raise limits::body_size before you add models, engines or adapters. Above the limit, the whole body is dropped.",
	},
	{
		CodeCut, Body, Warning, "The end of the body is missing, so series may be missing.",
		"Look for a proxy that truncates answers.",
	},
	{
		CodeBadLines, Body, Warning, "Some lines cannot be read and are dropped.",
		"Look at these lines with curl.",
	},
	{
		CodeDuplicates, Body, Warning, "A series is there more than once; only its first sample counts.",
		"If a proxy joins the answers of several servers, list the servers themselves as targets.",
	},
	{
		CodeInconsistent, Body, Warning, "Series with contradictory numbers, such as decreasing buckets, are dropped.",
		"Look at these series with curl. Imitations of vLLM, and proxies that add servers up, write such numbers.",
	},
	{
		CodeImpossible, Body, Warning, "Gauges have impossible values, such as a ratio above 1.",
		"Look at these series with curl. They are delivered unchanged. Imitations of vLLM write such numbers, for example percents.",
	},
	{
		CodeConflict, Body, Warning, "Families have another type than in vLLM, so they are not emitted as vLLM's metrics.",
		"Find out what writes them: an imitation of vLLM, or a vendor build.",
	},
}
