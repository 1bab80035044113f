//go:build linux

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/real"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Measure plays a steady phase on a real vLLM, and writes what was found into VERSION.json of a folder.
func Measure(ctx context.Context, o *real.Options, play *story.Play, folder string) (*Release, error) {
	out := &Release{Version: o.Version, Measured: time.Now().UTC().Truncate(time.Second)}
	r, err := real.Play(ctx, play, o)
	if err != nil {
		return nil, err
	}
	out.Capacity = r.Capacity
	if out.Values, err = Values(ctx, r); err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return nil, err
	}
	err = os.MkdirAll(folder, 0o755)
	return out, errors.Join(err, os.WriteFile(filepath.Join(folder, o.Version+".json"), append(raw, '\n'), 0o644))
}
