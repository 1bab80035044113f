// Package history lets a simulated deployment run for hours in virtual time, and stores
// what the collector exports in a Prometheus storage. Between the two are our receiver,
// our processor and Prometheus's own translation of OTLP. Alerts and panels are executed
// on that storage: the story says what must be true.
package history
