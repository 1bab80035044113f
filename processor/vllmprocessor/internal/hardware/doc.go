// Package hardware has the peak throughput of GPUs, and finds the GPU of a
// resource. It is pure: a table and two look-ups.
package hardware
