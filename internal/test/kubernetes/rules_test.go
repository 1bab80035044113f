package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// given are the objects that a user's cluster already has: the namespace of the models.
var given = []string{"vllm"}

// ruleComplaints are the mistakes in namespaces, access and network policies.
func (c cluster) ruleComplaints() []string {
	var found complaints
	index := c.index()
	bound := map[string]bool{}
	for _, object := range c {
		say := func(condition bool, format string, args ...any) {
			found.add(condition, name(object)+": "+format, args...)
		}
		if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
			say(index[key("Namespace", "", accessor.GetNamespace())] == nil && !slices.Contains(given, accessor.GetNamespace()),
				"no namespace %s", accessor.GetNamespace())
		}
		bind := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
			role := key(ref.Kind, namespace, ref.Name)
			say(index[role] == nil, "no %s", role)
			bound[role] = true
			for _, s := range subjects {
				say(s.Kind != "ServiceAccount" || index[key(s.Kind, s.Namespace, s.Name)] == nil, "no subject %s", key(s.Kind, s.Namespace, s.Name))
			}
			say(len(subjects) != 1, "%d subjects", len(subjects))
		}
		switch o := object.(type) {
		case *rbacv1.Role:
			least(o.Rules, say)
		case *rbacv1.ClusterRole:
			least(o.Rules, say)
			for _, rule := range o.Rules {
				say(len(rule.Resources) > 0, "grants resources in every namespace")
			}
		case *rbacv1.RoleBinding:
			bind(o.Namespace, o.RoleRef, o.Subjects)
		case *rbacv1.ClusterRoleBinding:
			bind("", o.RoleRef, o.Subjects)
		case *networkingv1.NetworkPolicy:
			selector, err := metav1.LabelSelectorAsSelector(&o.Spec.PodSelector)
			say(err != nil || !slices.ContainsFunc(c.workloads(), func(w workload) bool {
				return w.namespace == o.Namespace && selector.Matches(labels.Set(w.template.Labels))
			}), "selects no pod")
			say(!slices.Equal(o.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) || len(o.Spec.Ingress) > 0,
				"lets others in")
			for _, rule := range o.Spec.Egress {
				say(len(rule.Ports) == 0, "lets out to any port")
			}
		}
	}
	for _, object := range c {
		switch o := object.(type) {
		case *rbacv1.Role, *rbacv1.ClusterRole:
			found.add(!bound[name(o)], "%s: no account has this role", name(o))
		case *corev1.ServiceAccount:
			found.add(o.AutomountServiceAccountToken == nil || *o.AutomountServiceAccountToken, "%s: gives its token to any pod", name(o))
		}
	}
	return found
}

// least checks that a role grants reading, and only what is named.
func least(rules []rbacv1.PolicyRule, say func(bool, string, ...any)) {
	say(len(rules) == 0, "grants nothing")
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			say(!slices.Contains([]string{"get", "list", "watch"}, verb), "grants the verb %s", verb)
		}
		for _, resource := range rule.Resources {
			say(resource != "pods", "grants the resource %s", resource)
		}
		for _, url := range rule.NonResourceURLs {
			say(url != "/metrics", "grants the URL %s", url)
		}
	}
}
