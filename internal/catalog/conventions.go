package catalog

import semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

// SchemaURL names the version of the OpenTelemetry semantic conventions that the
// resources of every component follow. It is only on the resource: exporters to
// Prometheus write the schema URL of a scope as a label of every series, so on the
// scope it would rename each series with each new version. The metadata.yaml of
// every component has the same version as sem_conv_version.
const SchemaURL = semconv.SchemaURL
