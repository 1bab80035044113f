// Package identity decides whether two resources are the same.
package identity

import (
	"crypto/sha256"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The first byte of an identity that does not begin with the name of a service.
const (
	byAttributes = 1
	byHash       = 2
)

// maxSize bounds an identity, in bytes. A longer one is replaced by a hash, so that a
// sender cannot make every key large.
const maxSize = 1 << 10

var (
	// instance are the attributes of a named instance, in the order of the key.
	instance = [...]string{"service.name", "service.instance.id", "k8s.pod.uid"}
	// spaces are the namespaces in which an instance has its name.
	spaces = [...]string{"service.namespace", "k8s.cluster.name", "k8s.namespace.name"}
)

// usual is more than the size of most keys.
const usual = 96

// Of returns the key of a resource. Where an instance is named, the key is its name, its
// pod and the namespaces that are present. Other attributes can be added or change while
// the server runs. Without an instance the key is all attributes but those of a
// diagnosis, which change by design.
//
// The cost is proportional to the attributes, and the key is at most maxSize bytes.
func Of(attributes pcommon.Map) string {
	if name, named := attributes.Get("service.instance.id"); named && name.AsString() != "" {
		return shortened(ofInstance(attributes))
	}
	return shortened(ofAll(attributes))
}

// ofInstance begins with the key of earlier versions, which had no namespaces, so that
// Before can find it.
func ofInstance(attributes pcommon.Map) string {
	var b strings.Builder
	b.Grow(usual)
	for _, name := range instance {
		if value, ok := attributes.Get(name); ok {
			b.WriteString(value.AsString())
		}
		b.WriteByte(0)
	}
	for _, name := range spaces {
		if value, ok := attributes.Get(name); ok && value.AsString() != "" {
			write(&b, name, value.AsString())
		}
	}
	return b.String()
}

func ofAll(attributes pcommon.Map) string {
	type pair struct{ name, value string }
	pairs := make([]pair, 0, attributes.Len())
	for name, value := range attributes.All() {
		if !Diagnosis(name) {
			pairs = append(pairs, pair{name, value.AsString()})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	b.WriteByte(byAttributes)
	for _, p := range pairs {
		write(&b, p.name, p.value)
	}
	return b.String()
}

func write(b *strings.Builder, name, value string) {
	b.WriteString(name)
	b.WriteByte(0)
	b.WriteString(value)
	b.WriteByte(0)
}

func shortened(key string) string {
	if len(key) <= maxSize {
		return key
	}
	hash := sha256.Sum256([]byte(key))
	return string(append([]byte{byHash}, hash[:]...))
}

// Diagnosis reports whether an attribute of a resource is one that the processor writes
// with diagnosis::attributes::on: resource. It describes the state of a server and does
// not identify it.
func Diagnosis(name string) bool { return strings.HasPrefix(name, "vllm.diagnosis.") }
