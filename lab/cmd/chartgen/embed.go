package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The lines around a configuration that is embedded in a file. They have the indentation of
// its keys.
const (
	beginMark = "# Collector configuration: begin."
	endMark   = "# Collector configuration: end."
)

// merged returns one configuration out of several, as the collector merges them: maps by their
// keys, and anything else is replaced by the later one. Comments stay. Extensions that are left
// out are not started either.
func merged(parts [][]byte, without []string) ([]byte, error) {
	all := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range parts {
		var document yaml.Node
		if err := yaml.Unmarshal(part, &document); err != nil {
			return nil, err
		}
		if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
			return nil, errors.New("a configuration is not a map")
		}
		merge(all, document.Content[0])
	}
	if extensions := get(all, "extensions"); extensions != nil {
		remove(extensions, without, 2)
	}
	if service := get(all, "service"); service != nil && get(service, "extensions") != nil {
		remove(get(service, "extensions"), without, 1)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(all); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// get is the value of a key of a map, or nil.
func get(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

func merge(into, from *yaml.Node) {
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		before := get(into, key.Value)
		switch {
		case before == nil:
			into.Content = append(into.Content, key, value)
		case before.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			merge(before, value)
		default:
			*before = *value
		}
	}
}

// remove takes entries out of a list, or keys with their values out of a map, where size is 2.
func remove(node *yaml.Node, names []string, size int) {
	var kept []*yaml.Node
	for i := 0; i+size <= len(node.Content); i += size {
		if !slices.Contains(names, node.Content[i].Value) {
			kept = append(kept, node.Content[i:i+size]...)
		}
	}
	node.Content = kept
}

// embed puts a configuration between the marks of a file.
func embed(page, config []byte) ([]byte, error) {
	head, rest, begins := bytes.Cut(page, []byte(beginMark))
	mark, rest, _ := bytes.Cut(rest, []byte("\n"))
	_, tail, ends := bytes.Cut(rest, []byte(endMark))
	if !begins || !ends {
		return nil, fmt.Errorf("the lines %q and %q are missing", beginMark, endMark)
	}
	indent := string(head[bytes.LastIndexByte(head, '\n')+1:])
	var out bytes.Buffer
	out.Write(head)
	out.WriteString(beginMark)
	out.Write(mark)
	out.WriteByte('\n')
	for line := range strings.Lines(string(config)) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	out.WriteString(indent + endMark)
	out.Write(tail)
	return out.Bytes(), nil
}
