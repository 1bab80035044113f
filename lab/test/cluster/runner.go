package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const (
	// firstPause is the time before the second restart, and longestPause the most: those of a kubelet are ten
	// seconds and five minutes. The first restart is at once.
	firstPause, longestPause = time.Second, time.Minute
)

// runner runs one container of a pod again and again.
type runner struct {
	pod  *pod
	spec *corev1.Container
	log  collector.Log

	mu             sync.Mutex
	now, last      corev1.ContainerState
	restarts       int32
	started, ready bool
	running        *instance
	env            map[string]string
}

// instance is one run of a container.
type instance struct {
	ended <-chan struct{}
	// stop asks it to end within a time and waits, kill ends it as a crash would, and code is its exit status then.
	stop func(time.Duration)
	kill func()
	code func() int32
	// pid is 0 for a function.
	pid int
}

func newRunner(p *pod, spec *corev1.Container) *runner {
	r := &runner{pod: p, spec: spec}
	r.now.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	return r
}

// again reports whether the container runs again after an exit status.
func (r *runner) again(code int32) bool {
	policy := r.pod.object.Spec.RestartPolicy
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

// over reports whether the container has ended and does not run again.
func (r *runner) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.Terminated != nil && !r.again(r.now.Terminated.ExitCode)
}

func (r *runner) status() corev1.ContainerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	started := r.started
	return corev1.ContainerStatus{
		Name: r.spec.Name, Image: r.spec.Image, ImageID: r.spec.Image, ContainerID: "process://" + string(r.pod.object.UID) + "/" + r.spec.Name,
		State: r.now, LastTerminationState: r.last, RestartCount: r.restarts, Ready: r.ready, Started: &started,
	}
}

// change changes the state and publishes it.
func (r *runner) change(how func()) {
	r.mu.Lock()
	how()
	r.mu.Unlock()
	r.pod.publish()
}

// wait says why the container does not run, where that is news.
func (r *runner) wait(reason, message string) {
	if now := r.status().State.Waiting; now == nil || now.Message != message {
		r.change(func() {
			r.now = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		})
	}
}

// run runs the container until it is over or the pod has to end.
func (r *runner) run() {
	ctx, pauseNext := r.pod.ctx, time.Duration(0)
	for ctx.Err() == nil {
		one, err := r.begin(ctx)
		if err != nil {
			reason := "CreateContainerConfigError"
			if errors.Is(err, errNoImage) {
				reason = "ErrImagePull"
			}
			r.wait(reason, err.Error())
			if !pause(ctx, time.Second) {
				return
			}
			continue
		}
		began := metav1.Now()
		probing, endProbes := context.WithCancel(ctx)
		r.change(func() {
			r.now, r.running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}, one
			r.started, r.ready = r.spec.StartupProbe == nil, r.spec.StartupProbe == nil && r.spec.ReadinessProbe == nil
		})
		var probes sync.WaitGroup
		probes.Go(func() { r.probe(probing, one) })
		select {
		case <-one.ended:
		case <-ctx.Done():
			one.stop(r.pod.limit())
		}
		endProbes()
		probes.Wait()
		code := one.code()
		end := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", StartedAt: began, FinishedAt: metav1.Now()}
		if code != 0 {
			end.Reason = "Error"
		}
		r.change(func() {
			r.now, r.running = corev1.ContainerState{Terminated: end}, nil
			r.started, r.ready = false, false
		})
		if ctx.Err() != nil || !r.again(code) {
			return
		}
		r.mu.Lock()
		r.last = corev1.ContainerState{Terminated: end}
		r.mu.Unlock()
		if pauseNext > 0 {
			r.wait("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", pauseNext))
			if !pause(ctx, pauseNext) {
				return
			}
		}
		pauseNext = min(max(firstPause, 2*pauseNext), longestPause)
		r.mu.Lock()
		r.restarts++
		r.mu.Unlock()
	}
}

var errNoImage = errors.New("the stand-in for a node has no such image")

// begin starts the container.
func (r *runner) begin(ctx context.Context) (*instance, error) {
	image, ok := r.pod.node.images[r.spec.Image]
	if !ok {
		return nil, fmt.Errorf("%w: %s", errNoImage, r.spec.Image)
	}
	env, err := r.pod.environment(ctx, r.spec)
	if err != nil {
		return nil, err
	}
	argv, args := r.spec.Command, r.spec.Args
	if len(argv) == 0 {
		argv = image.Entrypoint
		if len(args) == 0 {
			args = image.Args
		}
	}
	argv = expandAll(slices.Concat(argv, args), env)
	r.mu.Lock()
	r.env = env
	r.mu.Unlock()
	if image.Serve != nil {
		return r.beginFunction(image, argv, env), nil
	}
	if len(argv) == 0 {
		return nil, errors.New("neither the container nor its image has a command")
	}
	script, err := r.fileSystem(image)
	if err != nil {
		return nil, err
	}
	user, groups, err := r.identity(image)
	if err != nil {
		return nil, err
	}
	script += "exec chroot --userspec=" + user + " --groups=" + groups + ` "$0" "$@"` + "\n"
	command := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", append([]string{"-euc", script, r.root()}, argv...)...) //nolint:gosec // what the test's pod says
	isolate(command)
	command.Env, command.Stdout, command.Stderr = variables(env), &r.log, &r.log
	p, err := r.pod.node.cluster.start(command)
	if err != nil {
		return nil, err
	}
	// It has begun when it is in its file system: before, a probe could not enter that.
	pid := command.Process.Pid
	for inside := ""; inside != r.root() && !over(p.ended) && ctx.Err() == nil; time.Sleep(look / 20) {
		inside, _ = os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	}
	return &instance{ended: p.ended, stop: p.stop, kill: p.kill, code: p.code, pid: pid}, nil
}

