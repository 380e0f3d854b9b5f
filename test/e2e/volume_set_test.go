package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// serveNFS installs a fake mount.nfs on the node, which bind-mounts a directory of the node.
func serveNFS(t *testing.T, node *bed.Box) {
	t.Helper()
	inNode(t, node, `mkdir -p /run/helper/upper /run/helper/work &&
		mount -t overlay -o lowerdir=/usr/sbin,upperdir=/run/helper/upper,workdir=/run/helper/work overlay /usr/sbin &&
		printf '#!/bin/sh\nexec mount --bind "${1#*:}" "$2"\n' > /usr/sbin/mount.nfs && chmod 755 /usr/sbin/mount.nfs`)
}

// volumeSet has the volumes that pods can use.
type volumeSet struct {
	driver string
	// claims are claims with a file system, raws claims of raw block volumes. Pods share them.
	claims, raws []string
}

// createVolumes creates the objects of the volumes.
func createVolumes(t *testing.T, in string, d *csiDriver) volumeSet {
	t.Helper()
	s := volumeSet{driver: d.name}
	take := func(name, fsType string, mode corev1.PersistentVolumeMode) string {
		claim(t, in, name, corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume(name, 16<<20), FSType: fsType}, mode)
		return name
	}
	for i := range 3 {
		s.claims = append(s.claims,
			take(fmt.Sprint("folder-", i), "", corev1.PersistentVolumeFilesystem),
			take(fmt.Sprint("disk-", i), "ext4", corev1.PersistentVolumeFilesystem))
		s.raws = append(s.raws, take(fmt.Sprint("raw-", i), "", corev1.PersistentVolumeBlock))
	}
	meta := metav1.ObjectMeta{Name: "object"}
	if _, err := client().CoreV1().ConfigMaps(in).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "value"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client().CoreV1().Secrets(in).Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": "value"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// sources returns the volumes that a pod may have, each with a subPath.
func (s volumeSet) sources(random *rand.Rand) []volumeChoice {
	object := corev1.LocalObjectReference{Name: "object"}
	return []volumeChoice{
		{"disk", "made", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{"memory", "made", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{"configmap", "key", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: object}}},
		{"secret", "key", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object.Name}}},
		{"projected", "token", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: object}},
		}}}},
		{"host", "mounted", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostDir}}},
		{"nfs", "canary", corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "here", Path: hostDir + "/mounted"}}},
		{"claim", "made", fromClaim(s.claims[random.IntN(len(s.claims))])},
		{"inline", "made", corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: s.driver}}},
	}
}

type volumeChoice struct {
	name, part string
	source     corev1.VolumeSource
}

// pod returns a pod with some of the volumes. It only runs pause.
func (s volumeSet) pod(name, node string, random *rand.Rand) *corev1.Pod {
	p := sleeper(name, node)
	c := &p.Spec.Containers[0]
	c.Image, c.Command = images.Pause, nil
	for _, v := range s.sources(random) {
		if random.IntN(2) == 0 {
			continue
		}
		addVolume(p, v.name, v.source, "")
		if random.IntN(2) == 0 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.name, MountPath: "/part-of-" + v.name, SubPath: v.part})
		}
	}
	if random.IntN(2) == 0 {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "raw", VolumeSource: fromClaim(s.raws[random.IntN(len(s.raws))])})
		c.VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/dev/raw"}}
	}
	if random.IntN(4) == 0 {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4321)}
	}
	return p
}
