package release

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/errdef"
)

// charts are the folders of the charts that a release has.
var charts = []string{"examples/helm/otelcol-vllm", "examples/helm/otelcol-vllm-sidecar"}

// CommitTime is the time of the commit of the checkout at root, in UTC.
func CommitTime(root string) (time.Time, error) {
	command := exec.Command("git", "log", "-1", "--format=%cI")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("git log: %w; a release needs a git checkout", err)
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(out)))
	return at.UTC(), err
}

// PackCharts writes the archive NAME-VERSION.tgz of each chart in the checkout at root into the folder
// dist, adds its SHA-256 to the file of checksums there, and returns the files. All that is in an
// archive has the time at, so that two archives of one commit have the same bytes.
func PackCharts(root, dist, version string, at time.Time) ([]string, error) {
	var packed []string
	var sums strings.Builder
	for _, folder := range charts {
		c, err := loader.Load(filepath.Join(root, folder))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		if c.Metadata.Version != version || c.Metadata.AppVersion != version {
			return nil, fmt.Errorf("%s has the version %s and the appVersion %s; the release is %s", folder, c.Metadata.Version, c.Metadata.AppVersion, version)
		}
		c.ModTime, c.SchemaModTime = at, at
		for _, file := range slices.Concat(c.Raw, c.Templates, c.Files) {
			file.ModTime = at
		}
		file, err := chartutil.Save(c, dist)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), filepath.Base(file))
		packed = append(packed, file)
	}
	to, err := os.OpenFile(filepath.Join(dist, "otelcol-vllm_"+version+"_checksums.txt"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = to.WriteString(sums.String())
	return packed, errors.Join(err, to.Close())
}

// PushCharts pushes the archives in the folder dist to an OCI registry, below the repository to, such as
// ghcr.io/otelcol-vllm/charts. It pushes nothing if the registry has another content of the same version
// of one of them, or does not say what it has; an archive that is there already stays as it is, so that a
// publication that failed later can be repeated.
func PushCharts(client *registry.Client, dist, version, to string, at time.Time) error {
	missing := map[string][]byte{}
	for _, folder := range charts {
		name := filepath.Base(folder)
		content, err := os.ReadFile(filepath.Join(dist, name+"-"+version+".tgz"))
		if err != nil {
			return fmt.Errorf("%w; run make release before", err)
		}
		ref := to + "/" + name + ":" + version
		there, err := client.Pull(ref)
		switch {
		case errors.Is(err, errdef.ErrNotFound):
			missing[ref] = content
		case err != nil:
			return fmt.Errorf("cannot see whether %s is published already: %w", ref, err)
		case there.Chart.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(content)):
			return fmt.Errorf("%s is published already with another content (%s), and a version is never used twice", ref, there.Chart.Digest)
		}
	}
	for ref, content := range missing {
		if _, err := client.Push(content, ref, registry.PushOptCreationTime(at.Format(time.RFC3339))); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
	}
	return nil
}