// beginFunction runs a function of the test.
func (r *runner) beginFunction(image Image, argv []string, env map[string]string) *instance {
	ctx, cancel := context.WithCancelCause(context.Background())
	ended, code, errKilled := make(chan struct{}), int32(0), errors.New("killed")
	go func() {
		defer close(ended)
		err := image.Serve(ctx, Container{Pod: r.pod.object, IP: r.pod.object.Status.PodIP, Args: argv, Env: env, Log: &r.log})
		switch {
		case errors.Is(context.Cause(ctx), errKilled):
			code = 137
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(&r.log, err)
			code = 1
		}
	}()
	return &instance{
		ended: ended, kill: func() { cancel(errKilled) }, code: func() int32 { return code },
		stop: func(time.Duration) { cancel(nil); <-ended },
	}
}

// root is where this machine has the file system of the container.
func (r *runner) root() string { return r.pod.folder("roots", r.spec.Name) }

// fileSystem is a script that makes the container's file system, in a mount namespace that ends with it.
func (r *runner) fileSystem(image Image) (string, error) {
	if err := os.MkdirAll(r.root(), 0o755); err != nil {
		return "", err
	}
	script := &strings.Builder{}
	fmt.Fprintf(script, "mount --make-rprivate /\necho '%s' > /proc/sys/kernel/hostname\nmount -t tmpfs -o mode=755 tmpfs \"$0\"\n", r.pod.object.Name)
	script.WriteString("mkdir \"$0/proc\"\nmount -t proc proc \"$0/proc\"\n")
	bind := func(from, to string, readOnly bool) {
		to = r.root() + filepath.Clean("/"+to)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			fmt.Fprintf(script, "mkdir -p '%s'\n", to)
		} else {
			fmt.Fprintf(script, "mkdir -p '%s'; : > '%s'\n", filepath.Dir(to), to)
		}
		fmt.Fprintf(script, "mount --rbind '%s' '%s'\n", from, to)
		if readOnly {
			fmt.Fprintf(script, "mount -o remount,bind,ro '%s'\n", to)
		}
	}
	bind("/dev", "/dev", false)
	bind("/sys", "/sys", true)
	for _, to := range slices.Sorted(maps.Keys(image.Files)) {
		bind(image.Files[to], to, true)
	}
	mounts := slices.Clone(r.spec.VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, mount := range mounts {
		from, err := r.pod.volume(mount.Name)
		if err != nil {
			return "", err
		}
		bind(filepath.Join(from, mount.SubPath), mount.MountPath, mount.ReadOnly)
	}
	if context := r.spec.SecurityContext; context != nil && context.ReadOnlyRootFilesystem != nil && *context.ReadOnlyRootFilesystem {
		script.WriteString("mount -o remount,ro \"$0\"\n")
	}
	return script.String(), nil
}

// identity is the user with the group, and the further groups, as chroot takes them.
func (r *runner) identity(image Image) (user, groups string, err error) {
	id, group, root := image.User, image.User, true
	of := func(u, g *int64, nonRoot *bool) {
		if u != nil {
			id, group = *u, 0
		}
		if g != nil {
			group = *g
		}
		if nonRoot != nil {
			root = !*nonRoot
		}
	}
	if all := r.pod.object.Spec.SecurityContext; all != nil {
		of(all.RunAsUser, all.RunAsGroup, all.RunAsNonRoot)
		if all.FSGroup != nil {
			groups = strconv.FormatInt(*all.FSGroup, 10)
		}
	}
	if own := r.spec.SecurityContext; own != nil {
		of(own.RunAsUser, own.RunAsGroup, own.RunAsNonRoot)
	}
	if !root && id == 0 {
		return "", "", errors.New("container has runAsNonRoot and image will run as root")
	}
	return fmt.Sprintf("+%d:+%d", id, group), groups, nil
}

// exec runs a command in the container, as its user.
func (r *runner) exec(ctx context.Context, argv []string) (string, error) {
	r.mu.Lock()
	one, env := r.running, r.env
	r.mu.Unlock()
	if one == nil || one.pid == 0 {
		return "", fmt.Errorf("%s: %w", r.spec.Name, errNotHere)
	}
	user, groups, err := r.identity(r.pod.node.images[r.spec.Image])
	if err != nil {
		return "", err
	}
	enter := []string{
		"-t", strconv.Itoa(one.pid), "-m", "-u", "-p", "/bin/sh", "-c",
		`exec chroot --userspec=` + user + ` --groups=` + groups + ` "$0" "$@"`, r.root(),
	}
	command := exec.CommandContext(ctx, "nsenter", append(enter, argv...)...) //nolint:gosec // what the test says
	command.Env, command.WaitDelay = variables(env), time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}

// crash kills what runs.
func (r *runner) crash() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return errNotHere
	}
	r.running.kill()
	return nil
}

func variables(env map[string]string) []string {
	var out []string
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	return out
}
