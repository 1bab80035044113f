package storagecheckextension

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/extension/storagecheckextension/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/extension/storagecheckextension/internal/metadatatest"
)

// fixture is an extension and the directory that it checks.
type fixture struct {
	*storageCheck
	t      *testing.T
	folder string
	logs   *observer.ObservedLogs
	own    *componenttest.Telemetry
	at     time.Time
}

func newFixture(t *testing.T, change func(*storageCheck)) *fixture {
	t.Helper()
	config := createDefaultConfig().(*Config)
	require.NoError(t, config.Validate())
	own := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, own.Shutdown(context.Background())) })
	core, logs := observer.New(zapcore.InfoLevel)
	settings := metadatatest.NewSettings(own)
	settings.Logger = zap.New(core)
	s, err := newStorageCheck(config, settings)
	require.NoError(t, err)
	s.lockTimeout = 200 * time.Millisecond
	if change != nil {
		change(s)
	}
	f := &fixture{storageCheck: s, t: t, folder: t.TempDir(), logs: logs, own: own, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.now = func() time.Time { return f.at }
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, s.Shutdown(context.Background())) })
	return f
}

// start is the start of a service with a file_storage in the directory.
func (f *fixture) start(recreate bool) error {
	f.t.Helper()
	return f.startWith(map[string]any{
		"extensions": map[string]any{"file_storage/queue": map[string]any{"directory": f.folder, "recreate": recreate}, "storage_check": nil},
		"service":    map[string]any{"extensions": []any{"storage_check", "file_storage/queue"}},
	})
}

func (f *fixture) startWith(conf map[string]any) error {
	f.t.Helper()
	return f.NotifyConfigSnapshot(f.t.Context(), extensioncapabilities.NewConfigSnapshot(confmap.NewFromStringMap(conf), nil))
}

// client opens the file of an exporter with contrib's own extension.
func (f *fixture) client() (storage.Client, error) {
	f.t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory, config.Timeout = f.folder, 200*time.Millisecond
	files, err := factory.Create(f.t.Context(), extensiontest.NewNopSettings(factory.Type()), config)
	require.NoError(f.t, err)
	return files.(storage.Extension).GetClient(f.t.Context(), component.KindExporter, component.MustNewIDWithName("otlp_http", "a"), "")
}

const exporterFile = "exporter_otlp_http_a"

func (f *fixture) file() string { return filepath.Join(f.folder, exporterFile) }

// store writes a queue of the given size.
func (f *fixture) store(size int) {
	f.t.Helper()
	client, err := f.client()
	require.NoError(f.t, err)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 20 {
		value := make([]byte, size/20)
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		require.NoError(f.t, client.Set(f.t.Context(), strings.Repeat("k", n+1), value))
	}
	require.NoError(f.t, client.Close(f.t.Context()))
}

func (f *fixture) damage(how func([]byte) []byte) {
	f.t.Helper()
	content, err := os.ReadFile(f.file())
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(f.file(), how(content), 0o600))
}

func zeroedTail(b []byte) []byte { clear(b[8192:]); return b }

func (f *fixture) names() (names []string) {
	entries, err := os.ReadDir(f.folder)
	require.NoError(f.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *fixture) warnings() []observer.LoggedEntry {
	return f.logs.FilterLevelExact(zapcore.WarnLevel).All()
}

func TestASoundQueueIsLeftAlone(t *testing.T) {
	f := newFixture(t, nil)
	f.store(200_000)
	before, err := os.ReadFile(f.file())
	require.NoError(t, err)
	require.NoError(t, f.start(true))
	after, err := os.ReadFile(f.file())
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after))
	assert.Equal(t, []string{exporterFile}, f.names())
	assert.Empty(t, f.warnings())
	client, err := f.client()
	require.NoError(t, err, "the lock is free again")
	value, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Len(t, value, 10_000)
	require.NoError(t, client.Close(t.Context()))
}

