package runbooks

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// commands are all that a page gives to copy, after the set-up of the index.
func commands(t *testing.T, page string) []string {
	t.Helper()
	return append(blocks(t, "README", "sh")[:1], blocks(t, page, "sh")...)
}

// bash runs what a person pastes, in a folder of its own, with other programs first in the path.
func bash(t *testing.T, script string, programs map[string]string, environment ...string) (out, errors string) {
	t.Helper()
	folder := t.TempDir()
	for name, program := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/bash\n"+program), 0o700))
	}
	command := exec.CommandContext(t.Context(), "bash", "-u", "-c", script)
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &stdout, &stderr
	command.Env = append(append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH")), environment...)
	command.WaitDelay = time.Second
	_ = command.Run() // what a stand-in answers may fail the next command
	return stdout.String(), stderr.String()
}

// Whoever pastes the commands of a page in order has every variable, and asks the right namespace; and what is
// lost with a pod is saved before a command ends it.
func TestTheCommandsOfEveryPageCanBePasted(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	stands := map[string]string{
		"kubectl": `echo "kubectl $*" >> calls; echo answer`,
		"curl":    "exit 0", "sleep": "exit 0",
	}
	ending := regexp.MustCompile(`k delete pod|k rollout undo|kubectl drain`)
	with, ends := 0, 0
	for _, path := range pages {
		page := strings.TrimSuffix(filepath.Base(path), ".md")
		if page == "README" || len(commands(t, page)) == 1 {
			continue
		}
		all := strings.Join(commands(t, page), "\n")
		if strings.HasPrefix(page, "VLLMModel") {
			assert.NotContains(t, strings.Join(commands(t, page)[1:], ""), "POD", "%s is about a model without a pod", page)
		}
		with++
		out, errors := bash(t, "{ "+all+"\n} > /dev/null\nwait; echo CALLS; cat calls", stands) // a forwarded port may answer late
		for _, wrong := range []string{"unbound variable", "syntax error", "command not found", "unexpected"} {
			assert.NotContains(t, errors, wrong, page)
		}
		_, calls, _ := strings.Cut(out, "CALLS\n")
		for call := range strings.Lines(calls) {
			assert.Regexp(t, `^kubectl (--namespace models|-n (otelcol-vllm|kube-system|gpu-operator)|get pods -A|drain) `, call, page)
		}
		if at := ending.FindStringIndex(all); at != nil {
			ends++
			assert.Contains(t, all[:at[0]], `evidence "$POD"`, "%s ends a pod before its logs are saved", page)
		}
	}
	assert.Greater(t, with, 30)
	assert.Greater(t, ends, 10)
}

// vllmctl accepts what the page of an unreachable server gives it, and finds the server.
func TestTheCheckOfARunbookFindsTheServer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "vllmctl")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, root+"/cmd/vllmctl").CombinedOutput()
	require.NoError(t, err, string(built))
	server, err := vllmsim.New(vllmsim.Config{Dialect: "v1", Version: "0.20.0"})
	require.NoError(t, err)
	web := httptest.NewServer(server.Targets()[0])
	defer web.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(web.URL, "http://"), ":")
	var check string
	for _, block := range commands(t, "unreachable") {
		if strings.Contains(block, "/vllmctl ") {
			check = block
		}
	}
	require.NotEmpty(t, check)
	out, errors := bash(t, strings.Replace(commands(t, "unreachable")[0], "PORT=8000", "PORT="+port, 1)+check, map[string]string{
		// Where the real one enters the collector's pod, this one stays here.
		"kubectl": `case "$*" in *podIP*) echo -n 127.0.0.1;; *) while [ "$1" != /vllmctl ]; do shift; done; shift; ` + program + ` "$@";; esac`,
	})
	assert.Contains(t, out, "127.0.0.1:"+port, errors)
	assert.Contains(t, out, "0.20.0", errors)
}

// What is asked after an end finds the line with the reason, in the log of the process before as well, the arguments of
// the last two revisions, and who sends how much: not a warning of the start, and not an older revision.
func TestTheCommandsFindWhatEndedAServerAndWhoSends(t *testing.T) {
	log := t.TempDir() + "/log"
	require.NoError(t, os.WriteFile(log, []byte(`2026-11-30T03:41:08.1Z (APIServer pid=9) WARNING Few files are allowed: expect `+"`OSError: [Errno 24]`"+` later.
2026-11-30T03:41:58.2Z (APIServer pid=9) INFO:     10.0.0.9:4711 - "POST /v1/completions HTTP/1.1" 200 OK
2026-11-30T03:41:59.2Z (APIServer pid=9) INFO:     10.0.0.9:4712 - "POST /v1/completions HTTP/1.1" 200 OK
2026-11-30T03:42:08.1Z INFO:     fd00::7:80 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request
2026-11-30T03:43:08.1Z (EngineCore pid=10) INFO No available shared memory broadcast block found in 60 seconds.
2026-11-30T03:44:08.1Z (EngineCore pid=10) ERROR TimeoutError: RPC call to sample timed out.
`), 0o600))
	stand := map[string]string{"kubectl": `case "$*" in
*--previous*) printf 'models.ValidationError: 1 error\n  Value error, too long for this model\nserve: error: no such argument\n';;
*" logs "*) cat ` + log + `;;
*--revision=*) echo "arguments of ${@: -1}";;
*"rollout history"*) printf 'deployment.apps/chat\nREVISION  CHANGE-CAUSE\n2 <none>\n9 <none>\n10 6 replicas\n';;
esac`}
	all := commands(t, "unreachable")
	out, errors := bash(t, strings.Join(all, "\n"), stand)
	for _, found := range []string{"ValidationError", "too long for this model", "no such argument", "broadcast block", "RPC call to sample", "of --revision=9\n", "of --revision=10\n"} {
		assert.Contains(t, out, found, errors)
	}
	assert.NotContains(t, out, "Errno 24")
	assert.NotContains(t, out, "--revision=2")
	out, errors = bash(t, strings.Join(commands(t, "demand_exceeds_capacity")[:2], ""), stand)
	assert.Regexp(t, `^ *2 2026-11-30T03:41 10\.0\.0\.9 /v1/completions\n *1 2026-11-30T03:42 fd00::7 /v1/chat/completions\n$`, out, errors)
}
