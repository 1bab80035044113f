package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/report"
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
	file, err := os.CreateTemp(filepath.Dir(f.html), ".vllmctl-*.html")
	if err != nil {
		return nil, fmt.Errorf("--html: %w", err)
	}
	return &page{file, f.html}, nil
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
	if err = errors.Join(err, p.file.Chmod(0o644), p.file.Close()); err == nil {
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