func TestADamagedFileIsSetAside(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"zeroed tail": zeroedTail,
		"half a file": func(b []byte) []byte { return b[:len(b)/2] },
		"a few bytes": func(b []byte) []byte { return b[:7] },
		"random bytes": func(b []byte) []byte {
			r := rand.New(rand.NewPCG(1, 1))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.store(200_000)
			f.damage(damage)
			damaged, err := os.ReadFile(f.file())
			require.NoError(t, err)
			require.NoError(t, f.start(true))

			aside := exporterFile + ".20260301T120000.000Z.backup"
			assert.Equal(t, []string{aside}, f.names())
			kept, err := os.ReadFile(filepath.Join(f.folder, aside))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(damaged, kept), "nothing of it is lost")
			require.Len(t, f.warnings(), 1)
			said := f.warnings()[0]
			assert.Equal(t, "a storage file is damaged and was set aside; the collector starts with a new one, without the queue or the state that was in it", said.Message)
			fields := said.ContextMap()
			assert.Equal(t, f.file(), fields["file"])
			assert.Equal(t, aside, fields["set_aside_as"])
			assert.NotEmpty(t, fields["damage"])
			metadatatest.AssertEqualExtensionStorageCheckDamagedFiles(t, f.own, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())

			client, err := f.client()
			require.NoError(t, err)
			require.NoError(t, client.Set(t.Context(), "k", []byte("new")))
			require.NoError(t, client.Close(t.Context()))
			require.NoError(t, f.start(true))
			assert.Len(t, f.warnings(), 1, "the new file is sound")
		})
	}
}

func TestAnEmptyFileIsANewOne(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, os.WriteFile(f.file(), nil, 0o600))
	require.NoError(t, f.start(true))
	assert.Equal(t, []string{exporterFile}, f.names())
	client, err := f.client()
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
}

func TestWithoutRecreateADamagedFileEndsTheStart(t *testing.T) {
	f := newFixture(t, nil)
	f.store(200_000)
	f.damage(zeroedTail)
	err := f.start(false)
	require.ErrorContains(t, err, f.file()+" is damaged: page")
	require.ErrorContains(t, err, "Set extensions::file_storage/queue::recreate to true")
	assert.Equal(t, []string{exporterFile}, f.names())
}

// Other files in the directory stay.
func TestOnlyFilesOfFileStorageAreChecked(t *testing.T) {
	f := newFixture(t, nil)
	others := []string{"README", "tempdb123", "exporter", "notes.20260301T120000.000Z.backup", "0123abc"}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(f.folder, name), []byte("text"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(f.folder, "receiver_folder"), 0o700))
	require.NoError(t, f.start(true))
	assert.ElementsMatch(t, append(others, "receiver_folder"), f.names())
	assert.Empty(t, f.warnings())
}

func TestAFileThatIsInUseIsNotTouched(t *testing.T) {
	f := newFixture(t, nil)
	other, err := f.client()
	require.NoError(t, err)
	err = f.start(true)
	require.ErrorContains(t, err, f.file()+" is in use by another process")
	require.ErrorContains(t, err, "give each one a directory of its own (extensions::file_storage/queue::directory)")
	assert.Equal(t, []string{exporterFile}, f.names())
	// The check waits for a process that ends in time.
	f.lockTimeout = time.Minute
	time.AfterFunc(100*time.Millisecond, func() { _ = other.Close(context.Background()) })
	require.NoError(t, f.start(true))
}

func TestTheFilesMovedAsideAreBounded(t *testing.T) {
	f := newFixture(t, func(s *storageCheck) { s.config.SetAside.MaxSizeMiB = 1 })
	damagedOf := func(size int) {
		require.NoError(t, os.WriteFile(f.file(), bytes.Repeat([]byte{7}, size), 0o600))
		require.NoError(t, f.start(true))
		f.at = f.at.Add(time.Minute)
	}
	minute := func(n int) string {
		return exporterFile + time.Date(2026, 3, 1, 12, n, 0, 0, time.UTC).Format(".20060102T150405.000Z0700.backup")
	}
	for range 12 {
		damagedOf(1000)
	}
	assert.Equal(t, []string{minute(2), minute(3), minute(4), minute(5), minute(6), minute(7), minute(8), minute(9), minute(10), minute(11)},
		f.names(), "the newest ten")
	damagedOf(1<<20 - 500)
	assert.Equal(t, []string{minute(12)}, f.names(), "the older ones do not fit together with it")
	damagedOf(1<<20 + 1)
	assert.Empty(t, f.names(), "it alone is beyond the limit, and so is what is older")
	deleted := f.logs.FilterMessageSnippet("is deleted: it is beyond 10 files or set_aside::max_size_mib").Len()
	assert.Equal(t, 14, deleted, "each one is reported")
}

