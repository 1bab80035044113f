// Package storagecheckextension checks the files of contrib's file_storage before
// anything opens them. A damaged one is renamed, so that the collector starts with a
// new one instead of ending in a panic each time.
//
// The service starts all extensions, then hands them the configuration, and only then
// starts the pipelines, in which exporters and processors ask for their files. The
// check takes place when the configuration comes, which says where the files are.
package storagecheckextension

//go:generate go tool mdatagen metadata.yaml
