package cluster

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe follows the probes of one run of a container until ctx ends.
func (r *runner) probe(ctx context.Context, one *instance) {
	if r.spec.StartupProbe != nil {
		started := false
		r.follow(ctx, r.spec.StartupProbe, func(ok bool) bool {
			started = ok
			return false
		})
		if !started {
			if ctx.Err() == nil {
				one.stop(r.pod.limit())
			}
			return
		}
		r.change(func() { r.started, r.ready = true, r.spec.ReadinessProbe == nil })
	}
	var both sync.WaitGroup
	if r.spec.ReadinessProbe != nil {
		both.Go(func() {
			r.follow(ctx, r.spec.ReadinessProbe, func(ok bool) bool {
				r.change(func() { r.ready = ok })
				return true
			})
		})
	}
	if r.spec.LivenessProbe != nil {
		both.Go(func() {
			r.follow(ctx, r.spec.LivenessProbe, func(ok bool) bool {
				if !ok {
					one.stop(r.pod.limit())
				}
				return ok
			})
		})
	}
	both.Wait()
}

// follow asks a probe again and again, and passes each verdict of enough answers, until that returns false.
func (r *runner) follow(ctx context.Context, p *corev1.Probe, verdict func(ok bool) bool) {
	if !pause(ctx, time.Duration(p.InitialDelaySeconds)*time.Second) {
		return
	}
	var same int32
	var last bool
	for {
		ok := r.ask(ctx, p)
		if ctx.Err() != nil {
			return
		}
		same++
		if ok != last {
			same, last = 1, ok
		}
		enough := max(1, p.FailureThreshold)
		if ok {
			enough = max(1, p.SuccessThreshold)
		}
		if same == enough && !verdict(ok) || !pause(ctx, time.Duration(max(1, p.PeriodSeconds))*time.Second) {
			return
		}
	}
}

// ask asks a probe once. One of TCP, gRPC or HTTPS is never answered.
func (r *runner) ask(ctx context.Context, p *corev1.Probe) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, p.TimeoutSeconds))*time.Second)
	defer cancel()
	switch {
	case p.Exec != nil:
		_, err := r.exec(ctx, p.Exec.Command)
		return err == nil
	case p.HTTPGet != nil && p.HTTPGet.Scheme == corev1.URISchemeHTTP:
		path := "http://" + r.target(p.HTTPGet.Host, p.HTTPGet.Port) + "/" + strings.TrimPrefix(p.HTTPGet.Path, "/")
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return false
		}
		request.Close = true
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode >= 200 && response.StatusCode < 400
	}
	return false
}

// target is the address of a probe. A port may be the name of one.
func (r *runner) target(host string, port intstr.IntOrString) string {
	number := port.IntValue()
	for _, named := range r.spec.Ports {
		if port.Type == intstr.String && named.Name == port.StrVal {
			number = int(named.ContainerPort)
		}
	}
	if host == "" {
		host = r.pod.object.Status.PodIP
	}
	return net.JoinHostPort(host, strconv.Itoa(number))
}
