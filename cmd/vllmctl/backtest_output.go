package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
)

// page is the file of --html. It is opened before the work, so that a folder that cannot be
// written is reported at once.
type page struct {
	file *os.File
	to   string
}

func (f *backtestFlags) openPage() (*page, error) {
	if f.html == "" {
		return &page{}, nil
	}
	to := f.html
	if info, err := os.Stat(to); err == nil {
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("--html: %s is not a file; write the name of a file, for example backtest.html", to)
		}
		// A link stays one.
		if to, err = filepath.EvalSymlinks(to); err != nil {
			return nil, fmt.Errorf("--html: %w", err)
		}
	}
	// CreateTemp would make a file that only the user can read, whatever the umask is.
	file, err := os.OpenFile(fmt.Sprintf("%s.%d.part", to, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // As the shell does with > file.
	if err != nil {
		return nil, fmt.Errorf("--html: %w", err)
	}
	return &page{file, to}, nil
}

func (p *page) discard() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

func (p *page) write(r *report.Report) error {
	if p.file == nil {
		return nil
	}
	err := report.HTML(p.file, r)
	if err = errors.Join(err, p.file.Close()); err == nil {
		err = os.Rename(p.file.Name(), p.to)
	}
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	p.file = nil
	return nil
}

// progress shows on a terminal a bar, elsewhere a line at each tenth.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	tenth int
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if file, is := w.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("reading the history"),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200*time.Millisecond),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionFullWidth())
	}
	return p
}

func (p *progress) set(done, total int) {
	if p.bar != nil {
		p.bar.ChangeMax(total)
		_ = p.bar.Set(done)
		return
	}
	if tenth := 10 * done / max(1, total); tenth > p.tenth {
		p.tenth = tenth
		fmt.Fprintf(p.w, "vllmctl: %d %% of the history judged\n", 10*tenth)
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// backtestSection is the part of the reference page that the help of backtest does not have.
func backtestSection(checkout string) (reference.Section, error) {
	section := reference.Section{Command: "backtest"}
	parts := filepath.Join(checkout, "cmd", "vllmctl")
	for _, of := range []struct{ folder, name string }{
		{"internal/backtest/report", "Report"},
		{"internal/backtest/replay", "Coverage"},
		{"internal/backtest/replay", "Episode"},
		{"rulestore", "Firing"},
		{"rulestore", "Problem"},
		{"internal/backtest/incident", "Result"},
		{"internal/backtest/incident", "Alarm"},
	} {
		objects, err := reference.Document(filepath.Join(parts, filepath.FromSlash(of.folder)), of.name)
		if err != nil {
			return section, err
		}
		section.Document = append(section.Document, objects...)
	}
	return section, nil
}
