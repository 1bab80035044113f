package discover

// A package of Prometheus registers its mechanism when it is imported. These
// and no others are imported, so that the collector does not carry the
// libraries of every cloud; static_configs comes with the core.
import (
	_ "github.com/prometheus/prometheus/discovery/dns"  // dns_sd_configs.
	_ "github.com/prometheus/prometheus/discovery/file" // file_sd_configs.
	_ "github.com/prometheus/prometheus/discovery/http" // http_sd_configs.
	// kubernetes_sd_configs comes with shortforms.go, which uses the package.
)
