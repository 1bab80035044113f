package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// readGPUs reads how GPUs and their exporter are simulated.
func (s *Scenario) readGPUs(n *node) error {
	c := &gpu.Config{}
	s.Config.GPUs = c
	err := n.mapping(
		choice("exporter", &c.Kind, gpu.DCGM, gpu.AMD),
		choice("sharing", &c.Sharing, gpu.Sharings()...),
		field{"families", func(n *node) error {
			return n.each(func(n *node) error {
				name, err := n.text()
				if err == nil && !slices.Contains(gpu.Groups(), name) {
					err = n.errorf("unknown families %q: want some of %s", name, strings.Join(gpu.Groups(), ", "))
				}
				c.Families = append(c.Families, name)
				return err
			})
		}},
		boolean("old_labels", &c.OldLabels),
		boolean("pod_uid", &c.PodUID),
		boolean("bare", &c.Bare),
		integer("affected", &c.Affected, 0, 64),
		field{"sample_interval", func(n *node) (err error) {
			c.Interval, err = n.duration(time.Second, time.Hour)
			return err
		}},
		field{"away", func(n *node) error {
			return n.each(func(n *node) error {
				one := gpu.Span{At: -1}
				err := n.mapping(span("at", &one.At, 0, s.horizon()), span("until", &one.Until, 0, s.horizon()))
				if err == nil && (one.At < 0 || one.Until <= one.At) {
					err = n.errorf("until: want at and until, the later one second")
				}
				c.Away = append(c.Away, one)
				return err
			})
		}},
	)
	if err != nil {
		return err
	}
	if _, err := c.WithDefaults(); err != nil {
		return n.errorf("%w", err)
	}
	return nil
}

// choice is one of some words.
func choice(name string, into *string, of ...string) field {
	return field{name, func(n *node) error {
		word, err := n.text()
		if err == nil && !slices.Contains(of, word) {
			err = n.errorf("unknown %s %q: want one of %s", name, word, strings.Join(of, ", "))
		}
		*into = word
		return err
	}}
}
