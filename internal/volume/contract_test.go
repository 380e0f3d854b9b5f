package volume

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/hostpath"
	"swiftlet/internal/volume/image"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/nfs"
	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

func identity(info fs.FileInfo) [4]uint64 {
	st := info.Sys().(*syscall.Stat_t)
	return [4]uint64{st.Dev, st.Ino, uint64(st.Uid), uint64(st.Gid)}
}

func fakeToken(tr *authv1.TokenRequest, n int, issued, expires time.Time) string {
	claims := fmt.Sprintf(`{"aud":["api"],"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"ns","pod":{"uid":%q},"serviceaccount":{"name":"default"}}}`,
		issued.Unix(), expires.Unix(), tr.Spec.BoundObjectRef.UID)
	return fmt.Sprintf("h%d.%s.s", n, base64.RawURLEncoding.EncodeToString([]byte(claims)))
}

func named(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }

// kind is an entry of the contract suite: one kind of volume and its properties.
type kind struct {
	name   string
	source v1.VolumeSource
	// pv creates the source of a PersistentVolume, instead of source.
	pv   func(t *testing.T) v1.PersistentVolumeSource
	pvOn func(t *testing.T, n *node) v1.PersistentVolumeSource
	// install installs what the kind needs on the node; may be nil.
	install    func(n *node)
	directory  string            // below the pod's directory
	files      map[string]string // content, "" for any
	inMemory   bool
	readOnly   bool
	persistent bool // its content is kept after Unmount
}

// of is the volume source for a pod on n; called once per node.
func (k kind) of(t *testing.T, n *node) v1.VolumeSource {
	if k.install != nil {
		k.install(n)
	}
	switch {
	case k.pvOn != nil:
		return n.claimed(k.pvOn(t, n))
	case k.pv != nil:
		return n.claimed(k.pv(t))
	}
	return k.source
}

var kinds = []kind{
	{name: "emptyDir", directory: "volumes/kubernetes.io~empty-dir/vol",
		source: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	{name: "emptyDir in memory", directory: "volumes/kubernetes.io~empty-dir/vol", inMemory: true,
		source: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
	{name: "configMap", directory: "volumes/kubernetes.io~configmap/vol", readOnly: true,
		files:  map[string]string{"key": "value", "other": "x", "bin": "\x00\x01"},
		source: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named("obj"), DefaultMode: mode(0o644)}}},
	{name: "secret", directory: "volumes/kubernetes.io~secret/vol", readOnly: true, inMemory: true,
		files:  map[string]string{"password": "s3cret"},
		source: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "obj", DefaultMode: mode(0o400)}}},
	{name: "downwardAPI", directory: "volumes/kubernetes.io~downward-api/vol", readOnly: true, inMemory: true,
		files: map[string]string{"labels": `app="web"`, "deep/name": "p"},
		source: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultMode: mode(0o644), Items: []v1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "deep/name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		}}}},
	{name: "projected", directory: "volumes/kubernetes.io~projected/vol", readOnly: true, inMemory: true,
		files: map[string]string{"token": "", "cm": "value", "password": "s3cret", "uid": "uid-1"},
		source: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: mode(0o644), Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: seconds(3607)}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: named("obj"), Items: []v1.KeyToPath{{Key: "key", Path: "cm"}}}},
			{Secret: &v1.SecretProjection{LocalObjectReference: named("obj")}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "uid", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}}},
		}}}},
}

func seconds(n int64) *int64 { return &n }

// durable are kinds of PersistentVolumes.
var durable = []kind{
	{name: "local directory", directory: "volumes/kubernetes.io~local-volume/pv", inMemory: true, persistent: true,
		pv: func(t *testing.T) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: t.TempDir()}}
		}},
	{name: "local disk", directory: "volumes/kubernetes.io~local-volume/pv", inMemory: true, persistent: true,
		pv: func(t *testing.T) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: disk(t)}}
		}},
}

func contractKinds() []kind { return slices.Concat(kinds, durable, flexKinds, iscsiKinds, fcKinds) }

