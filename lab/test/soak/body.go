package soak

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// The metrics by which the sink recognizes an answer. The receiver keeps families of vLLM that
// it does not know.
const (
	// servedFamily stands at the beginning of each body, enginesFamily at its end, once for each
	// engine. Both have the number of the answer.
	servedFamily, servedMetric   = "vllm:soak_served", "vllm.soak_served"
	enginesFamily, enginesMetric = "vllm:soak_engine", "vllm.soak_engine"
	// The metrics of vLLM whose points are checked for each engine.
	tokensFamily, tokensMetric = "vllm:prompt_tokens_total", "vllm.prompt_tokens"
	firstMetric                = "vllm.time_to_first_token"
	adaptersFamily             = "vllm:lora_requests_info"
)

// mostEngines is the most engines of a server.
const mostEngines = 8

// template is the body of a server of one version. Its counters grow as those of the recorded server.
type template struct {
	*fleet.Template
	version string
}

func loadTemplate(testdata, folder, version string) (*template, error) {
	t, err := fleet.Load(filepath.Join(testdata, folder), adaptersFamily)
	return &template{t, version}, err
}

// state is what a body shows: adapters are the names of LoRA adapters that have requests, now is a unix time.
type state struct {
	fleet.State
	id       uint64
	adapters []string
	now      float64
}

// render appends a body.
func (t *template) render(to []byte, s state) []byte {
	line := func(text string, value float64) {
		to = append(strconv.AppendFloat(append(to, text+" "...), value, 'f', -1, 64), '\n')
	}
	to = append(to, "# TYPE "+servedFamily+" gauge\n"...)
	line(servedFamily, float64(s.id))
	to = t.Append(to, s.State)
	if len(s.adapters) > 0 {
		to = append(to, "# TYPE "+adaptersFamily+" gauge\n"...)
		line(adaptersFamily+`{max_lora="8",running_lora_adapters="`+strings.Join(s.adapters, ",")+
			`",waiting_lora_adapters="`+s.adapters[0]+`"}`, s.now)
	}
	to = append(to, "# TYPE "+enginesFamily+" gauge\n"...)
	for engine := range s.Engines {
		line(enginesFamily+`{engine="`+strconv.Itoa(engine)+`"}`, float64(s.id))
	}
	if strings.Contains(t.ContentType, "openmetrics") {
		to = append(to, "# EOF\n"...)
	}
	return to
}
