package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volume is the folder of a volume on this machine. Those of claims and of the node outlive the pod.
func (p *pod) volume(name string) (string, error) {
	for _, volume := range p.object.Spec.Volumes {
		switch {
		case volume.Name != name:
		case volume.PersistentVolumeClaim != nil:
			return filepath.Join(p.node.cluster.dir, "claims", p.object.Namespace, volume.PersistentVolumeClaim.ClaimName), nil
		case volume.HostPath != nil:
			return p.node.folder("host", volume.HostPath.Path), nil
		default:
			return p.folder("volumes", name), nil
		}
	}
	return "", fmt.Errorf("the pod has no volume %s", name)
}

// writeVolumes makes the folders of the volumes. Owners and modes are those of a kubelet.
func (p *pod) writeVolumes() error {
	if len(p.object.Spec.InitContainers) > 0 {
		return errors.New("the stand-in for a node runs no init containers")
	}
	for _, volume := range p.object.Spec.Volumes {
		folder, err := p.volume(volume.Name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		switch {
		case volume.EmptyDir != nil:
			err = os.Chmod(folder, 0o777) //nolint:gosec // as a kubelet does
		case volume.HostPath != nil:
			continue
		case volume.PersistentVolumeClaim != nil:
			_, err = p.node.cluster.Client.CoreV1().PersistentVolumeClaims(p.object.Namespace).Get(p.ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		default:
			err = p.writeProjected(folder, projected(volume.VolumeSource))
		}
		if err == nil {
			err = p.own(folder)
		}
		if err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	return nil
}

// writeData writes all keys of a ConfigMap or Secret, or those that the items name.
func (p *pod) writeData(folder, kind, name string, items []corev1.KeyToPath, optional *bool) error {
	all, err := p.data(p.ctx, kind, name, optional)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for key := range all {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		content, there := all[item.Key]
		if !there {
			if optional != nil && *optional {
				continue
			}
			return fmt.Errorf("%s %s has no key %s", kind, name, item.Key)
		}
		if err := write(filepath.Join(folder, item.Path), content); err != nil {
			return err
		}
	}
	return nil
}

// projected is a volume as one that has a single source, which means the same.
func projected(volume corev1.VolumeSource) *corev1.ProjectedVolumeSource {
	one := corev1.VolumeProjection{}
	switch {
	case volume.Projected != nil:
		return volume.Projected
	case volume.ConfigMap != nil:
		one.ConfigMap = &corev1.ConfigMapProjection{
			LocalObjectReference: volume.ConfigMap.LocalObjectReference, Items: volume.ConfigMap.Items, Optional: volume.ConfigMap.Optional,
		}
	case volume.Secret != nil:
		one.Secret = &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: volume.Secret.SecretName}, Items: volume.Secret.Items, Optional: volume.Secret.Optional,
		}
	}
	return &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{one}}
}

func (p *pod) writeProjected(folder string, projected *corev1.ProjectedVolumeSource) error {
	for _, source := range projected.Sources {
		err := errors.New("the stand-in for a node has no such kind of volume")
		switch {
		case source.ServiceAccountToken != nil:
			err = p.writeToken(folder, source.ServiceAccountToken)
		case source.ConfigMap != nil:
			err = p.writeData(folder, "ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			err = p.writeData(folder, "Secret", source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			for _, item := range source.DownwardAPI.Items {
				var text string
				if err = errNoField; item.FieldRef != nil {
					text, err = p.field(item.FieldRef.FieldPath)
				}
				if err == nil {
					err = write(filepath.Join(folder, item.Path), text)
				}
				if err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeToken writes a token of the pod's account, which the API server makes for this pod.
func (p *pod) writeToken(folder string, source *corev1.ServiceAccountTokenProjection) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.object.Name, UID: p.object.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	token, err := p.node.cluster.Client.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(p.ctx, p.object.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// A kubelet gives it to the user of the containers; here all may read it.
	return write(filepath.Join(folder, source.Path), token.Status.Token)
}

// own gives a volume to the group that the pod names for that.
func (p *pod) own(folder string) error {
	security := p.object.Spec.SecurityContext
	if security == nil || security.FSGroup == nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode() | 0o060
		if entry.IsDir() {
			mode |= 0o010 | fs.ModeSetgid
		}
		return errors.Join(os.Lchown(path, -1, int(*security.FSGroup)), os.Chmod(path, mode)) //nolint:gosec // the files of a test
	})
}

// write writes a file of a volume. All may read it, whatever mode the pod says.
func write(name, content string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644), os.Chmod(name, 0o644)) //nolint:gosec // see above; and whatever the umask is
}
