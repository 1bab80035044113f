package check

import "slices"

// codes has what each code means and what to do. It is also the documentation.
var codes = slices.Concat(answerCodes, serverCodes, configurationCodes)

// answerCodes are about the connection and the body.
var answerCodes = []Code{
	{
		CodeDNS, Connection, Problem, "The host name of the target does not resolve.",
		"Check the spelling, and whether the name resolves where the collector runs: inside a cluster a Service has another name than outside. Where the sentence has a timeout or a refused connection, the DNS server does not answer.",
	},
	{
		CodeSeveralAddresses, Connection, Warning, "The host name resolves to several addresses, so each scrape can reach another server.",
		"List each server as a target of its own, or let discovery find them: the counters of several servers cannot be read as those of one.",
	},
	{
		CodeRefused, Connection, Problem, "Nothing listens at the address.",
		"Start the server, wait until it has loaded the model, or correct the port: vLLM listens on 8000 unless --port says otherwise. A server that listens on 127.0.0.1 only cannot be reached from another machine.",
	},
	{
		CodeReset, Connection, Problem, "The connection was closed before the whole answer had arrived.",
		"Look at the log of the server and of each proxy in between: one of them ends connections, or an answer is longer than it allows.",
	},
	{
		CodeTimeout, Connection, Problem, "The server did not answer within the timeout.",
		"Without a connection, check that a firewall or a network policy does not drop it. With one, the server is overloaded: raise timeout (`--timeout` here) up to the collection interval. An answer that does not end is often that of another program.",
	},
	{
		CodeSlow, Connection, Warning, "The answer took more than half of the timeout, so a busier server can miss it.",
		"Find what is slow: the network, a proxy, or the API server process, which also answers requests. Raise timeout up to the collection interval.",
	},
	{
		CodeRequestFailed, Connection, Problem, "The request failed in a way that has no code of its own.",
		"Read the sentence, and try the address with curl from the machine where the collector runs.",
	},
	{
		CodeTLSAuthority, Connection, Problem, "The certificate of the server is signed by an authority that is not trusted here.",
		"Set tls::ca_file (`--ca-file` here) to the certificate of that authority.",
	},
	{
		CodeTLSExpired, Connection, Problem, "The certificate of the server, or of one of its authorities, has expired.",
		"Renew it, and restart the server if it does not read the new one by itself.",
	},
	{
		CodeTLSNotYet, Connection, Problem, "The certificate of the server, or of one of its authorities, is not valid yet.",
		"Check the clocks of this machine and of the authority that issued it.",
	},
	{
		CodeTLSHost, Connection, Problem, "The certificate of the server is for another host.",
		"Write a name of the certificate in the address, or set tls::server_name_override (`--server-name` here) to it.",
	},
	{
		CodeTLSPlain, Connection, Problem, "The address begins with https, and the server speaks plain HTTP.",
		"Write http:// in the address, or give the server a certificate (--ssl-certfile and --ssl-keyfile of vLLM).",
	},
	{
		CodeTLSNeeded, Connection, Problem, "The address begins with http, and the server speaks TLS.",
		"Write https:// in the address.",
	},
	{
		CodeTLSClient, Connection, Problem, "The server ended the TLS handshake, as one does that wants a client certificate.",
		"Set tls::cert_file and tls::key_file (`--cert-file` and `--key-file` here).",
	},
	{
		CodeTLSFailed, Connection, Problem, "The TLS handshake failed in a way that has no code of its own.",
		"Read the sentence, and compare with `openssl s_client -connect HOST:PORT`.",
	},
	{
		CodeTLSSoon, Connection, Warning, "The certificate of the server ends within 14 days.",
		"Renew it. After its end every scrape fails.",
	},
	{
		CodeTLSUnverified, Connection, Warning, "The certificate of the server is not verified, so another machine can answer and read the credentials.",
		"Remove insecure_skip_verify, and set tls::ca_file to the authority of the server.",
	},
	{
		CodePlainCredentials, Connection, Warning, "Credentials go to this target over plain HTTP, where anyone on the network path can read and use them.",
		"Write https in the address, or use a sidecar on the loopback address or an encrypting mesh.",
	},
	{
		CodeAuthMissing, Connection, Problem, "The server wants credentials, and none are configured.",
		"Set auth or headers for this target (`--token-file` or `--header` here). An endpoint picker wants the token of a service account: use a bearertokenauth extension with filename.",
	},
	{
		CodeAuthRejected, Connection, Problem, "The server does not accept the configured credentials.",
		"Check that they are current and of the right kind, and that the header has the form that the server expects, such as `Authorization: Bearer ...`.",
	},
	{
		CodeAuthToken, Connection, Problem, "The endpoint picker could not verify the token and answered 500.",
		"Use a current token of this cluster: a bearertokenauth extension with filename reads a renewed token again (`--token-file` here). If the token is right, the picker cannot reach the Kubernetes API.",
	},
	{
		CodeAuthForbidden, Connection, Problem, "The server does not allow this path, to the configured credentials or without any.",
		"Without credentials, set auth or headers for this target (`--token-file` or `--header` here). For an endpoint picker, bind a ClusterRole with nonResourceURLs: [/metrics], verbs: [get] to the service account of the token. See examples/kubernetes/base/gateway/rbac.yaml.",
	},
	{
		CodeAuthUnchecked, Connection, Warning, "The target was not asked, because its authenticator does not run here: `vllmctl` does not have its kind, or it failed to start.",
		"If it failed to start, see the problem under configuration. Otherwise check the target with a credential that you have: `vllmctl check URL` with `--token-file` or `--header`.",
	},
	{
		CodeNotFound, Connection, Problem, "There is nothing at this path.",
		"Correct the path: vLLM serves its metrics at /metrics of its API port, and a Ray agent at its own port (8080 unless configured).",
	},
	{
		CodeServerError, Connection, Problem, "The server answered with an error of its own.",
		"Look at the log of the server, or of the proxy in front of it.",
	},
	{
		CodeStatus, Connection, Problem, "The server answered with another status than 200.",
		"Check that this address serves metrics; 429 means that something limits how often it may be asked.",
	},
	{
		CodeRedirect, Connection, Problem, "The server redirects, and the redirect is not followed.",
		"Write the final address. A redirect to another host or away from TLS is not followed, because credentials would go there.",
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
		CodeHTML, Body, Problem, "The answer is a web page and not metrics.",
		"Correct the port and the path. A page with status 200 is often that of a proxy, a login or a load balancer.",
	},
	{
		CodeNotText, Body, Problem, "The answer is not Prometheus text.",
		"Correct the port and the path: vLLM serves its metrics at /metrics of its API port.",
	},
	{
		CodeGzip, Body, Problem, "The body is not the gzip that its Content-Encoding declares, or is compressed by a method that was not asked for.",
		"Look at the proxy in front of the server: it changes the body or the header.",
	},
	{
		CodeTooLarge, Body, Problem, "The body is larger than the limit and was dropped.",
		"Raise limits::body_size, and the memory of the collector, if this server really is that large; otherwise find what it exposes.",
	},
	{
		CodeHeaders, Body, Problem, "The headers of the answer are larger than any server of metrics sends.",
		"Check that this is the right address.",
	},
	{
		CodeNearLimit, Body, Warning, "The body has more than 70 % of limits::body_size. Above the limit the whole body is dropped.",
		"Raise limits::body_size before more models, engines or adapters come.",
	},
	{
		CodeCut, Body, Warning, "The end of the body is missing: the last line is not complete, or OpenMetrics has no # EOF. Series may be missing.",
		"Look for a proxy that cuts answers.",
	},
	{
		CodeBadLines, Body, Warning, "Lines of the body cannot be read and are dropped; all others are delivered.",
		"Look at these lines with curl.",
	},
	{
		CodeDuplicates, Body, Warning, "The body has the same series more than once; only the first sample of each counts.",
		"If a proxy joins the answers of several servers, list the servers themselves as targets.",
	},
	{
		CodeInconsistent, Body, Warning, "Series are dropped because their numbers do not add up, such as a histogram whose buckets decrease.",
		"Look at these series with curl. A program that only imitates vLLM, or a proxy that adds up servers, writes such numbers.",
	},
	{
		CodeImpossible, Body, Warning, "Gauges have values that they cannot have, such as a share above 1. They are delivered as they are.",
		"Look at these series with curl. A program that only imitates vLLM writes such numbers, as percent instead of a share.",
	},
	{
		CodeConflict, Body, Warning, "Families have another type than vLLM gives them, so they are not emitted as vLLM's metrics.",
		"Find out what writes them: a program that imitates vLLM, or a vendor build.",
	},
}
