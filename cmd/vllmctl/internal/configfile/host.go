package configfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/oauth2clientauthextension"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pdata/pcommon"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

// authenticators are the extensions that a scrape can need. All others, storage for example,
// belong to the collector that runs.
var authenticators = []extension.Factory{
	bearertokenauthextension.NewFactory(), oauth2clientauthextension.NewFactory(),
}

// Host has the extensions that authenticate requests.
type Host struct {
	running map[component.ID]component.Component
	// others are extensions that the configuration starts and that do not run here.
	others map[component.ID]bool
}

// Lacks reports whether the configuration starts an extension that does not run here: this
// program does not have its kind, or it failed to start.
func (h *Host) Lacks(extension component.ID) bool { return h.others[extension] }

// GetExtensions returns the extensions that run.
func (h *Host) GetExtensions() map[component.ID]component.Component { return h.running }

// Shutdown stops the extensions.
func (h *Host) Shutdown(ctx context.Context) error {
	var all error
	for _, e := range h.running {
		all = errors.Join(all, e.Shutdown(ctx))
	}
	h.running = nil
	return all
}

// Host starts those extensions of the configuration that authenticate requests of clients.
// Others are not started. The error names those that failed; the host has the rest even then,
// and must be shut down.
func (f *File) Host(ctx context.Context, logger *zap.Logger) (*Host, error) {
	host := &Host{running: map[component.ID]component.Component{}, others: map[component.ID]bool{}}
	var failed []error
	for _, name := range f.Started {
		if err := host.start(ctx, name, f.Extensions[name], logger); err != nil {
			failed = append(failed, fmt.Errorf("extensions::%s: %w", name, err))
		}
	}
	return host, errors.Join(failed...)
}

// NewHost starts extensions by their names and settings, as Host does. After an error none
// runs.
func NewHost(ctx context.Context, extensions map[string]map[string]any, logger *zap.Logger) (*Host, error) {
	f := File{Extensions: extensions}
	for name := range extensions {
		f.Started = append(f.Started, name)
	}
	slices.Sort(f.Started)
	host, err := f.Host(ctx, logger)
	if err != nil {
		return nil, errors.Join(err, host.Shutdown(ctx))
	}
	return host, nil
}

// start starts one extension if it is an authenticator.
func (h *Host) start(ctx context.Context, name string, settings map[string]any, logger *zap.Logger) error {
	var id component.ID
	if err := id.UnmarshalText([]byte(name)); err != nil {
		return err
	}
	h.others[id] = true
	i := slices.IndexFunc(authenticators, func(f extension.Factory) bool { return f.Type() == id.Type() })
	if i < 0 {
		return nil
	}
	config := authenticators[i].CreateDefaultConfig()
	if err := decode(confmap.NewFromStringMap(settings), config); err != nil {
		return err
	}
	if token, ok := config.(*bearertokenauthextension.Config); ok && token.Filename != "" {
		// It does not say why it cannot read the file.
		if _, err := os.ReadFile(token.Filename); err != nil {
			return fmt.Errorf("the file of the token cannot be read: %w", err)
		}
		// It would read the file in the background, and the first requests would have no token.
		token.WaitForTokenFile, token.RetryOnFailure.Enabled = true, true
		token.RetryOnFailure.MaxRetries, token.RetryOnFailure.Interval = 1, time.Millisecond
	}
	created, err := authenticators[i].Create(ctx, extension.Settings{ID: id, TelemetrySettings: Telemetry(logger)}, config)
	if err != nil {
		return err
	}
	if err := created.Start(ctx, h); err != nil {
		return err
	}
	h.running[id] = created
	delete(h.others, id)
	return nil
}

// Telemetry returns the settings for a component whose own metrics and traces go nowhere.
func Telemetry(logger *zap.Logger) component.TelemetrySettings {
	return component.TelemetrySettings{
		Logger: logger, TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		Resource: pcommon.NewResource(),
	}
}
