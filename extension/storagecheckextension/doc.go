// Package storagecheckextension checks the files of contrib's file_storage before any
// component opens them. A damaged file is renamed, so that the collector starts with a
// new one instead of a panic at each start.
//
// The service starts all extensions, then gives them the configuration, and only then
// starts the pipelines, in which exporters and processors open their files. The check
// runs when the extension gets the configuration, which has the directories.
package storagecheckextension

//go:generate go tool mdatagen metadata.yaml
