package release

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Manifest is the file in which the version of a release stands; all other places repeat it.
const Manifest = "builder-config.yaml"

// semantic matches the versions that Places finds again, so that the next set-version replaces all of
// them. Go and Helm refuse a number that begins with 0.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)(\.?\d+)?)?$`)

// Version reads the version, such as 0.2.0, from the manifest in the checkout at root.
func Version(root string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, Manifest))
	if err != nil {
		return "", err
	}
	var manifest struct {
		Dist struct{ Version string }
	}
	if err := yaml.Unmarshal(content, &manifest); err != nil {
		return "", fmt.Errorf("%s: %w", Manifest, err)
	}
	if !semantic.MatchString(manifest.Dist.Version) {
		return "", fmt.Errorf("%s: dist.version is %q; it must be like 0.2.0", Manifest, manifest.Dist.Version)
	}
	return manifest.Dist.Version, nil
}
