// Package extensioncheck is a converter of the collector's configuration that changes
// nothing. It reports extensions that the vllm components name and that the service does
// not start, so that "validate" finds them: components are made without the extensions
// there, and the collector itself would only fail at the start.
package extensioncheck