// TestContractCoversPlugins: every built-in kind that mounts into the pod's directory has an
// entry in the contract suite.
func TestContractCoversPlugins(t *testing.T) {
	elsewhere := map[string]string{
		hostpath.Name: "has no directory in the pod's",
		image.Name:    "is mounted by the runtime",
		nfs.Name:      "needs a server: package nfs tests it",
	}
	for _, p := range newPlugins(Config{}, Deps{}, mounts.Tools{}, nil) {
		directory := "/" + plugin.DirName(p.Name()) + "/"
		covered := slices.ContainsFunc(contractKinds(), func(k kind) bool { return strings.Contains(k.directory, directory) })
		if covered == (elsewhere[p.Name()] != "") {
			t.Errorf("%s: has an entry: %v; an exception: %q", p.Name(), covered, elsewhere[p.Name()])
		}
	}
}

// TestContract tests every kind of volume that is mounted in the pod's directory.
func TestContract(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Run("mounted at the path of the reference kubelet", func(t *testing.T) { k.mounts(t) })
			t.Run("unchanged by a new agent", func(t *testing.T) { k.survivesRestart(t) })
			t.Run("has the fsGroup", func(t *testing.T) { k.group(t) })
			t.Run("unmounted by another agent", func(t *testing.T) { k.unmounts(t) })
			t.Run("retried after a failure", func(t *testing.T) { k.retries(t) })
		})
	}
}

