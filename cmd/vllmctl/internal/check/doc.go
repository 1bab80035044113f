// Package check finds out what is wrong with vLLM servers, and with the configuration of a
// collector, before a collector runs: it is vllmctl check.
//
// Each target is scraped twice by the receiver's own code (probe.Probe), and the
// processor sees both scrapes. What was seen is plain data, Seen; Judge and the other judges are
// pure functions that turn it into findings. Only Look, Configured and what they call ask
// servers, exporters, the file system and Kubernetes.
//
// A finding has a code of the table, which is also its documentation. Text of other machines is
// made printable where a finding is added.
package check
