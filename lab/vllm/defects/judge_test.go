package defects

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func shown(t *testing.T, body string) Shown {
	t.Helper()
	s, err := Read([]byte(body))
	require.NoError(t, err)
	return s
}

// verdict judges what an event showed on a version.
func verdict(t *testing.T, defect catalog.DefectID, version string, s *Seen) Verdict {
	t.Helper()
	for _, e := range slices.Concat(events, several) {
		for _, j := range e.Shows {
			if j.Defect == defect {
				return j.judge(e.Name, version, s)
			}
		}
	}
	require.Fail(t, "no event shows it", defect)
	return Verdict{}
}

const left = `vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 2
vllm:time_to_first_token_seconds_sum{engine="0"} 0.5
vllm:time_to_first_token_seconds_count{engine="0"} 2
vllm:generation_tokens_total{engine="0"} 9
vllm:num_requests_running{engine="0"} 0
`

const head = "# TYPE vllm:time_to_first_token_seconds histogram\n# TYPE vllm:generation_tokens_total counter\n# TYPE vllm:num_requests_running gauge\n"

func TestClientsThatLeaveAreCountedOrNot(t *testing.T) {
	const counted = `vllm:request_success_total{engine="0",finished_reason="abort"} 2` + "\n"
	for name, tc := range map[string]struct{ after, want string }{
		"not counted":                    {head + left, Present},
		"counted":                        {head + left + counted, Absent},
		"only one of them":               {head + left + strings.Replace(counted, "} 2", "} 1", 1), Unknown},
		"the server went on to the end":  {head + strings.Replace(left, "total{engine=\"0\"} 9", "total{engine=\"0\"} 400", 1), Unknown},
		"a client left before its token": {head + strings.ReplaceAll(left, "} 2", "} 1"), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Seen{Before: Shown{}, After: shown(t, tc.after), Did: map[string]float64{"asked": 400}}
			got := verdict(t, catalog.DefectClientAbortsUncounted, "0.32.0", s)
			assert.Equal(t, tc.want, got.Verdict, got.Says)
			assert.Equal(t, tc.want == Absent, got.Contradicts, "the page says that 0.32.0 has it")
		})
	}
}

func TestStepsWithoutOutputs(t *testing.T) {
	const steps = "# TYPE vllm:iteration_tokens_total histogram\nvllm:iteration_tokens_total_bucket{le=\"+Inf\"} N\nvllm:iteration_tokens_total_sum S\nvllm:iteration_tokens_total_count N\n"
	at := func(count, sum string) Shown {
		return shown(t, strings.NewReplacer("N", count, "S", sum).Replace(steps))
	}
	for name, tc := range map[string]struct {
		after Shown
		want  string
	}{
		"one observation of all tokens": {at("5", "801"), Present},
		"each step":                     {at("7", "801"), Absent},
		"nothing":                       {at("4", "100"), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdict(t, catalog.DefectStepsWithoutOutputs, "0.32.0", &Seen{Before: at("4", "100"), After: tc.after})
			assert.Equal(t, tc.want, got.Verdict, got.Says)
		})
	}
}

func TestAnAnswerOf400IsCountedAs4xxOr5xx(t *testing.T) {
	const body = "# TYPE http_requests_total counter\nhttp_requests_total{status=\"4xx\"} A\nhttp_requests_total{status=\"5xx\"} B\n"
	for name, tc := range map[string]struct {
		a, b, version string
		status        float64
		want          string
		contradicts   bool
	}{
		"5xx with it":       {"0", "1", "0.24.0", 400, Present, false},
		"4xx without it":    {"1", "0", "0.28.0", 400, Absent, false},
		"5xx after the fix": {"0", "1", "0.28.0", 400, Present, true},
		"4xx before":        {"1", "0", "0.24.0", 400, Absent, true},
		"another answer":    {"0", "1", "0.24.0", 500, Unknown, false},
		"both":              {"1", "1", "0.24.0", 400, Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Seen{Before: Shown{}, After: shown(t, strings.NewReplacer("A", tc.a, "B", tc.b).Replace(body)), Did: map[string]float64{"status": tc.status}}
			got := verdict(t, catalog.DefectClientErrorsAsServerErrors, tc.version, s)
			assert.Equal(t, tc.want, got.Verdict, got.Says)
			assert.Equal(t, tc.contradicts, got.Contradicts)
		})
	}
}

