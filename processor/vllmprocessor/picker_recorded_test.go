package vllmprocessor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// The tests of this file need the recorded bodies of gateways and are skipped without them;
// TestAPickersValuesAreTheIntegralsOfWhatHappened has pages of the project's own.

// drivenTruth is the load that a program put on a release's own metrics.
type drivenTruth struct {
	Pairs []struct {
		Model, Target                          string
		Requests, ModelServerErrors, WithUsage float64
		SumE2ESeconds, SumIn, SumOut           float64
	}
	// EarlyErrors are by model, target and error_code.
	EarlyErrors map[string]float64
}

// liveTruth is what the client of a live picker counted, by model and target.
type liveTruth struct {
	Pairs map[string]struct {
		Sent, EPPRejected, UpstreamNon200, OK float64
		PromptTokens, CompletionTokens        float64
		SumE2E                                float64
	} `json:"client_by_model_and_target"`
}

func pickerCapture(t *testing.T, name string, truth any, after time.Duration) answer {
	t.Helper()
	dir := filepath.Join(captures.Dir(t), "gateway")
	content, err := os.ReadFile(filepath.Join(dir, name+".truth.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, truth))
	body, err := os.ReadFile(filepath.Join(dir, name+".txt"))
	require.NoError(t, err)
	return answer{at: noon.Add(after), body: body, contentType: "text/plain; version=0.0.4"}
}

// The metric packages of three releases, driven with a known load: every value is that of
// the load between the two pages.
func TestDerivedValuesOfRecordedPickersAreTheirLoad(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"epp-gaie-v1.0.2", "epp-gaie-v1.5.0", "epp-llmd-v0.10.0"} {
		for way, send := range pickerWays {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				var before, after drivenTruth
				scrapes := []answer{pickerCapture(t, name, &before, 0), pickerCapture(t, name+"-t2", &after, 30*time.Second)}
				got := derivePicker(t, send(t, nil, scrapes), nil)[1]
				want := map[string]float64{}
				early, refused, shed := map[string]float64{}, 0.0, 0.0
				shedOf := map[string]float64{}
				for key, n := range after.EarlyErrors {
					n -= before.EarlyErrors[key]
					parts := strings.Split(key, "|")
					pair := strings.Join(parts[:len(parts)-1], "|")
					early[pair] += n
					refused += n
					if strings.HasSuffix(key, "ResourceExhausted") {
						shedOf[pair] += n
						shed += n
					}
				}
				var all, failed, durations, ended, in, usage, out float64
				put := func(metric, attributes string, above, below float64) {
					if below > 0 {
						want[epp+metric+"{"+attributes+"}"] = above / below
					}
				}
				for i, p := range after.Pairs {
					q := before.Pairs[i]
					attributes := fmt.Sprintf("model_name=%s,target_model_name=%s,", p.Model, p.Target)
					pair := p.Model + "|" + p.Target
					n, mse := p.Requests-q.Requests, p.ModelServerErrors-q.ModelServerErrors
					put("request.error_ratio", attributes, mse+early[pair], n+early[pair])
					put("request.shed_ratio", attributes, shedOf[pair], n+early[pair])
					put("request_rate", attributes, n+early[pair], 30)
					put("request.duration_mean", attributes, p.SumE2ESeconds-q.SumE2ESeconds, n)
					put("request.input_tokens_mean", attributes, p.SumIn-q.SumIn, p.WithUsage-q.WithUsage)
					put("request.output_tokens_mean", attributes, p.SumOut-q.SumOut, p.WithUsage-q.WithUsage)
					all, failed, ended = all+n, failed+mse, ended+n
					durations += p.SumE2ESeconds - q.SumE2ESeconds
					in, out, usage = in+p.SumIn-q.SumIn, out+p.SumOut-q.SumOut, usage+p.WithUsage-q.WithUsage
				}
				put("request.error_ratio", "", failed+refused, all+refused)
				put("request.shed_ratio", "", shed, all+refused)
				put("request.duration_mean", "", durations, ended)
				put("request.input_tokens_mean", "", in, usage)
				put("request.output_tokens_mean", "", out, usage)
				assert.Greater(t, len(want), 20)
				for series, value := range want {
					is, has := got[series]
					if assert.True(t, has, "%s is missing, and should be %v", series, value) {
						assert.InDelta(t, value, is, 1e-9*max(1, value), series)
					}
				}
				// Not even the errors that have no request make a share above 1.
				for series, value := range got {
					if strings.Contains(series, "_ratio{") {
						assert.LessOrEqual(t, value, 1.0, series)
						assert.GreaterOrEqual(t, value, 0.0, series)
					}
				}
			})
		}
	}
}

// Live pickers, from their start: the shares and means are what the client saw. The picker
// does not see the errors of the servers behind it, which the catalogue says.
func TestDerivedValuesOfLivePickersAreTheirClients(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"epp-gaie-v1.0.2-live", "epp-gaie-v1.5.0-live", "epp-llmd-v0.10.0-live"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var none, truth liveTruth
			scrapes := []answer{pickerCapture(t, name+"-t0", &none, 0), pickerCapture(t, name, &truth, 45*time.Second)}
			require.Empty(t, none.Pairs)
			got := derivePicker(t, pickerWays["our receiver"](t, nil, scrapes), nil)[1]
			var sent, refused, prompts, outputs, served, unseen float64
			for pair, c := range truth.Pairs {
				sent, refused, unseen = sent+c.Sent, refused+c.EPPRejected, unseen+c.UpstreamNon200
				prompts, outputs, served = prompts+c.PromptTokens, outputs+c.CompletionTokens, served+c.OK
				model, target, _ := strings.Cut(pair, "|")
				if model == "" {
					continue
				}
				attributes := fmt.Sprintf("{model_name=%s,target_model_name=%s,}", model, target)
				assert.InDelta(t, c.EPPRejected/c.Sent, got[epp+"request.error_ratio"+attributes], 1e-9, pair)
				assert.InDelta(t, c.Sent/45, got[epp+"request_rate"+attributes], 1e-9, pair)
				if c.OK > 0 {
					assert.InDelta(t, c.SumE2E/c.OK, got[epp+"request.duration_mean"+attributes], 0.02, pair)
				}
				if c.OK > 0 && !strings.Contains(name, "v1.0.2") {
					// Not every stream asks for its usage, so a mean covers other streams than the sum.
					counted := got[epp+"request.input_tokens_mean"+attributes]
					assert.Positive(t, counted, pair)
				}
			}
			assert.InDelta(t, refused/sent, got[epp+"request.error_ratio{}"], 1e-9)
			assert.Positive(t, unseen, "errors that no picker sees")
			assert.InDelta(t, refused/45, got[epp+"request_rate{}"], 1e-9, "before the model was known")
			if !strings.Contains(name, "v1.0.2") {
				assert.InEpsilon(t, prompts/served, got[epp+"request.input_tokens_mean{}"], 0.5)
				assert.InEpsilon(t, outputs/served, got[epp+"request.output_tokens_mean{}"], 0.5)
			}
		})
	}
}
