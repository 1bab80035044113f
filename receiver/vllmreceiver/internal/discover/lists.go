package discover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"

	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// The limits of one list of targets, which is a file or the answer of an HTTP endpoint.
// The library reads both without a limit, so an endless list would exhaust the memory of
// the collector. The protocol of DNS limits an answer to 64 KiB.
const (
	maxListBytes = 4 << 20
	maxAddresses = 50_000
	// maxLabelBytes limits the labels of all addresses together. The labels of a group
	// count once for each of its addresses.
	maxLabelBytes = 64 << 20
)

// bounded replaces the mechanisms that read lists without a limit.
func bounded(mechanisms discovery.Configs) discovery.Configs {
	out := slices.Clone(mechanisms)
	for i, c := range mechanisms {
		switch c := c.(type) {
		case *http.SDConfig:
			out[i] = &httpList{c}
		case *file.SDConfig:
			out[i] = &fileList{c}
		}
	}
	return out
}

// writtenGroup is a group of targets in a list.
type writtenGroup struct {
	Targets []string       `json:"targets" yaml:"targets"`
	Labels  model.LabelSet `json:"labels" yaml:"labels"`
}

// readAtMost reads a list, and returns an error if it is too large.
func readAtMost(from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxListBytes+1))
	if err == nil && len(content) > maxListBytes {
		err = fmt.Errorf("it is larger than the limit of %d bytes; split the list, or find the targets in another way", maxListBytes)
	}
	return content, err
}

// decodeJSON reads a list group by group, so that its memory never exceeds the limits.
func decodeJSON(content []byte) (*list, error) {
	out := &list{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return nil, errors.New("it is not a JSON list of groups with targets and labels")
	}
	for decoder.More() {
		var group *writtenGroup
		if err := decoder.Decode(&group); err != nil {
			return nil, fmt.Errorf("it is not a JSON list of groups with targets and labels: %w", err)
		}
		if err := out.add(group); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("it is a JSON list that ends in the middle")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON list")
	}
	return out, nil
}

func decodeYAML(content []byte) (*list, error) {
	var groups []*writtenGroup
	if err := yaml.UnmarshalStrict(content, &groups); err != nil {
		return nil, fmt.Errorf("it is not a YAML list of groups with targets and labels: %w", words(err, settings.Keys(reflect.TypeFor[writtenGroup](), "yaml")))
	}
	out := &list{}
	for _, group := range groups {
		if err := out.add(group); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// list has the groups of a list, within the limits.
type list struct {
	groups           []*targetgroup.Group
	addresses, bytes int
}

func (l *list) add(group *writtenGroup) error {
	if group == nil {
		return errors.New("a group of the list is null")
	}
	shared := 0
	for name, value := range group.Labels {
		shared += len(name) + len(value)
	}
	out := &targetgroup.Group{Labels: group.Labels, Targets: make([]model.LabelSet, 0, min(len(group.Targets), maxAddresses))}
	// An empty group also takes memory.
	l.addresses++
	for _, address := range group.Targets {
		l.addresses++
		l.bytes += shared + len(address)
		if l.addresses > maxAddresses || l.bytes > maxLabelBytes {
			break
		}
		out.Targets = append(out.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(address)})
	}
	if l.addresses > maxAddresses {
		return fmt.Errorf("it exceeds the limit of %d groups and addresses; split the list", maxAddresses)
	}
	if l.bytes > maxLabelBytes {
		return fmt.Errorf("the labels of its addresses exceed the limit of %d bytes; shorten the labels", maxLabelBytes)
	}
	if out.Labels == nil {
		out.Labels = model.LabelSet{}
	}
	l.groups = append(l.groups, out)
	return nil
}

// named sets the sources of the groups, and a label with the origin of the list.
func (l *list) named(from string, label model.LabelName) []*targetgroup.Group {
	for i, group := range l.groups {
		group.Source = sourceOf(from, i)
		group.Labels[label] = model.LabelValue(from)
	}
	return l.groups
}

// withoutFormer adds an empty group for each former group that is missing now. The
// manager removes the targets of an empty group.
func withoutFormer(groups []*targetgroup.Group, from string, former int) []*targetgroup.Group {
	for i := len(groups); i < former; i++ {
		groups = append(groups, &targetgroup.Group{Source: sourceOf(from, i)})
	}
	return groups
}

func sourceOf(from string, i int) string { return fmt.Sprintf("%s:%d", from, i) }
