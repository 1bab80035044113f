// Package realruns replays recordings of real vLLM servers through the processor.
//
// A recording has a row for each scrape of the server, with some of its gauges and
// counters, and mostly the latencies that its clients measured. What is missing of the
// server's /metrics is reconstructed: the histograms, by the requests of the clients where
// there are any, and by the gauges otherwise. The processor reads the result at each
// interval, as our receiver would have sent it, in the time of the recording.
//
// Recordings show the diagnosis on real servers, and their truth comes from no simulator. They
// are read from a folder next to the checkout and are not part of the project.
package realruns
