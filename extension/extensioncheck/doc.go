// Package extensioncheck is a converter of the collector's configuration that changes
// nothing. It reports extensions that the vllm components name and that the service does
// not start. So "validate" finds them; without it, the collector fails only at the start,
// because "validate" creates the components without the extensions.
package extensioncheck
