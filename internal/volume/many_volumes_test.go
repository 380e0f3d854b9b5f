package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/cputime"
)

// slowClaims is an API server that does not respond until the context ends.
type slowClaims struct{ reads atomic.Int64 }

func (c *slowClaims) Claim(ctx context.Context, _, _ string) (*v1.PersistentVolumeClaim, error) {
	c.reads.Add(1)
	defer c.reads.Add(-1)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*slowClaims) Volume(context.Context, string) (*v1.PersistentVolume, error) {
	return nil, errors.New("not read")
}

func (*slowClaims) Secret(context.Context, string, string) (*v1.Secret, error) {
	return nil, errors.New("not read")
}

// noObjects has no ConfigMaps and Secrets.
type noObjects struct{}

func (noObjects) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return nil, errors.New("not read")
}

func (noObjects) Secret(context.Context, string, string) (*v1.Secret, error) {
	return nil, errors.New("not read")
}

func (noObjects) OnChange(func(kind, namespace, name string)) {}

// The requests of a pod with thousands of claims share a rate with the statuses of all pods, so few of them may
// wait at a time.
func TestManyVolumesAreSetUpFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := &slowClaims{}
		v, err := New(Config{RootDir: t.TempDir()}, Deps{
			Objects: noObjects{}, Claims: claims, Allocatable: func() v1.ResourceList { return nil },
			Events: &events{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
		for i := range 1000 {
			name := fmt.Sprintf("v%d", i)
			claim := &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: claim}})
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := v.Mount(ctx, p); done <- err }()
		synctest.Wait()
		if n := claims.reads.Load(); n != maxSetUps {
			t.Errorf("%d claims are read at the same time", n)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("mounted")
		}
		synctest.Wait()
		if n := claims.reads.Load(); n != 0 {
			t.Errorf("%d claims are still being read", n)
		}
	})
}

// A change of an object or of the pod selects the pod's volumes with all pods locked out.
func TestManyVolumesAreSelectedInOnePass(t *testing.T) {
	const n = 50_000
	v, err := New(Config{RootDir: t.TempDir()}, Deps{
		Objects: noObjects{}, Allocatable: func() v1.ResourceList { return nil },
		Events: &events{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	pv := v.podVolumesOf(p)
	for i := range n {
		vol := v1.Volume{Name: fmt.Sprintf("v%06d", i), VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
		p.Spec.Volumes = append(p.Spec.Volumes, vol)
		state := v.stateOf(pv, vol.Name)
		state.mounted, state.mountedVolume = true, mountedVolume{spec: plugin.Spec{Volume: &vol}, kind: v.kindFor(plugin.Spec{Volume: &vol}), result: plugin.Result{HostPath: "/v"}}
	}
	cputime.AtMost(t, 3*time.Second, func() {
		v.objectChanged("ConfigMap", "ns", "c")
		if got := len(v.MeasurableVolumes(p.UID)); got != n {
			t.Errorf("%d measurable volumes, want %d", got, n)
		}
	})
}

// So does a scrape of the metrics, of those that are not mounted.
func TestManyVolumesAreCountedInOnePass(t *testing.T) {
	const n = 30_000
	v, err := New(Config{RootDir: t.TempDir()}, Deps{
		Objects: noObjects{}, Allocatable: func() v1.ResourceList { return nil },
		Events: &events{}, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
	for i := range n {
		name := fmt.Sprintf("v%06d", i)
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	v.podVolumesOf(p)
	cputime.AtMost(t, 3*time.Second, func() {
		if got := v.Counts().Desired["kubernetes.io/empty-dir"]; got != n {
			t.Errorf("%d volumes, want %d", got, n)
		}
	})
}
