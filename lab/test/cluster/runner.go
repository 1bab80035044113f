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
}

// instance is one run of a container.
type instance struct {
	ended <-chan struct{}
	// stop asks it to end within a time and waits, and code is its exit status then.
	stop func(time.Duration)
	code func() int32
	// pid is 0 for a function.
	pid int
	env []string
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

// enter puts the container into another state.
func (r *runner) enter(state corev1.ContainerState) {
	if r.now.Terminated != nil {
		r.last = r.now
	}
	r.now = state
}

// wait says why the container does not run, where that is news.
func (r *runner) wait(reason, message string) {
	if now := r.status().State.Waiting; now == nil || now.Message != message {
		r.change(func() {
			r.enter(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
		})
	}
}

// run runs the container until the pod has to end.
func (r *runner) run() {
	ctx, pauseNext := r.pod.ctx, time.Duration(0)
	for restarts := int32(0); ctx.Err() == nil; {
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
			r.enter(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}})
			r.running, r.restarts = one, restarts
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
			r.enter(corev1.ContainerState{Terminated: end})
			r.running, r.started, r.ready = nil, false, false
		})
		if pauseNext > 0 && ctx.Err() == nil {
			r.wait("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", pauseNext))
			if !pause(ctx, pauseNext) {
				return
			}
		}
		pauseNext = min(max(firstPause, 2*pauseNext), longestPause)
		restarts++
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
	argv := r.spec.Command
	if len(argv) == 0 {
		argv = image.Entrypoint
	}
	argv = slices.Concat(argv, r.spec.Args)
	for i := range argv {
		argv[i] = expand(argv[i], env)
	}
	if image.Serve != nil {
		return r.beginFunction(image, argv), nil
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
	for name, value := range env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdout, command.Stderr = &r.log, &r.log
	p, err := r.pod.node.cluster.start(command)
	if err != nil {
		return nil, err
	}
	// It has begun when it is in its file system: before, a probe could not enter that.
	pid := command.Process.Pid
	for inside := ""; inside != r.root() && !over(p.ended) && ctx.Err() == nil; time.Sleep(look / 20) {
		inside, _ = os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	}
	return &instance{ended: p.ended, stop: p.stop, code: p.code, pid: pid, env: command.Env}, nil
}

// beginFunction runs a function of the test.
func (r *runner) beginFunction(image Image, argv []string) *instance {
	ctx, cancel := context.WithCancel(context.Background())
	ended, code := make(chan struct{}), int32(0)
	go func() {
		defer close(ended)
		if err := image.Serve(ctx, Container{IP: r.pod.object.Status.PodIP, Args: argv}); err != nil && ctx.Err() == nil {
			fmt.Fprintln(&r.log, err)
			code = 1
		}
	}()
	return &instance{ended: ended, code: func() int32 { return code }, stop: func(time.Duration) { cancel(); <-ended }}
}

// root is where this machine has the file system of the container.
func (r *runner) root() string { return filepath.Join(r.pod.folder(), "roots", r.spec.Name) }

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
		bind(filepath.Join(r.pod.volume(mount.Name), mount.SubPath), mount.MountPath, mount.ReadOnly)
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
	one := r.running
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
	command.Env, command.WaitDelay = one.env, time.Second
	out, err := command.CombinedOutput()
	return string(out), err
}
