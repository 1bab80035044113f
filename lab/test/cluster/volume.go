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

// volume is the folder of a volume on this machine. That of a claim outlives the pod.
func (p *pod) volume(name string) string {
	for _, volume := range p.object.Spec.Volumes {
		if claim := volume.PersistentVolumeClaim; volume.Name == name && claim != nil {
			return filepath.Join(p.node.cluster.dir, "claims", p.object.Namespace, claim.ClaimName)
		}
	}
	return filepath.Join(p.folder(), "volumes", name)
}

// writeVolumes makes the folders of the volumes. Owners and modes are those of a kubelet.
func (p *pod) writeVolumes() error {
	if spec := p.object.Spec; len(spec.InitContainers) > 0 || spec.RestartPolicy != corev1.RestartPolicyAlways || spec.HostNetwork {
		return errors.New("the stand-in for a node runs no init containers, no pods that end and none with the network of the host")
	}
	for _, volume := range p.object.Spec.Volumes {
		folder := p.volume(volume.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		err := errNoVolume
		switch {
		case volume.EmptyDir != nil:
			err = os.Chmod(folder, 0o777) //nolint:gosec // as a kubelet does
		case volume.PersistentVolumeClaim != nil:
			_, err = p.node.cluster.Client.CoreV1().PersistentVolumeClaims(p.object.Namespace).Get(p.ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		case volume.ConfigMap != nil:
			err = p.writeData(folder, "ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Items, volume.ConfigMap.Optional)
		case volume.Secret != nil:
			err = p.writeData(folder, "Secret", volume.Secret.SecretName, volume.Secret.Items, volume.Secret.Optional)
		case volume.Projected != nil:
			err = p.writeProjected(folder, volume.Projected)
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

var errNoVolume = errors.New("the stand-in for a node has no such kind of volume")

func (p *pod) writeProjected(folder string, projected *corev1.ProjectedVolumeSource) error {
	for _, source := range projected.Sources {
		err := errNoVolume
		switch {
		case source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == "":
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
