// Package boards draws the shipped dashboards: it answers Perses's own user interface, which
// runs in a headless Chromium, from a storage of Prometheus, and looks at what was drawn.
package boards
