package discover

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/kubernetes"
)

// filesOf returns the files that a mechanism needs at its start, by key.
func filesOf(c discovery.Config) map[string]string {
	ofClient := func(c *config.HTTPClientConfig) map[string]string {
		return map[string]string{
			"tls_config::ca_file": c.TLSConfig.CAFile, "tls_config::cert_file": c.TLSConfig.CertFile,
			"tls_config::key_file": c.TLSConfig.KeyFile,
		}
	}
	switch c := c.(type) {
	case *http.SDConfig:
		return ofClient(&c.HTTPClientConfig)
	case *kubernetes.SDConfig:
		files := ofClient(&c.HTTPClientConfig)
		files["kubeconfig_file"] = c.KubeConfig
		return files
	}
	return nil
}

// missingFiles returns an error for each file that cannot be read.
func missingFiles(key string, files map[string]string) (mistakes []error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] == "" {
			continue
		}
		if _, err := os.Stat(files[name]); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %s: the file cannot be read: %w", key, name, err))
		}
	}
	return mistakes
}
