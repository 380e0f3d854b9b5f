package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestChurn mounts and unmounts many pods at once while objects change and the agent restarts. Nothing
// is left.
func TestChurn(t *testing.T) {
	n := newNode(t)
	version := 100
	for round := range 4 {
		var pods sync.WaitGroup
		for i := range 20 {
			p := n.pod(kinds[i%len(kinds)].source)
			p.UID = types.UID(fmt.Sprintf("uid-%d-%d", round, i))
			n.objects.Register(p)
			pods.Go(func() {
				if _, err := n.Mount(t.Context(), p); err != nil {
					t.Error(err)
					return
				}
				c := &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/v", SubPath: "sub"}}}
				if p.Spec.Volumes[0].EmptyDir != nil {
					if _, err := n.ContainerMounts(t.Context(), p, c, n.MountedVolumes(p.UID), MountOptions{}); err != nil {
						t.Error(err)
					}
				}
				if i%2 == 0 {
					if err := n.Unmount(t.Context(), p.UID); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 5 {
			version++
			n.updateConfigMap(fmt.Sprint(version), fmt.Sprint(version))
		}
		pods.Wait()
		n.restart()
	}
	left, err := n.MountedPods()
	if err != nil || len(left) != 40 {
		t.Fatalf("%d pods left mounted (%v), want every second one", len(left), err)
	}
	for _, uid := range left {
		if err := n.Unmount(t.Context(), uid); err != nil {
			t.Error(err)
		}
	}
	all, err := n.PodDirs()
	if err != nil || len(all) != 80 {
		t.Errorf("%d directories of pods (%v), want 80", len(all), err)
	}
	for _, uid := range all {
		if err := n.RemovePodDir(uid); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(n.root, "pods")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if points, err := n.deps.Mounter.MountPoints(n.root); err != nil || len(points) != 0 {
		t.Errorf("left mounted: %v, %v", points, err)
	}
}
