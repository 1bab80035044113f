package release

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// contained are the programs of an archive.
var contained = []string{"otelcol-vllm", "vllmctl", "vllmsim"}

// accompanying are the other files that every archive must have.
var accompanying = []string{
	"LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "examples/quickstart.yaml", "examples/backends/datadog.yaml",
	"examples/kubernetes/overlays/pool/kustomization.yaml", "content/rules/suffixed/vllm.yaml", "licences/INDEX.md",
}

// CheckDist checks what goreleaser wrote: that the archives are those of the platforms and no
// others, their content, their checksums, and that each SBOM names every module that the
// linker wrote into the programs. It runs the programs of this machine's platform for their
// version. It returns a line for each archive that it found right.
func CheckDist(dist, version string, platforms []string) ([]string, error) {
	sums, err := checksums(filepath.Join(dist, "otelcol-vllm_"+version+"_checksums.txt"))
	if err != nil {
		return nil, err
	}
	var want []string
	for _, platform := range platforms {
		name := archiveName(version, platform)
		want = append(want, name, name+".spdx.json")
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(sums)); !slices.Equal(got, want) {
		return nil, fmt.Errorf("the checksums are of %v; they must be of %v", got, want)
	}
	for name, sum := range sums {
		content, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			return nil, err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != sum {
			return nil, fmt.Errorf("%s has the SHA-256 %s; the list of checksums says %s", name, got, sum)
		}
	}
	var right []string
	for _, platform := range platforms {
		line, err := checkArchive(dist, version, platform)
		if err != nil {
			return right, fmt.Errorf("%s: %w", archiveName(version, platform), err)
		}
		right = append(right, line)
	}
	return right, nil
}

func archiveName(version, platform string) string {
	return "otelcol-vllm_" + version + "_" + strings.ReplaceAll(platform, "/", "_") + ".tar.gz"
}

// checksums reads the format of sha256sum.
func checksums(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: %q is not a checksum and a name", file, line)
		}
		sums[fields[1]] = fields[0]
	}
	return sums, nil
}

func checkArchive(dist, version, platform string) (string, error) {
	name := archiveName(version, platform)
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := unpack(filepath.Join(dist, name), dir); err != nil {
		return "", err
	}
	root := filepath.Join(dir, strings.TrimSuffix(name, ".tar.gz"))
	for _, file := range slices.Concat(contained, accompanying) {
		info, err := os.Stat(filepath.Join(root, file))
		if err != nil || info.Size() == 0 {
			return "", fmt.Errorf("%s is missing or empty", file)
		}
	}
	bom, err := readSBOM(filepath.Join(dist, name+".spdx.json"))
	if err != nil {
		return "", err
	}
	modules := map[string]bool{}
	for _, program := range contained {
		file := filepath.Join(root, program)
		linked, err := Linked(file)
		if err != nil {
			return "", err
		}
		for _, key := range linked {
			modules[key] = true
			if !bom[key] {
				return "", fmt.Errorf("%s is linked into %s, and the SBOM does not have it", key, program)
			}
		}
		if err := Covered(filepath.Join(root, "licences"), file); err != nil {
			return "", err
		}
		if err := builtFor(file, platform); err != nil {
			return "", err
		}
		if platform != runtime.GOOS+"/"+runtime.GOARCH {
			continue
		}
		if err := saysVersion(file, version); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d linked modules, each with a licence and in the SBOM", name, len(modules)), nil
}

// saysVersion runs a program of this machine's platform.
func saysVersion(file, version string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, file, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w", filepath.Base(file), err)
	}
	want := filepath.Base(file) + " version " + version
	if got := strings.TrimSpace(string(out)); got != want {
		return fmt.Errorf("%s --version prints %q; it must print %q", filepath.Base(file), got, want)
	}
	return nil
}

// readSBOM returns the packages of an SPDX document, as name@version.
func readSBOM(file string) (map[string]bool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !strings.HasPrefix(document.SPDXVersion, "SPDX-2.") {
		return nil, fmt.Errorf("%s is not an SPDX 2 document", file)
	}
	packages := map[string]bool{}
	for _, p := range document.Packages {
		packages[p.Name+"@"+p.Version] = true
	}
	return packages, nil
}

// unpack writes the regular files of an archive below dir. An entry that would be elsewhere,
// a link, or an entry of another owner than root is an error: a release has none.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		clean := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg, !filepath.IsLocal(clean):
			return fmt.Errorf("the entry %q is not a file below the archive's folder", header.Name)
		case header.Uid != 0, header.Gid != 0:
			return fmt.Errorf("the entry %q is of owner %d:%d and not of root", header.Name, header.Uid, header.Gid)
		}
		target := filepath.Join(dir, clean)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_EXCL, header.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(out, io.LimitReader(reader, 1<<30))
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}
