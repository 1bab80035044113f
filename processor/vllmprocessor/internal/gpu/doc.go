// Package gpu keeps the newest readings of GPUs, joins the GPUs to the servers that use them,
// says what a GPU did in a span of time, and has the peak throughput of each kind of GPU. It is
// pure: time is a parameter.
//
// The receiver reads the exporters of GPUs (DCGM's and AMD's). A batch is what one of them
// reports of the GPUs of one workload at one time; a reading is one GPU of it. Batches may come
// from other collectors, in any order and late: readings are placed by their own time.
package gpu
