// Package content executes the shipped alerts, recording rules and dashboards on simulated
// deployments whose truth is known.
package content
