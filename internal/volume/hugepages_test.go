package volume

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestHugePages(t *testing.T) {
	n := newNode(t)
	source := v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}}
	pod := func() *v1.Pod {
		p := n.pod(source)
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"hugepages-2Mi": resource.MustParse("2Mi")}
		return p
	}
	dir := n.mount(pod())
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || st.Type != unix.HUGETLBFS_MAGIC || st.Bsize != 2<<20 {
		t.Fatalf("file system %#x with pages of %d (%v)", st.Type, st.Bsize, err)
	}
	n.restart()
	n.mount(pod())
	if points, err := n.deps.Mounter.MountPoints(dir); err != nil || len(points) != 1 {
		t.Errorf("mounted %d times (%v)", len(points), err)
	}
	if err := n.Unmount(t.Context(), "uid-1"); err != nil {
		t.Error(err)
	}
}
