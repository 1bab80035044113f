package check

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Answer is what Kubernetes says about one permission. It is plain data.
type Answer struct {
	// Group and Resource are what it is about, and Namespace where; empty for the cluster.
	Group, Resource, Namespace string
	// Choice is the same for permissions of which one is enough; 0 for all others.
	Choice int
	// Denied are the verbs that are not allowed.
	Denied []string
	// Failed is why it could not be asked; empty if it could.
	Failed string
}

// verbs are what a discovery does with a resource.
var verbs = []string{"list", "watch"}

// mostKubernetes is how long the API server may take for all answers.
const mostKubernetes = 5 * time.Second

// askKubernetes asks whether the discoveries of the configuration are allowed, with a
// SelfSubjectAccessReview for each verb. Each account may send these.
func askKubernetes(ctx context.Context, file *configfile.File, kubeconfig string) []Answer {
	ctx, cancel := context.WithTimeout(ctx, mostKubernetes)
	defer cancel()
	var out []Answer
	asked := map[string]bool{}
	for i := range file.Receivers {
		permissions := file.Receivers[i].Config.Discovery.Permissions()
		for j := range permissions {
			p := &permissions[j]
			key := p.Group + "/" + p.Resource + "/" + p.Namespace
			if asked[key] {
				continue
			}
			asked[key] = true
			out = append(out, askPermission(ctx, p, kubeconfig))
		}
	}
	return out
}

func askPermission(ctx context.Context, p *probe.Permission, kubeconfig string) Answer {
	out := Answer{Group: p.Group, Resource: p.Resource, Namespace: p.Namespace, Choice: p.Choice}
	var (
		access *rest.Config
		closes = func() {}
		err    error
	)
	if kubeconfig != "" {
		access, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		access, closes, err = p.Access()
	}
	if err == nil {
		defer closes()
		err = out.ask(ctx, access)
	}
	if err != nil {
		out.Failed = probe.Printable(err.Error())
	}
	return out
}

func (a *Answer) ask(ctx context.Context, access *rest.Config) error {
	access = rest.CopyConfig(access)
	access.ContentType = "application/json"
	c, err := client.NewForConfig(access)
	if err != nil {
		return err
	}
	for _, verb := range verbs {
		review, err := c.SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{
			Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
				Group: a.Group, Resource: a.Resource, Namespace: a.Namespace, Verb: verb,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !review.Status.Allowed {
			a.Denied = append(a.Denied, verb)
		}
	}
	return nil
}

// words are what an answer is about.
func (a *Answer) words() string {
	what := a.Resource
	if a.Group != "" {
		what += "." + a.Group
	}
	if a.Namespace == "" {
		return what + " in the whole cluster"
	}
	return fmt.Sprintf("%s in the namespace %q", what, a.Namespace)
}

// judgeAnswers judges what Kubernetes says.
func judgeAnswers(f *findings, answers []Answer) {
	enough := map[string]bool{}
	for i := range answers {
		a := &answers[i]
		if a.Choice != 0 && a.Failed == "" && len(a.Denied) == 0 {
			enough[fmt.Sprint(a.Choice, a.Namespace)] = true
		}
	}
	failures := map[string]bool{}
	for i := range answers {
		a := &answers[i]
		switch {
		case a.Failed != "":
			if !failures[a.Failed] {
				f.add(CodeKubeUnknown, "Kubernetes did not answer: "+a.Failed+".")
			}
			failures[a.Failed] = true
		case len(a.Denied) == 0:
			f.pass(Kubernetes, "%s can be listed and watched", a.words())
		case !enough[fmt.Sprint(a.Choice, a.Namespace)]:
			f.add(CodeKubeDenied, fmt.Sprintf("This account is not allowed to %s %s.", strings.Join(a.Denied, " and "), a.words()),
				fmt.Sprintf("apiGroups: [%q], resources: [%q], verbs: [get, list, watch]", a.Group, a.Resource))
		}
	}
}
