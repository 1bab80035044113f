package hosted

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An engine without containers: the name of an image says what is in it.
const engine = `#!/bin/sh
echo "$*" >> "$CALLS"
case "$1 $2" in
"image inspect")
	case "$5" in
	absent) echo "no such image" >&2; exit 1 ;;
	root) echo 0 ;;
	*) echo 10001:10001 ;;
	esac
	exit ;;
"rm --force") exit ;;
esac
[ "$1" = run ] || exit 125
while [ "$1" != "$IMAGE" ]; do
	[ $# -gt 0 ] || exit 125
	shift
done
shift
case "$IMAGE $1" in
"dead "*) echo "exec format error" >&2; exit 126 ;;
"old --version") echo "otelcol-vllm version 0.1.0" ;;
*" --version") echo "otelcol-vllm version 9" ;;
*" --help") ;;
"ends "*) echo "cannot read the configuration" >&2; exit 1 ;;
"blind "*) printf 'unknown\nhealthy\n' ;;
"other "*) printf 'unknown\nhealthy\ndegraded: kv_cache_pressure\nhealthy\n' ;;
"late "*) printf 'unknown\nhealthy\ndegraded: slow_steps\n' ;;
*) printf 'unknown\nhealthy\ndegraded: slow_steps\nhealthy\n' ;;
esac
`

// Stand-ins of the programs. What the collector prints is what it reports.
const (
	collector = `#!/bin/sh
[ "$1" = --version ] && { echo "otelcol-vllm version 9"; exit; }
printf "$OUTSIDE"
`
	demo = `#!/bin/sh
while [ $# -gt 0 ]; do
	case "$1" in
	-collector) collector=$2 ;;
	-changes) changes=$2 ;;
	-config) config=$2 ;;
	esac
	shift 2
done
if [ "$IMAGE" = endless ]; then
	trap 'echo "the demo was ended" >> "$CALLS"; exit 0' TERM
	echo "the demo runs" >> "$CALLS"
	for i in $(seq 300); do sleep 0.1; done
fi
VLLM_ENDPOINT=http://127.0.0.1:1 PROMETHEUS_ADDR=127.0.0.1:2 "$collector" --config "$config" > "$changes" || {
	echo "the collector ended by itself"
	exit 1
}
`
)

const noticed = `unknown\nhealthy\ndegraded: slow_steps\nhealthy\n`

// prepare returns a run of .ci/image with stand-ins, and the file with the calls of the engine.
func prepare(t *testing.T, image, outside string) (command *exec.Cmd, calls string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the script needs a shell")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	for name, script := range map[string]string{"engine": engine, "otelcol-vllm": collector, "vllmsim": "", "demo": demo} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
	}
	calls = filepath.Join(dir, "calls")
	command = exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "image"), image)
	command.Env = append(os.Environ(), "CONTAINER_ENGINE="+filepath.Join(bin, "engine"), "BIN="+bin, "LOGS="+filepath.Join(dir, "logs"),
		"CALLS="+calls, "OUTSIDE="+outside, "CONTAINER_ENTRYPOINT=", "SIM_ADDR=", "PROMETHEUS_ADDR=", "RUN_FOR=")
	return command, calls
}

// compare runs .ci/image with stand-ins. It returns what that wrote, the calls of the engine,
// and whether it succeeded.
func compare(t *testing.T, image, outside string) (output, calls string, ok bool) {
	t.Helper()
	command, file := prepare(t, image, outside)
	out, err := command.CombinedOutput()
	return string(out), read(t, file), err == nil
}

func TestAnImageThatReportsTheSamePasses(t *testing.T) {
	t.Parallel()
	output, calls, ok := compare(t, "good", noticed)
	require.True(t, ok, output)
	assert.True(t, strings.HasSuffix(output, "the same inside and outside the image:\n    unknown\n    healthy\n    degraded: slow_steps\n    healthy\n"), output)

	var runs []string
	for line := range strings.Lines(calls) {
		if strings.HasPrefix(line, "run ") {
			runs = append(runs, line)
		}
	}
	require.Len(t, runs, 3, "the version, vllmctl, and the incident")
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, run := range runs {
		for _, part := range []string{
			"--rm ", "--pull=never ", "--network=host ", "--read-only ", "--cap-drop=ALL ", "--security-opt=no-new-privileges ",
			"--env VLLM_ENDPOINT ", "--env PROMETHEUS_ADDR ", "--volume " + here + "/examples:/examples:ro ", "--workdir=/ ",
		} {
			assert.Contains(t, run, part)
		}
	}
	assert.Contains(t, runs[1], "--entrypoint /vllmctl good --help")
	assert.Contains(t, runs[2], " good --config examples/quickstart.yaml")
	assert.Regexp(t, `(?m)^rm --force otelcol-vllm-image-\d+\n$`, calls, "the container is removed, also where the demo was killed")
}

func TestWhatIsWrongWithAnImageIsSaid(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"absent": "cannot show the image absent",
		"root":   `the image runs as "0"`,
		"dead":   "the collector in the image does not start",
		"old":    `the image has "otelcol-vllm version 0.1.0", and `,
		"ends":   "the run inside the image failed",
		"other":  "-degraded: slow_steps\n+degraded: kv_cache_pressure\n",
		"late":   " degraded: slow_steps\n-healthy\n",
		"blind":  "the processor in the image reports something else",
	} {
		t.Run(image, func(t *testing.T) {
			t.Parallel()
			output, _, ok := compare(t, image, noticed)
			assert.False(t, ok)
			assert.Contains(t, output, want)
		})
	}
}

// Both report the same, but nothing that is worth a comparison.
func TestTwoRunsThatNoticedNothingAreNotEqual(t *testing.T) {
	t.Parallel()
	output, _, ok := compare(t, "blind", `unknown\nhealthy\n`)
	assert.False(t, ok)
	assert.Contains(t, output, "did not notice the incident")
}

// Ctrl-C comes as SIGINT, which a test's child may have inherited as ignored; both take the same
// way through the script.
func TestAnInterruptEndsTheDemoAndTheContainer(t *testing.T) {
	t.Parallel()
	command, calls := prepare(t, "endless", noticed)
	require.NoError(t, command.Start())
	started := func() bool {
		content, err := os.ReadFile(calls)
		return err == nil && strings.Contains(string(content), "the demo runs")
	}
	require.Eventually(t, started, 20*time.Second, 20*time.Millisecond)

	require.NoError(t, command.Process.Signal(syscall.SIGTERM))

	var exit *exec.ExitError
	require.ErrorAs(t, command.Wait(), &exit)
	assert.Equal(t, 143, exit.ExitCode())
	assert.Regexp(t, `(?s)the demo was ended\n.*rm --force otelcol-vllm-image-\d+\n$`, read(t, calls))
}

func TestAnEngineThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "image"), "good")
	command.Env = append(os.Environ(), "CONTAINER_ENGINE=no-such-engine")
	out, err := command.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, "image: CONTAINER_ENGINE=no-such-engine is not installed\n", string(out))
}
