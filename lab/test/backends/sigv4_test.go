//go:build e2e

package backends

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// As AWS's security token service answers.
const assumed = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>KEYOFROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`

// The overlay in the heads of Amazon's examples, in the full distribution: with the role and the token that EKS gives a
// pod, requests are signed for the right service.
func TestARoleSignsRequestsToAmazon(t *testing.T) {
	program := filepath.Join(captures.Root(t), "bin", "otelcol-vllm-full")
	if _, err := os.Stat(program); err != nil {
		t.Skip("the full distribution is not built; run make build-full:", err)
	}
	for file, service := range map[string]string{"amazon-managed-prometheus.yaml": "aps", "cloudwatch.yaml": "monitoring"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b := backends[slices.IndexFunc(backends, func(b backend) bool { return b.file == file })]
			text, err := os.ReadFile(b.config())
			require.NoError(t, err)
			_, head, found := strings.Cut(string(text), "#   extensions:\n")
			require.True(t, found)
			head, _, _ = strings.Cut(head, "\n#\n")
			folder := t.TempDir()
			overlay, token := filepath.Join(folder, "sigv4.yaml"), filepath.Join(folder, "token")
			require.NoError(t, os.WriteFile(overlay, []byte(strings.ReplaceAll("#   extensions:\n"+head, "#   ", "")), 0o600))
			require.NoError(t, os.WriteFile(token, []byte("token-of-the-pod"), 0o600))
			asked := make(chan string, 100)
			sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.FormValue("RoleArn") + " " + r.FormValue("WebIdentityToken")
				fmt.Fprint(w, assumed)
			}))
			t.Cleanup(sts.Close)
			backend, addr := newRecorder(t), collector.FreeAddr(t)
			env := environment(t, b, backend.url)
			env["AWS_REGION"], env["AWS_ENDPOINT_URL_STS"] = "eu-central-1", sts.URL
			env["AWS_ROLE_ARN"], env["AWS_WEB_IDENTITY_TOKEN_FILE"] = "arn:aws:iam::1:role/otelcol", token
			c := collector.Start(t, env, program, "--config", b.config(), "--config", overlay, "--config", b.feed(addr),
				"--config", "yaml:service::telemetry::metrics::level: none")
			c.WaitFor(t, "the start of all components", c.Ready)
			b.scrape(t, addr)
			b.waitForAll(t, c, backend)
			c.Stop(t)
			assert.Equal(t, "arn:aws:iam::1:role/otelcol token-of-the-pod", <-asked)
			signed := regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=KEYOFROLE/\d{8}/eu-central-1/` + service + `/aws4_request, SignedHeaders=.*, Signature=[0-9a-f]{64}$`)
			for _, r := range backend.received().requests {
				require.Regexp(t, signed, r.header.Get("Authorization"))
				require.Equal(t, "session", r.header.Get("X-Amz-Security-Token"))
			}
		})
	}
}
