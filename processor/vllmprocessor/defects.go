package vllmprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// judgedServer is what the known defects of a resource were last looked up for.
type judgedServer struct {
	// batches counts the first two: one scrape can arrive in several requests.
	batches int
	judged  bool
	version string
	// lines is for how many versions they were logged.
	lines int
}

// logDefects logs which known defects of vLLM's metrics matter for a server that our
// receiver does not scrape.
func (p *vllmProcessor) logDefects(r *resource, attributes pcommon.Map, now time.Time) {
	defer p.defects.Flush(now)
	j := &r.defects
	if j.batches < 2 {
		j.batches++
	}
	version := r.Window.Reported()
	if j.batches < 2 || j.judged && j.version == version {
		return
	}
	j.judged, j.version = true, version
	if j.lines >= defectlog.MaxVersions {
		return
	}
	server, is := r.Window.Described()
	if is && p.defects.Add(now, serverName(attributes), &server) {
		j.lines++
	}
}

func serverName(attributes pcommon.Map) string {
	for _, name := range []string{"service.instance.id", "k8s.pod.name"} {
		if value, has := attributes.Get(name); has && value.AsString() != "" {
			return stages.Cut(value.AsString())
		}
	}
	var parts []string
	for _, field := range stages.ServerFields(attributes) {
		parts = append(parts, field.String)
	}
	return strings.Join(parts, " ")
}
