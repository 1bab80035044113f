package scenario

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/profile"
)

func (s *Scenario) readHardware(n *node) (err error) {
	c := &s.Config
	if c.Hardware, err = n.text(); err == nil && !slices.Contains(vllmsim.Models(), c.Hardware) {
		err = n.errorf("unknown hardware %q: want one of %s", c.Hardware, strings.Join(vllmsim.Models(), ", "))
	}
	return err
}

// readProfile reads measured step times in place of a preset.
func (s *Scenario) readProfile(n *node) error {
	if s.Config.Hardware != "" {
		return n.errorf("hardware is there as well; want one of them")
	}
	var file, gpu, model, dtype string
	tp := 0
	err := n.mapping(text("components", &file), text("gpu", &gpu), text("model", &model), integer("tp", &tp, 1, 1024), text("dtype", &dtype))
	switch {
	case err != nil:
		return err
	case file == "" || gpu == "" || model == "":
		return n.errorf("want components, a CSV file of measured times, and gpu and model as the file has them")
	}
	m, err := profile.Read(near(n.path, file), gpu, model, tp, dtype)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return n.errorf("there is no file %s, neither in the folder of this file nor in the working directory", file)
	case err != nil:
		return n.errorf("%w", err)
	}
	if m.Note != "" {
		s.Notes = append(s.Notes, m.Note)
	}
	s.Config.Measured = &m
	return nil
}

// near is a file named in another one: it is in the folder of that one, or else relative to
// the working directory.
func near(other, file string) string {
	if beside := filepath.Join(filepath.Dir(other), file); !filepath.IsAbs(file) {
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return file
}
