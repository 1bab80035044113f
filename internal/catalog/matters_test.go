package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheDefectsThatMatterForAServer(t *testing.T) {
	beforeDefects, beforeSetups := defects, setups
	t.Cleanup(func() { defects, setups = beforeDefects, beforeSetups })
	const running, waiting, byReason = "vllm.num_requests.running", "vllm.num_requests.waiting", "vllm.num_requests.waiting_by_reason"
	setups = []Setup{{Name: "seen", Visible: "a label"}, {Name: "hidden"}}
	defects = []Defect{
		{ID: "open", Metrics: []string{running}, Since: "0.8.0"},
		{ID: "ended", Metrics: []string{running}, Since: "0.8.0", Until: "0.10.2"},
		{ID: "of-all", Metrics: []string{"*"}, Until: "0.12.0"},
		{ID: "other-metric", Metrics: []string{waiting}},
		{ID: "rust", Metrics: []string{running}, Engines: []string{"rust"}},
		{ID: "python", Metrics: []string{running}, Engines: []string{"python"}, Until: "0.9.0"},
		{ID: "seen", Metrics: []string{running}, Since: "0.30.0", Setups: []string{"seen"}},
		{ID: "hidden", Metrics: []string{running}, Since: "0.30.0", Setups: []string{"hidden"}},
		{ID: "both", Metrics: []string{running}, Since: "0.30.0", Setups: []string{"seen", "hidden"}},
	}
	for name, c := range map[string]struct {
		server         Server
		sure, possible []DefectID
	}{
		"a version in the middle": {
			Server{Version: "0.9.2", Engine: "python", Metrics: []string{running}}, []DefectID{"open", "ended", "of-all"}, nil,
		},
		"the version without it": {
			Server{Version: "v0.10.2", Engine: "python", Metrics: []string{running}}, []DefectID{"open", "of-all"}, nil,
		},
		"a build before that version": {
			Server{Version: "0.10.2rc1", Engine: "python", Metrics: []string{running}}, []DefectID{"open", "ended", "of-all"}, nil,
		},
		"a patch of that version": {
			Server{Version: "0.10.2.1+cu128", Engine: "python", Metrics: []string{running}}, []DefectID{"open", "of-all"}, nil,
		},
		"a version before": {
			Server{Version: "0.7.9", Engine: "python", Metrics: []string{running}}, []DefectID{"of-all", "python"}, nil,
		},
		"an unknown version": {
			Server{Engine: "python", Metrics: []string{running}}, []DefectID{"open", "ended", "of-all", "python"}, []DefectID{"hidden"},
		},
		"an unknown version with a newer metric": {
			Server{Engine: "python", Metrics: []string{running, byReason}}, []DefectID{"open"}, []DefectID{"hidden"},
		},
		"a version that is none": {
			Server{Version: "0.1.dev1+g1234567", Engine: "python", Metrics: []string{running, byReason}}, []DefectID{"open"}, []DefectID{"hidden"},
		},
		"another implementation": {
			Server{Version: "0.8.5", Engine: "rust", Metrics: []string{running}}, []DefectID{"open", "ended", "of-all", "rust"}, nil,
		},
		"an unknown implementation": {
			Server{Version: "0.8.5", Metrics: []string{running}}, []DefectID{"open", "ended", "of-all", "rust", "python"}, nil,
		},
		"a setup that is not there": {
			Server{Version: "0.30.0", Engine: "python", Metrics: []string{running}}, []DefectID{"open"}, []DefectID{"hidden"},
		},
		"a setup that is there": {
			Server{Version: "0.30.0", Engine: "python", Metrics: []string{running}, Setups: []string{"seen"}},
			[]DefectID{"open", "seen"},
			[]DefectID{"hidden", "both"},
		},
		"another metric":           {Server{Version: "0.20.0", Metrics: []string{waiting}}, []DefectID{"other-metric"}, nil},
		"no metric":                {Server{Version: "0.9.2"}, nil, nil},
		"another program's metric": {Server{Version: "0.9.2", Metrics: []string{"http_requests"}}, nil, nil},
	} {
		sure, possible := Matters(&c.server)
		assert.Equal(t, c.sure, sure, name)
		assert.Equal(t, c.possible, possible, name)
	}
}

// What the data of a server cannot show is not a certain defect of it: that its FastAPI is one
// which vLLM does not allow, that engines were added, or that requests want several choices.
func TestWhatADefectNeedsDecidesHowItIsCounted(t *testing.T) {
	server := Server{Version: "0.24.0", Engine: "python", Metrics: []string{"vllm.num_requests.running", "vllm.request.success", "http_requests"}}
	sure, possible := Matters(&server)
	for _, id := range []DefectID{DefectHandlerLost, DefectChoicesCountedSingly} {
		assert.NotContains(t, sure, id)
		assert.Contains(t, possible, id)
	}
	assert.NotContains(t, append(sure, possible...), DefectScaleUpResets, "one engine alone")

	server.Setups = []string{"data_parallel"}
	sure, possible = Matters(&server)
	assert.NotContains(t, sure, DefectScaleUpResets)
	assert.Contains(t, possible, DefectScaleUpResets)
}
