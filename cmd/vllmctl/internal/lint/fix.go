package lint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// maxRounds bounds how often a file is checked again for what a replacement makes certain.
const maxRounds = 5

// Plan computes the content of each file with its certain replacements, and with those that
// become certain by them. A file whose replacements cannot all be made stays as it is and says
// why. The options are those of the check.
func (r *Report) Plan(ctx context.Context, o Options) {
	for i := range r.Files {
		f := &r.Files[i]
		edits, content := f.edits(), f.Before
		for round := 0; len(edits) > 0 && round < maxRounds; round++ {
			after, _, err := document.Apply(content, edits)
			if err != nil {
				f.After, f.NotFixed = nil, "nothing was replaced: "+err.Error()
				break
			}
			if bytes.Equal(after, content) {
				break
			}
			f.After, content = after, after
			again := Check(ctx, []Input{{Name: f.Name, Content: after, Listed: true}}, o)
			edits = again.Files[0].edits()
		}
	}
}

// edits returns the replacements of a file. Where two are about the same bytes, the stable name
// counts, since it is right for old and for new servers.
func (f *File) edits() []document.Edit {
	var all []document.Edit
	for _, stable := range []bool{true, false} {
		for _, x := range f.Findings {
			if x.edit == nil || stable != (x.Code == querylint.CodeStableName) {
				continue
			}
			overlaps := slices.ContainsFunc(all, func(e document.Edit) bool {
				return e.Node == x.edit.Node && e.From < x.edit.To && x.edit.From < e.To
			})
			if !overlaps {
				all = append(all, *x.edit)
			}
		}
	}
	return all
}

// Write writes the files that Plan has changed. Files that cannot be written say why.
func (r *Report) Write() {
	for i := range r.Files {
		f := &r.Files[i]
		if f.After == nil {
			continue
		}
		if err := write(f); err != nil {
			f.NotFixed = "nothing was written: " + err.Error()
			continue
		}
		for j := range f.Findings {
			if f.Findings[j].edit != nil {
				f.Findings[j].Fixed = true
				f.Fixed++
			}
		}
	}
	r.summarize()
}

// write replaces a file by a new one, so that it is either the old or the new one whatever
// happens. A link stays a link.
func write(f *File) (err error) {
	if f.Name == "-" {
		return errors.New("standard input cannot be changed; use --diff")
	}
	path, err := filepath.EvalSymlinks(f.Name)
	if err != nil {
		return reason(err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return reason(err)
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Mode().Perm()&0o222 == 0:
		return errors.New("the file is read-only")
	}
	now, err := os.ReadFile(path)
	if err != nil {
		return reason(err)
	}
	if !bytes.Equal(now, f.Before) {
		return errors.New("the file has changed since it was read; run the check again")
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".vllmctl-lint-*")
	if err != nil {
		return writeReason(err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	if _, err = temporary.Write(f.After); err != nil {
		return writeReason(err)
	}
	if err = temporary.Chmod(info.Mode().Perm()); err != nil {
		return writeReason(err)
	}
	keepOwner(temporary, info)
	if err = temporary.Sync(); err != nil {
		return writeReason(err)
	}
	if err = temporary.Close(); err != nil {
		return writeReason(err)
	}
	if err = os.Rename(temporary.Name(), path); err != nil {
		return writeReason(err)
	}
	return nil
}

func writeReason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("a new file in the same folder cannot be written: %w", path.Err)
	}
	return fmt.Errorf("a new file in the same folder cannot be written: %w", err)
}
