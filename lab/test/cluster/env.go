package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment is what a container has, as its pod says it.
func (p *pod) environment(ctx context.Context, spec *corev1.Container) (map[string]string, error) {
	host, port, err := net.SplitHostPort(p.node.cluster.Address)
	if err != nil {
		return nil, err
	}
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": p.object.Name,
		"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "KUBERNETES_SERVICE_PORT_HTTPS": port,
	}
	for _, from := range spec.EnvFrom {
		var all map[string]string
		switch {
		case from.ConfigMapRef != nil:
			all, err = p.data(ctx, "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		case from.SecretRef != nil:
			all, err = p.data(ctx, "Secret", from.SecretRef.Name, from.SecretRef.Optional)
		}
		if err != nil {
			return nil, err
		}
		for name, value := range all {
			env[from.Prefix+name] = value
		}
	}
	for _, one := range spec.Env {
		value := expand(one.Value, env)
		if one.ValueFrom != nil {
			var there bool
			if value, there, err = p.valueFrom(ctx, one.ValueFrom); err != nil {
				return nil, fmt.Errorf("%s: %w", one.Name, err)
			} else if !there {
				continue
			}
		}
		env[one.Name] = value
	}
	return env, nil
}

// valueFrom is the value that a reference has; there may be none where it is optional.
func (p *pod) valueFrom(ctx context.Context, from *corev1.EnvVarSource) (value string, there bool, err error) {
	key := func(kind, name, key string, optional *bool) (string, bool, error) {
		all, err := p.data(ctx, kind, name, optional)
		value, there := all[key]
		if err == nil && !there && (optional == nil || !*optional) {
			err = fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, p.object.Namespace, name)
		}
		return value, there, err
	}
	switch {
	case from.ConfigMapKeyRef != nil:
		return key("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
	case from.SecretKeyRef != nil:
		return key("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
	case from.FieldRef != nil:
		value, err := p.field(from.FieldRef.FieldPath)
		return value, true, err
	}
	return "", false, errNoField
}

// data is what a ConfigMap or Secret of the pod's namespace has. An optional one may be absent.
func (p *pod) data(ctx context.Context, kind, name string, optional *bool) (map[string]string, error) {
	all, err := map[string]string{}, error(nil)
	if client := p.node.cluster.Client.CoreV1(); kind == "Secret" {
		var secret *corev1.Secret
		if secret, err = client.Secrets(p.object.Namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			for key, value := range secret.Data {
				all[key] = string(value)
			}
		}
	} else {
		var configuration *corev1.ConfigMap
		if configuration, err = client.ConfigMaps(p.object.Namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			all = configuration.Data
		}
	}
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		err = nil
	}
	return all, err
}

var errNoField = errors.New("the stand-in for a node knows only fields of the pod, ConfigMaps and Secrets")

var label = regexp.MustCompile(`^metadata\.labels\['(.+)'\]$`)

// field is a field of the pod, as the downward API gives it.
func (p *pod) field(path string) (string, error) {
	if key := label.FindStringSubmatch(path); key != nil {
		return p.object.Labels[key[1]], nil
	}
	value, ok := map[string]string{
		"metadata.name": p.object.Name, "metadata.namespace": p.object.Namespace, "metadata.uid": string(p.object.UID),
		"spec.nodeName": p.object.Spec.NodeName, "spec.serviceAccountName": p.object.Spec.ServiceAccountName,
		"status.podIP": p.object.Status.PodIP,
	}[path]
	if !ok {
		return "", fmt.Errorf("%s: %w", path, errNoField)
	}
	return value, nil
}

var reference = regexp.MustCompile(`\$\$|\$\(([^)]+)\)`)

// expand replaces $(NAME) by a variable that there is, and $$ by $.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}
