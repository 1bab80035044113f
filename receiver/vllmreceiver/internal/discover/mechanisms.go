package discover

// A package of Prometheus registers its mechanism when it is imported. Only these are
// imported, so that the collector does not contain the libraries of every cloud. The
// core of the library registers static_configs.
import (
	_ "github.com/prometheus/prometheus/discovery/dns"  // dns_sd_configs.
	_ "github.com/prometheus/prometheus/discovery/file" // file_sd_configs.
	_ "github.com/prometheus/prometheus/discovery/http" // http_sd_configs.
	// shortforms.go imports the package of kubernetes_sd_configs.
)
