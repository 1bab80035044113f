// Package tiers holds only tests of collectors in tiers, with the build tag e2e: agents that
// scrape servers and send to collectors that derive, by OTLP, by the load-balancing exporter or
// through Kafka. The tests run bin/otelcol-vllm, or bin/otelcol-vllm-tiers where it is needed,
// with the configurations of examples/tiers.
package tiers