func (k kind) mounts(t *testing.T) {
	n := newNode(t)
	p := n.pod(k.of(t, n))
	got, err := n.Mount(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(n.root, "pods", "uid-1", k.directory)
	if m := got["vol"]; m.HostPath != dir || m.ReadOnly != k.readOnly {
		t.Errorf("mounted %+v, want %s, read-only %v", m, dir, k.readOnly)
	}
	if mounted, err := (&mounts.Kernel{}).Mounted(dir); err != nil || mounted != k.inMemory {
		t.Errorf("a mount of its own: %v, %v; want %v", mounted, err, k.inMemory)
	}
	for name, want := range k.files {
		if got := readFile(t, dir, name); got != want && want != "" {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	if len(k.files) > 0 {
		if link, err := os.Readlink(filepath.Join(dir, "..data")); err != nil || !strings.HasPrefix(link, "..2") {
			t.Errorf("..data points to %q (%v), want a timestamped directory", link, err)
		}
	}
}

func (k kind) survivesRestart(t *testing.T) {
	n := newNode(t)
	source := k.of(t, n)
	dir := n.mount(n.pod(source))
	before := tree(t, filepath.Join(n.root, "pods"))
	n.restart()
	n.mount(n.pod(source))
	if after := tree(t, filepath.Join(n.root, "pods")); after != before {
		t.Errorf("the volume changed under its pod:\n%s\nbefore:\n%s", after, before)
	}
	points, err := (&mounts.Kernel{}).MountPoints(dir)
	if err != nil || len(points) > 1 {
		t.Errorf("mounted %d times (%v)", len(points), err)
	}
	if *n.issued > 1 {
		t.Errorf("%d tokens issued, want the first one to be kept", *n.issued)
	}
}

func (k kind) group(t *testing.T) {
	n := newNode(t)
	p := n.pod(k.of(t, n))
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: seconds(2000)}
	dir := n.mount(p)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Gid != 2000 || st.Mode&0o2770 != 0o2770 {
		t.Errorf("root of the volume: group %d, mode %o; want 2000 and at least 2770", st.Gid, st.Mode&0o7777)
	}
	for name := range k.files {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Gid != 2000 || st.Mode&0o440 != 0o440 {
			t.Errorf("%s: group %d, mode %o; want 2000 and readable by it", name, st.Gid, st.Mode&0o7777)
		}
	}
}

func (k kind) unmounts(t *testing.T) {
	n := newNode(t)
	source := k.of(t, n)
	dir := n.mount(n.pod(source))
	if err := os.WriteFile(filepath.Join(dir, "left-by-the-pod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if uids, err := n.MountedPods(); err != nil || len(uids) != 1 || uids[0] != "uid-1" {
		t.Fatalf("pods with volumes: %v, %v; want uid-1", uids, err)
	}
	for range 2 { // idempotent
		if err := n.Unmount(t.Context(), "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(n.root, "pods", "uid-1"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the pod's directory: %v, %v", entries, err)
	}
	poll.Until(t, "nothing to be mounted", func() bool {
		points, err := (&mounts.Kernel{}).MountPoints(n.root)
		return err == nil && len(points) == 0
	})
	if uids, err := n.MountedPods(); err != nil || len(uids) != 0 {
		t.Errorf("pods with volumes afterwards: %v, %v", uids, err)
	}
	if _, err := os.Stat(filepath.Join(n.mount(n.pod(source)), "left-by-the-pod")); (err == nil) != k.persistent {
		t.Errorf("file of the pod: %v; want it kept: %v", err, k.persistent)
	}
}

// retries creates a file in place of the volume's parent directory, and removes it.
func (k kind) retries(t *testing.T) {
	n := newNode(t)
	obstacle := filepath.Dir(filepath.Join(n.root, "pods", "uid-1", k.directory))
	if err := os.MkdirAll(filepath.Dir(obstacle), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	p := n.pod(k.of(t, n))
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	recorded := fmt.Sprintf("FailedMount: MountVolume.SetUp failed for volume %q : ", filepath.Base(k.directory))
	poll.Until(t, "an event", func() bool { return n.events.has(recorded) })
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("not mounted after the obstacle was removed")
	}
}

func TestMemorySize(t *testing.T) {
	limited := func(q string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(q)}}
	}
	for _, c := range []struct {
		name      string
		limit     string
		container v1.ResourceRequirements
		want      int64
	}{
		{"allocatable memory", "", v1.ResourceRequirements{}, 64 << 20},
		{"size limit", "16Mi", v1.ResourceRequirements{}, 16 << 20},
		{"size limit above allocatable", "1Gi", v1.ResourceRequirements{}, 64 << 20},
		{"pod memory limit", "", limited("32Mi"), 32 << 20},
		{"size limit below pod limit", "8Mi", limited("32Mi"), 8 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t)
			src := &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}
			if c.limit != "" {
				q := resource.MustParse(c.limit)
				src.SizeLimit = &q
			}
			p := n.pod(v1.VolumeSource{EmptyDir: src})
			p.Spec.Containers[0].Resources = c.container
			var st syscall.Statfs_t
			if err := syscall.Statfs(n.mount(p), &st); err != nil {
				t.Fatal(err)
			}
			if got := int64(st.Blocks) * st.Bsize; got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

func TestTokenFileHasOwnerAndMode(t *testing.T) {
	n := newNode(t)
	k := kinds[len(kinds)-1]
	p := n.pod(k.source)
	p.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: seconds(1000)}
	dir := n.mount(p)
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 1000 || st.Mode&0o777 != 0o600 {
		t.Errorf("token of user %d, mode %o; want 1000 and 600", st.Uid, st.Mode&0o777)
	}
}

func TestUnmountRejectsInvalidUIDs(t *testing.T) {
	n := newNode(t)
	for _, uid := range []string{"", ".", "..", "../..", "a/b"} {
		if err := n.Unmount(t.Context(), types.UID(uid)); err == nil {
			t.Errorf("pod UID %q was accepted", uid)
		}
	}
}

func TestVolumeWithoutPlugin(t *testing.T) {
	n := newNode(t)
	n.cfg.MountTimeout = time.Second
	_, err := n.Mount(t.Context(), n.pod(v1.VolumeSource{Glusterfs: &v1.GlusterfsVolumeSource{}}))
	var missing *MountError
	if !errors.As(err, &missing) || missing.Volumes["vol"] == nil || !strings.Contains(err.Error(), "no volume plugin matched") {
		t.Errorf("mount of an unknown kind: %v", err)
	}
}
