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
		case volume.ConfigMap != nil:
			err = p.writeData(folder, "ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Items, volume.ConfigMap.DefaultMode, volume.ConfigMap.Optional)
		case volume.Secret != nil:
			err = p.writeData(folder, "Secret", volume.Secret.SecretName, volume.Secret.Items, volume.Secret.DefaultMode, volume.Secret.Optional)
		case volume.DownwardAPI != nil:
			err = p.writeFields(folder, volume.DownwardAPI.Items, volume.DownwardAPI.DefaultMode)
		case volume.Projected != nil:
			err = p.writeProjected(folder, volume.Projected)
		default:
			err = errors.New("the stand-in for a node has no such kind of volume")
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
func (p *pod) writeData(folder, kind, name string, items []corev1.KeyToPath, mode *int32, optional *bool) error {
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
		if item.Mode == nil {
			item.Mode = mode
		}
		if err := write(filepath.Join(folder, item.Path), []byte(content), item.Mode); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) writeFields(folder string, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return errors.New("the stand-in for a node writes only fields of the pod")
		}
		text, err := p.field(item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(folder, item.Path), []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) writeProjected(folder string, projected *corev1.ProjectedVolumeSource) error {
	for _, source := range projected.Sources {
		var err error
		switch {
		case source.ServiceAccountToken != nil:
			err = p.writeToken(folder, source.ServiceAccountToken)
		case source.ConfigMap != nil:
			err = p.writeData(folder, "ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items, projected.DefaultMode, source.ConfigMap.Optional)
		case source.Secret != nil:
			err = p.writeData(folder, "Secret", source.Secret.Name, source.Secret.Items, projected.DefaultMode, source.Secret.Optional)
		case source.DownwardAPI != nil:
			err = p.writeFields(folder, source.DownwardAPI.Items, projected.DefaultMode)
		default:
			err = errors.New("the stand-in for a node has no such projected source")
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
	return write(filepath.Join(folder, source.Path), []byte(token.Status.Token), nil)
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
		return errors.Join(os.Lchown(path, -1, int(*security.FSGroup)), os.Chmod(path, mode))
	})
}

// write writes a file of a volume.
func write(name string, content []byte, mode *int32) error {
	bits := os.FileMode(0o644)
	if mode != nil {
		bits = os.FileMode(*mode) //nolint:gosec // a mode of nine bits
	}
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, bits), os.Chmod(name, bits)) // whatever the umask is
}
