package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// root is the repository's top folder, and folder is what this package tests.
const (
	root   = "../../.."
	folder = root + "/examples/kubernetes"
)

// cluster is a set of objects, as one "kubectl apply" would send it.
type cluster []runtime.Object

// decode reads manifests into the API's types. A key that a type does not have, and
// a key that occurs twice, are errors.
func decode(manifests []byte) (cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, addOperator,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	var all cluster
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, kind, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
		all = append(all, object)
	}
}

// build renders an overlay as "kubectl kustomize" does.
func build(t *testing.T, files filesys.FileSystem, dir string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	require.NoError(t, err)
	rendered, err := resources.AsYaml()
	require.NoError(t, err)
	return rendered
}

// overlays are the folders that a user applies, each rendered.
func overlays(t *testing.T) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(folder, "overlays"))
	require.NoError(t, err)
	rendered := map[string][]byte{}
	for _, entry := range entries {
		rendered[entry.Name()] = build(t, filesys.MakeFsOnDisk(), filepath.Join(folder, "overlays", entry.Name()))
	}
	for _, name := range []string{"agent", "agent-hostpath", "gateway", "pool", "pool-label", "pool-label-prometheus-operator", "pool-label-scrape", "shards", "sidecar"} {
		require.Contains(t, rendered, name)
	}
	return rendered
}

func mustDecode(t *testing.T, manifests []byte) cluster {
	t.Helper()
	all, err := decode(manifests)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// name identifies an object in messages and references.
func name(object runtime.Object) string {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return key(object.GetObjectKind().GroupVersionKind().Kind, accessor.GetNamespace(), accessor.GetName())
}

func key(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// yamlFiles are the paths of all YAML files of the folder.
func yamlFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".yaml") {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func kustomization(t *testing.T, path string) types.Kustomization {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var k types.Kustomization
	// Refuses unknown keys.
	require.NoError(t, k.Unmarshal(content), path)
	return k
}

// A file that no kustomization names would never be applied, and no other test would read it.
func TestEveryFileIsUsedAndStrictlyDecodes(t *testing.T) {
	manifests, others := map[string]bool{}, map[string]bool{}
	for _, path := range yamlFiles(t) {
		if filepath.Base(path) != "kustomization.yaml" {
			continue
		}
		k := kustomization(t, path)
		dir := filepath.Dir(path)
		for _, resource := range k.Resources {
			if strings.HasSuffix(resource, ".yaml") {
				manifests[filepath.Join(dir, resource)] = true
			}
		}
		for _, patch := range k.Patches {
			if patch.Path != "" {
				manifests[filepath.Join(dir, patch.Path)] = true
			}
		}
		for _, generator := range k.ConfigMapGenerator {
			for _, file := range generator.FileSources {
				others[filepath.Join(dir, file)] = true
			}
		}
	}
	for _, path := range yamlFiles(t) {
		switch {
		case filepath.Base(path) == "kustomization.yaml" || others[path]:
		case manifests[path]:
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			all, err := decode(content)
			require.NoError(t, err, path)
			assert.NotEmpty(t, all, path)
		default:
			assert.Fail(t, "no kustomization names it", path)
		}
	}
}

func TestDecodingIsStrict(t *testing.T) {
	const good = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
	_, err := decode([]byte(good))
	require.NoError(t, err)
	for text, bad := range map[string]string{
		"unknown field":     good + "automountServiceAccountTokens: false\n",
		"already set":       good + "kind: ServiceAccount\n",
		"no kind":           strings.Replace(good, "ServiceAccount", "ServiceAccounts", 1),
		"cannot unmarshal ": good + "automountServiceAccountToken: 3\n",
	} {
		_, err := decode([]byte(bad))
		assert.ErrorContains(t, err, text)
	}
}
