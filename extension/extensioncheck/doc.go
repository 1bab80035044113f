// Package extensioncheck is a converter of the collector's configuration that changes
// nothing. It reports extensions that the vllm components name and that the service does
// not start, and windows that are too short for the receivers of their pipeline. So "validate"
// finds them; without it, the collector fails only at the start, or derives nothing, because a
// component does not see the others.
package extensioncheck