func TestAllDirectoriesThatTheServiceUsesAreChecked(t *testing.T) {
	f := newFixture(t, nil)
	unused, second := t.TempDir(), t.TempDir()
	for _, folder := range []string{f.folder, unused, second} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, exporterFile), []byte("damaged"), 0o600))
	}
	require.NoError(t, f.startWith(map[string]any{
		"extensions": map[string]any{
			"file_storage":        map[string]any{"directory": f.folder, "recreate": true},
			"file_storage/second": map[string]any{"directory": second, "recreate": true},
			"file_storage/unused": map[string]any{"directory": unused, "recreate": true},
			"file_storage/new":    map[string]any{"directory": filepath.Join(second, "new"), "create_directory": true},
		},
		"service": map[string]any{"extensions": []any{"file_storage", "file_storage/second", "file_storage/new", "storage_check", "zpages"}},
	}))
	assert.Len(t, f.warnings(), 2)
	assert.FileExists(t, filepath.Join(unused, exporterFile))
}

// Two extensions can use one directory and write it in different ways. A file may be set
// aside only where both allow it.
func TestADirectoryWithTwoNamesIsCheckedOnce(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, os.WriteFile(f.file(), []byte("damaged"), 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(f.folder, link))
	for _, other := range []string{f.folder + "/", f.folder + "/../" + filepath.Base(f.folder), link} {
		for _, names := range [][]any{{"file_storage", "file_storage/other"}, {"file_storage/other", "file_storage"}} {
			err := f.startWith(map[string]any{
				"extensions": map[string]any{
					"file_storage":       map[string]any{"directory": f.folder, "recreate": true},
					"file_storage/other": map[string]any{"directory": other},
				},
				"service": map[string]any{"extensions": names},
			})
			require.ErrorContains(t, err, "Set extensions::file_storage/other::recreate to true", other)
			assert.Equal(t, []string{exporterFile}, f.names())
		}
	}
}

func TestItWarnsWithoutFileStorage(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, f.startWith(map[string]any{
		"extensions": map[string]any{"file_storage": nil, "storage_check": nil},
		"service":    map[string]any{"extensions": []any{"storage_check"}},
	}))
	require.Len(t, f.warnings(), 1)
	assert.Contains(t, f.warnings()[0].Message, "add file_storage")
}

func TestTheDefaultsOfFileStorageApply(t *testing.T) {
	found, err := directoriesOf(confmap.NewFromStringMap(map[string]any{
		"extensions": map[string]any{"file_storage": nil},
		"service":    map[string]any{"extensions": []any{"file_storage"}},
	}))
	require.NoError(t, err)
	want := filestorage.NewFactory().CreateDefaultConfig().(*filestorage.Config)
	assert.Equal(t, []directory{{path: want.Directory, extension: "file_storage"}}, found)
}

// The check of a large queue ends after the configured time.
func TestACheckEndsAfterItsTimeout(t *testing.T) {
	f := newFixture(t, nil)
	// Less than a configuration allows: a check could end within a millisecond.
	f.config.CheckTimeout = time.Nanosecond
	client, err := f.client()
	require.NoError(t, err)
	var all []*storage.Operation
	for n := range 40_000 {
		all = append(all, storage.SetOperation(strings.Repeat("k", n%500+1)+string(rune('0'+n%7)), make([]byte, 300)))
	}
	require.NoError(t, client.Batch(t.Context(), all...))
	require.NoError(t, client.Close(t.Context()))
	require.NoError(t, f.start(true))
	require.Len(t, f.warnings(), 1)
	assert.Contains(t, f.warnings()[0].Message, "could not be checked completely within check_timeout and is used unchecked")
	assert.Equal(t, []string{exporterFile}, f.names())
}

func TestValidate(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	config := &Config{CheckTimeout: 30}
	err := config.Validate()
	for _, want := range []string{
		"check_timeout: 30 has no unit; write 30s", "set_aside::max_size_mib: must be from 1",
	} {
		require.ErrorContains(t, err, want)
	}
	config.CheckTimeout = 0
	require.ErrorContains(t, config.Validate(), "check_timeout: must be more than 0")
}

func TestTheConfigurationIsUnmarshalled(t *testing.T) {
	config := createDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"check_timeout": "2m", "set_aside": map[string]any{"max_size_mib": 100},
	}).Unmarshal(config))
	assert.Equal(t, &Config{CheckTimeout: 2 * time.Minute, SetAside: SetAsideConfig{MaxSizeMiB: 100}}, config)
	_, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), config)
	require.NoError(t, err)
	var _ extension.Extension = (*storageCheck)(nil)
}

func TestTheConfigurationOfTheReadmeWorks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(readme))
	require.Len(t, block, 2)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block[1]), &values))
	found, err := directoriesOf(confmap.NewFromStringMap(values))
	require.NoError(t, err)
	assert.Equal(t, []directory{{path: "/var/lib/otelcol-vllm/queue", extension: "file_storage", recreate: true}}, found)
}
