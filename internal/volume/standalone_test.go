package volume

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/volume/mounts"
	"swiftlet/test/poll"
)

// standalone is a node without an API server; objects are set directly.
func standalone(t *testing.T) (*node, *kubeapi.Local) {
	t.Helper()
	root, local := t.TempDir(), kubeapi.NewLocal()
	n := &node{t: t, root: root, clock: clock.RealClock{}, events: &events{}}
	v, err := New(Config{RootDir: root, NodeName: "here", FlexVolumeDir: filepath.Join(root, "drivers")}, Deps{
		Objects: local, Events: n.events, Clock: n.clock, Log: slog.New(slog.DiscardHandler),
		Allocatable: func() v1.ResourceList { return v1.ResourceList{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Volumes = v
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = v.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = (&mounts.Kernel{}).UnmountBeneath(root)
	})
	return n, local
}

// TestStandalone: volumes with objects from the manifests directory wait for them, follow their changes,
// and keep the files of a removed object.
func TestStandalone(t *testing.T) {
	object := func(value string) ([]*v1.ConfigMap, []*v1.Secret) {
		meta := metav1.ObjectMeta{Name: "obj", Namespace: "ns"}
		return []*v1.ConfigMap{{ObjectMeta: meta, Data: map[string]string{"key": value}}}, []*v1.Secret{{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(value)}}}
	}
	for name, source := range map[string]v1.VolumeSource{
		"configMap": {ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("obj"), DefaultMode: mode(0o644)}},
		"secret":    {Secret: &v1.SecretVolumeSource{SecretName: "obj", DefaultMode: mode(0o400)}},
		"projected configMap": {Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("obj")}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
		}}},
		"projected secret": {Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{
			{Secret: &v1.SecretProjection{LocalObjectReference: named("obj")}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			n, local := standalone(t)
			p := standalonePod(source)
			mounted := make(chan string, 1)
			go func() {
				got, err := n.Mount(t.Context(), p)
				if err != nil {
					t.Errorf("mount: %v", err)
				}
				mounted <- got["vol"].HostPath
			}()
			poll.Until(t, "the event", func() bool { return n.events.has(`"obj" not found`) })
			local.SetObjects(object("first"))
			dir := <-mounted
			if got := readFile(t, dir, "key"); got != "first" {
				t.Errorf("the file holds %q", got)
			}
			local.SetObjects(object("second"))
			poll.Until(t, "the new content", reads("second", dir, "key"))
			local.SetObjects(nil, nil)
			if got := readFile(t, dir, "key"); got != "second" {
				t.Errorf("the file of a removed object holds %q", got)
			}
			n.unmount(p.UID)
		})
	}
}

// TestStandaloneRejects volumes that need an API server, with an event.
func TestStandaloneRejects(t *testing.T) {
	for recorded, source := range map[string]v1.VolumeSource{
		"no API server issues tokens in standalone mode": {Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: seconds(3600)}},
		}}},
		"there is no API server to ask": {PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}},
	} {
		n, _ := standalone(t)
		p := standalonePod(source)
		go func() { _, _ = n.Mount(t.Context(), p) }()
		poll.Until(t, "the event", func() bool { return n.events.has("FailedMount") })
		if !n.events.has(recorded) {
			t.Errorf("events %q do not say %q", n.events.recorded, recorded)
		}
		n.unmount(p.UID)
	}
}

func standalonePod(source v1.VolumeSource) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1"},
		Spec: v1.PodSpec{
			Volumes:    []v1.Volume{{Name: "vol", VolumeSource: source}},
			Containers: []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/vol"}}}},
		},
	}
}