func TestTheNewestListOfAdaptersCounts(t *testing.T) {
	const old = `vllm:lora_requests_info{running_lora_adapters="adapter-1,adapter-2",waiting_lora_adapters="adapter-1,adapter-2"} 10` + "\n"
	twice := shown(t, "# TYPE vllm:lora_requests_info gauge\n"+strings.Replace(old, "} 10", "} 12", 1)+`vllm:lora_requests_info{running_lora_adapters="",waiting_lora_adapters=""} 11`+"\n")
	once := shown(t, "# TYPE vllm:lora_requests_info gauge\n"+old+`vllm:lora_requests_info{running_lora_adapters="adapter-1",waiting_lora_adapters="adapter-2"} 11`+"\n")
	assert.Equal(t, Present, verdict(t, catalog.DefectAdaptersListedTwice, "0.32.0", &Seen{During: twice}).Verdict)
	assert.Equal(t, Absent, verdict(t, catalog.DefectAdaptersListedTwice, "0.32.0", &Seen{During: once}).Verdict)
	assert.InDelta(t, 2, listed(once), 0)
}

func TestAnEventOfNewerVersionsSaysNothingOfAnOldOne(t *testing.T) {
	body := func(sum string) Shown {
		return shown(t, "# TYPE vllm:request_prefill_time_seconds histogram\nvllm:request_prefill_time_seconds_bucket{le=\"+Inf\"} 1\nvllm:request_prefill_time_seconds_sum "+sum+"\nvllm:request_prefill_time_seconds_count 1\n")
	}
	did := map[string]float64{"tokens": 0, "took": 2}
	for _, tc := range []struct{ sum, version, want string }{
		{"4300", "0.32.0", Present},
		{"0.5", "0.32.0", Absent},
		{"0.5", "0.16.0", Unknown},
		{"4300", "0.16.0", Present},
	} {
		got := verdict(t, catalog.DefectNegativeDurations, tc.version, &Seen{Before: Shown{}, After: body(tc.sum), Did: maps.Clone(did)})
		assert.Equal(t, tc.want, got.Verdict, "%s on %s: %s", tc.sum, tc.version, got.Says)
	}
}

func TestBlocksOfTwoEngines(t *testing.T) {
	for number, want := range map[string][2]string{"64": {Present, Absent}, "32": {Absent, Absent}, "None": {Unknown, Present}} {
		body := "# TYPE vllm:cache_config_info gauge\n"
		for _, engine := range []string{"0", "1"} {
			body += `vllm:cache_config_info{engine="` + engine + `",num_gpu_blocks="` + number + `"} 1` + "\n"
		}
		s := &Seen{After: shown(t, body)}
		assert.Equal(t, want[0], verdict(t, catalog.DefectBlocksSummedOverEngines, "0.19.0", s).Verdict, number)
		assert.Equal(t, want[1], verdict(t, catalog.DefectBlocksUnknownToApiServers, "0.19.0", s).Verdict, number)
	}
}

func TestADefectHasOneEvent(t *testing.T) {
	seen := map[catalog.DefectID]string{}
	for _, e := range slices.Concat(events, several) {
		for _, j := range e.Shows {
			assert.Empty(t, seen[j.Defect], "%s is shown by %s too", j.Defect, e.Name)
			seen[j.Defect] = e.Name
		}
	}
}

func TestABodyThatIsNoExpositionIsAnError(t *testing.T) {
	_, err := Read([]byte("<html>"))
	assert.ErrorContains(t, err, "/metrics cannot be read")
}
