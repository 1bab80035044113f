package kubernetes

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
		case *policyv1.PodDisruptionBudget:
			say(!c.selectsPods(o.Namespace, o.Spec.Selector), "selects no pod")
			say(o.Spec.MaxUnavailable == nil || o.Spec.MaxUnavailable.IntValue() != 1 || o.Spec.MinAvailable != nil,
				"does not let nodes be drained one collector at a time")
		case *corev1.Service:
			say(!c.selectsPods(o.Namespace, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}), "selects no pod")
		case *podMonitor:
			say(!c.selectsPods(o.Namespace, &o.Spec.Selector), "selects no pod")
			for _, endpoint := range o.Spec.PodMetricsEndpoints {
				// The metrics of servers have a port only where nothing sends them.
				say(endpoint.Port != "vllm" && !c.hasPort(endpoint.Port), "no container has the port %s", endpoint.Port)
				say(endpoint.HonorLabels != (endpoint.Port == "vllm"), "job and instance of %s are wrong", endpoint.Port)
				say(endpoint.Interval == "", "no interval for %s", endpoint.Port)
			}
		case *prometheusRule:
			say(len(o.Spec.Groups) == 0, "has no rules")
		case *appsv1.StatefulSet:
			service, ok := index[key("Service", o.Namespace, o.Spec.ServiceName)].(*corev1.Service)
			say(!ok || service.Spec.ClusterIP != corev1.ClusterIPNone, "no headless Service %s", o.Spec.ServiceName)
			say(!slices.ContainsFunc(c, func(other runtime.Object) bool {
				budget, ok := other.(*policyv1.PodDisruptionBudget)
				return ok && budget.Namespace == o.Namespace && labelsMatch(budget.Spec.Selector, o.Spec.Template.Labels)
			}), "no PodDisruptionBudget")
			say(o.Spec.PodManagementPolicy != appsv1.ParallelPodManagement, "one collector that is not ready holds up the others")
		case *networkingv1.NetworkPolicy:
			say(!c.selectsPods(o.Namespace, &o.Spec.PodSelector), "selects no pod")
			say(!slices.Equal(o.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}), "does not hold for both directions")
			lets := slices.ContainsFunc(o.Spec.Ingress, letsIn)
			say(lets, "lets others in")
			let := map[int]int{}
			for _, rule := range o.Spec.Ingress {
				for _, port := range rule.Ports {
					let[port.Port.IntValue()]++
				}
			}
			say(!lets && let[8888] != 1, "does not let Prometheus read the collector's own metrics")
			say(!lets && (let[55690] == 1) != c.hasPort("fleet"), "does not let in who asks vllm_fleet, or lets in whom nobody answers")
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

func labelsMatch(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

// selectsPods reports whether a selector of a namespace selects pods of a workload.
func (c cluster) selectsPods(namespace string, selector *metav1.LabelSelector) bool {
	return slices.ContainsFunc(c.workloads(), func(w workload) bool {
		return w.namespace == namespace && labelsMatch(selector, w.template.Labels)
	})
}

// hasPort reports whether a container of ours has a port with this name.
func (c cluster) hasPort(name string) bool {
	return slices.ContainsFunc(c.workloads(), func(w workload) bool {
		return slices.ContainsFunc(w.ours(), func(container corev1.Container) bool {
			return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
		})
	})
}

// letsIn reports whether a rule lets in more than one namespace to metrics or to vllm_fleet.
func letsIn(rule networkingv1.NetworkPolicyIngressRule) bool {
	other := slices.ContainsFunc(rule.Ports, func(port networkingv1.NetworkPolicyPort) bool {
		return !slices.Contains([]int{8888, 9464, 55690}, port.Port.IntValue())
	})
	if other || len(rule.Ports) == 0 || len(rule.From) != 1 {
		return true
	}
	from := rule.From[0]
	return from.IPBlock != nil || from.NamespaceSelector == nil || from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == ""
}

// least checks that a role grants reading, and only what is named.
func least(rules []rbacv1.PolicyRule, say func(bool, string, ...any)) {
	say(len(rules) == 0, "grants nothing")
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			say(!slices.Contains([]string{"get", "list", "watch"}, verb), "grants the verb %s", verb)
		}
		for _, resource := range rule.Resources {
			say(resource != "pods" && resource != "inferencepools", "grants the resource %s", resource)
		}
		for _, url := range rule.NonResourceURLs {
			say(url != "/metrics", "grants the URL %s", url)
		}
	}
}
