package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
)

// server is a fake of the kernel, mount.nfs and the NFS server.
type server struct {
	missing error
	refuses error
	hangs   chan struct{}
	calls   []string
	points  []string
}

func (s *server) Require(tool string) error {
	s.calls = append(s.calls, "need "+tool)
	return s.missing
}

func (s *server) Mount(source, target, kind string, options []string) error {
	s.calls = append(s.calls, "mount "+kind+" "+source+" "+filepath.Base(target))
	s.calls = append(s.calls, options...)
	if s.refuses == nil {
		s.points = append(s.points, target)
	}
	return s.refuses
}

func (s *server) Mounted(path string) (bool, error)    { return slices.Contains(s.points, path), nil }
func (s *server) MountPoints(string) ([]string, error) { return s.points, nil }
func (s *server) ForceUnmount(path string) error       { s.points = nil; return nil }
func (s *server) Unmount(path string) error {
	if s.hangs != nil {
		<-s.hangs
		return nil
	}
	s.points = slices.DeleteFunc(s.points, func(p string) bool { return p == path })
	return nil
}

func request(t *testing.T, pv *v1.PersistentVolume) plugin.Request {
	volume := &v1.Volume{Name: "vol"}
	if pv == nil {
		volume.NFS = &v1.NFSVolumeSource{Server: "filer", Path: "/export", ReadOnly: true}
	}
	return plugin.Request{Spec: plugin.Spec{Volume: volume, PV: pv}, Pod: &v1.Pod{}, PodDir: t.TempDir()}
}

func TestMount(t *testing.T) {
	pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
		MountOptions:           []string{"nfsvers=4.2"},
		PersistentVolumeSource: v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "fd00::1", Path: "/export"}},
	}}
	for _, c := range []struct {
		name string
		pv   *v1.PersistentVolume
		want []string
	}{
		{"inline volume", nil, []string{"need mount.nfs", "mount nfs filer:/export vol", "ro"}},
		{"persistent volume", pv, []string{"need mount.nfs", "mount nfs [fd00::1]:/export pv", "nfsvers=4.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &server{}
			p, r := New(Deps{Mounter: s, Tools: s, Clock: testclock.NewFakeClock(time.Now())}), request(t, c.pv)
			for range 2 { // the second finds it mounted
				got, err := p.SetUp(t.Context(), r)
				if err != nil || got.HostPath != filepath.Join(r.PodDir, "volumes/kubernetes.io~nfs", r.Name()) || got.ReadOnly != (c.pv == nil) {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if !slices.Equal(s.calls, c.want) {
				t.Errorf("called %q, want %q", s.calls, c.want)
			}
			if err := p.TearDown(t.Context(), plugin.Published{PodDir: r.PodDir, Name: r.Name()}); err != nil || len(s.points) != 0 {
				t.Errorf("left %v, %v", s.points, err)
			}
		})
	}
}

func TestFailedMountLeavesNothing(t *testing.T) {
	for _, s := range []*server{{missing: errors.New("no such program")}, {refuses: errors.New("access denied by server")}} {
		p, r := New(Deps{Mounter: s, Tools: s, Clock: testclock.NewFakeClock(time.Now())}), request(t, nil)
		_, err := p.SetUp(t.Context(), r)
		if want := errors.Join(s.missing, s.refuses); err == nil || !errors.Is(err, s.missing) && !errors.Is(err, s.refuses) {
			t.Errorf("%v, want %v", err, want)
		}
		if _, err := os.Lstat(r.VolumeDir(Name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a directory is left: %v", err)
		}
	}
}

// TestHangingUnmountIsForced: the server does not answer.
func TestHangingUnmountIsForced(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	s := &server{}
	p, r := New(Deps{Mounter: s, Tools: s, Clock: clk}), request(t, nil)
	if _, err := p.SetUp(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	s.hangs = hang
	defer close(hang)
	done := make(chan error, 1)
	go func() { done <- p.TearDown(t.Context(), plugin.Published{PodDir: r.PodDir, Name: "vol"}) }()
	for !clk.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	clk.Step(unmountTimeout)
	if err := <-done; err != nil || len(s.points) != 0 {
		t.Errorf("left %v, %v", s.points, err)
	}
}
