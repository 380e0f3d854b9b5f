package flexvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/internal/volume/plugin"
)

// script records its calls and prints the file named after the command; without one the command is
// not supported.
const script = `#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >> calls
if [ -f "say-$1" ]; then . "./say-$1"; else echo '{"status": "Not supported"}'; exit 1; fi
`

// fixture is one driver with its dependencies.
type fixture struct {
	*driver
	t      *testing.T
	dir    string // of the driver
	root   string
	secret *v1.Secret
	disks  []string // calls of the node's programs
	points []string // what is mounted
}

func newFixture(t *testing.T, cfg Config) *fixture {
	b := &fixture{t: t, root: t.TempDir()}
	cfg.Dir, cfg.RootDir, cfg.NodeName = t.TempDir(), b.root, "here"
	b.dir = filepath.Join(cfg.Dir, "vendor~disk")
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "disk"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	b.respond("init", `echo '{"status": "Success"}'`)
	kinds := New(cfg, Deps{Mounter: b, Disks: b, Secret: func(_ context.Context, namespace, name string) (*v1.Secret, error) {
		if b.secret == nil || b.secret.Namespace != namespace || b.secret.Name != name {
			return nil, errors.New("no such secret")
		}
		return b.secret, nil
	}}).Plugins()
	if len(kinds) != 1 {
		t.Fatalf("%d drivers", len(kinds))
	}
	b.driver = kinds[0].(*driver)
	return b
}

func (b *fixture) respond(command, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "say-"+command), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// calls are the command lines since the last call, without the directories of this test.
func (b *fixture) calls() []string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	if err == nil {
		if err := os.Remove(filepath.Join(b.dir, "calls")); err != nil {
			b.t.Fatal(err)
		}
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), b.root, "ROOT")), "\n")
}

func (b *fixture) want(want ...string) {
	b.t.Helper()
	if got := b.calls(); !slices.Equal(got, want) {
		b.t.Errorf("the driver was called\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (b *fixture) FormatAndMount(device, target, kind string, options []string) error {
	b.disks = append(b.disks, fmt.Sprint("format ", device, " ", strings.ReplaceAll(target, b.root, "ROOT"), " ", kind, options))
	b.points = append(b.points, target)
	return nil
}
func (b *fixture) Resize(device, at string) error {
	b.disks = append(b.disks, fmt.Sprint("resize ", device, " ", strings.ReplaceAll(at, b.root, "ROOT")))
	return nil
}
func (b *fixture) Bind(_ int, target string) error {
	b.points = append(b.points, target)
	return nil
}
func (b *fixture) Mounted(path string) (bool, error) { return slices.Contains(b.points, path), nil }
func (b *fixture) Unmount(path string) error {
	b.points = slices.DeleteFunc(b.points, func(p string) bool { return p == path })
	return nil
}

func (b *fixture) request(source *v1.FlexPersistentVolumeSource) plugin.Request {
	source.Driver = "vendor/disk"
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid"}, Spec: v1.PodSpec{ServiceAccountName: "robot"}}
	pod.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: ptr.To[int64](2000)}
	return plugin.Request{
		Spec: plugin.Spec{
			Volume: &v1.Volume{Name: "vol"},
			PV: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
				Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{FlexVolume: source}}},
			PVC: &v1.PersistentVolumeClaim{Status: v1.PersistentVolumeClaimStatus{Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Ki")}}},
		},
		Pod: pod, PodDir: filepath.Join(b.root, "pods/uid"),
	}
}

const success = `echo '{"status": "Success", "device": "/dev/found"}'`

// TestLifecycle is one volume from attach to detach with a driver that supports every command. The
// arguments are those of the reference kubelet.
func TestLifecycle(t *testing.T) {
	b := newFixture(t, Config{NodeAttaches: true})
	for _, command := range []string{"attach", "waitforattach", "mountdevice", "mount", "unmount", "unmountdevice", "detach", "expandfs"} {
		b.respond(command, success)
	}
	b.secret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "safe", Name: "key"}, Type: "vendor/disk", Data: map[string][]byte{"password": []byte("x")}}
	r := b.request(&v1.FlexPersistentVolumeSource{FSType: "xfs", Options: map[string]string{"lun": "7"}, SecretRef: &v1.SecretReference{Namespace: "safe", Name: "key"}})
	const of = `{"kubernetes.io/fsType":"xfs","kubernetes.io/pvOrVolumeName":"pv","kubernetes.io/readwrite":"rw","lun":"7"}`

	if id, err := b.DeviceID(t.Context(), r.Spec); id != "pv" || err != nil {
		t.Errorf("device %q, %v", id, err)
	}
	if name, err := b.AttachName(t.Context(), r.Spec); name != "vendor/disk/pv" || err != nil {
		t.Errorf("attached as %q, %v", name, err)
	}
	b.want("init")
	var err error
	if r.DevicePath, err = b.Connect(t.Context(), r); r.DevicePath != "/dev/found" || err != nil {
		t.Errorf("connected %q, %v", r.DevicePath, err)
	}
	b.want("attach "+of+" here", "waitforattach /dev/found "+of)
	if err := b.Stage(t.Context(), r); err != nil {
		t.Error(err)
	}
	b.want("mountdevice ROOT/plugins/kubernetes.io/flexvolume/vendor/disk/mounts/pv /dev/found " + of)
	got, err := b.SetUp(t.Context(), r)
	dir := filepath.Join(b.root, "pods/uid/volumes/vendor~disk/pv")
	if err != nil || got != (plugin.Result{HostPath: dir, SELinuxRelabel: true}) {
		t.Errorf("set up %+v, %v", got, err)
	}
	b.want(`mount ROOT/pods/uid/volumes/vendor~disk/pv {"kubernetes.io/fsType":"xfs","kubernetes.io/mounterArgs.FsGroup":"2000",` +
		`"kubernetes.io/pod.name":"p","kubernetes.io/pod.namespace":"ns","kubernetes.io/pod.uid":"uid","kubernetes.io/pvOrVolumeName":"pv",` +
		`"kubernetes.io/readwrite":"rw","kubernetes.io/secret/password":"eA==","kubernetes.io/serviceAccount.name":"robot","lun":"7"}`)
	if err := b.Expand(t.Context(), r, got, resource.MustParse("2Ki")); err != nil {
		t.Error(err)
	}
	b.want("expandfs " + of + " /dev/found ROOT/plugins/kubernetes.io/flexvolume/vendor/disk/mounts/pv 2048 1024")

	p := plugin.Published{PodUID: "uid", PodDir: r.PodDir, Name: "pv"}
	if id, err := b.DeviceOf(p); id != "pv" || err != nil {
		t.Errorf("made from %q, %v", id, err)
	}
	b.points = []string{b.stagedAt("pv")} // as a real driver would have it
	for range 2 {
		if err := errors.Join(b.TearDown(t.Context(), p), b.Unstage(t.Context(), "pv")); err != nil {
			t.Error(err)
		}
	}
	b.want("unmount ROOT/pods/uid/volumes/vendor~disk/pv",
		"unmountdevice ROOT/plugins/kubernetes.io/flexvolume/vendor/disk/mounts/pv", "detach pv here")
	if ids, err := b.Staged(); len(ids) != 0 || err != nil {
		t.Errorf("staged %q, %v", ids, err)
	}
}

// TestUnsupportedCommands: each is called once, then the node does it itself.
func TestUnsupportedCommands(t *testing.T) {
	b := newFixture(t, Config{})
	r := b.request(&v1.FlexPersistentVolumeSource{})
	r.ClaimReadOnly, r.DevicePath = true, "/dev/by-the-controller"
	for range 2 {
		device, err := b.Connect(t.Context(), r)
		if device != r.DevicePath || err != nil {
			t.Errorf("connected %q, %v", device, err)
		}
	}
	_, err := b.SetUp(t.Context(), r)
	if err == nil {
		t.Error("set up though nothing is staged")
	}
	if err := b.Stage(t.Context(), r); err != nil {
		t.Error(err)
	}
	if _, err := b.SetUp(t.Context(), r); err != nil {
		t.Error(err)
	}
	if err := b.Expand(t.Context(), r, plugin.Result{}, resource.MustParse("2Ki")); err != nil {
		t.Error(err)
	}
	p := plugin.Published{PodUID: "uid", PodDir: r.PodDir, Name: "pv"}
	if err := errors.Join(b.TearDown(t.Context(), p), b.Unstage(t.Context(), "pv")); err != nil || len(b.points) != 0 {
		t.Errorf("left %q, %v", b.points, err)
	}
	var commands []string
	for _, call := range b.calls() {
		commands = append(commands, strings.Fields(call)[0])
	}
	if want := []string{"init", "waitforattach", "mount", "mountdevice", "expandfs", "unmount", "unmountdevice"}; !slices.Equal(commands, want) {
		t.Errorf("the driver was called %q, want %q", commands, want)
	}
	staged := "ROOT/plugins/kubernetes.io/flexvolume/vendor/disk/mounts/pv"
	if want := []string{"format /dev/by-the-controller " + staged + " ext4[ro]", "resize /dev/by-the-controller " + staged}; !slices.Equal(b.disks, want) {
		t.Errorf("the node did %q, want %q", b.disks, want)
	}
}

func TestInvalidResponses(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"failure status":         {`echo '{"status": "Failure", "message": "no such share"}'; exit 1`, "mount command failed, status: Failure, reason: no such share"},
		"not JSON":               {"echo mount: only root can do that >&2; exit 32", `parse output of FlexVolume driver for mount, "mount: only root can do that\n"`},
		"success with exit code": {`echo '{"status": "Success"}'; exit 3`, "mount ended with exit status 3 though its status is Success"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, Config{})
			b.respond("mount", c.says)
			r := b.request(&v1.FlexPersistentVolumeSource{})
			if _, err := b.SetUp(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if !missing(r.VolumeDir(b.name)) {
				t.Error("an empty directory is left that could be mistaken for the volume")
			}
		})
	}
}

// TestSecretOfOtherTypeIsRejected: the driver does not get it.
func TestSecretOfOtherTypeIsRejected(t *testing.T) {
	b := newFixture(t, Config{})
	b.secret = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "key"}, Type: v1.SecretTypeOpaque}
	r := b.request(&v1.FlexPersistentVolumeSource{SecretRef: &v1.SecretReference{Name: "key"}})
	if _, err := b.SetUp(t.Context(), r); err == nil || !strings.Contains(err.Error(), "cannot get secret of type vendor/disk") {
		t.Error(err)
	}
	b.want("init")
}

// TestReplacedProgramIsInitialized: init runs again.
func TestReplacedProgramIsInitialized(t *testing.T) {
	b := newFixture(t, Config{})
	r := b.request(&v1.FlexPersistentVolumeSource{})
	for range 2 {
		if id, err := b.DeviceID(t.Context(), r.Spec); id != "pv" || err != nil {
			t.Errorf("device %q, %v", id, err)
		}
	}
	b.want("init")
	b.respond("init", `echo '{"status": "Success", "capabilities": {"attach": false}}'`)
	if err := os.WriteFile(filepath.Join(b.dir, "disk"), []byte(script+"# newer\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if id, err := b.DeviceID(t.Context(), r.Spec); id != "" || err != nil {
		t.Errorf("device %q, %v", id, err)
	}
	b.want("init")
	if err := os.Remove(filepath.Join(b.dir, "disk")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeviceID(t.Context(), r.Spec); err == nil || !strings.Contains(err.Error(), "there is no program "+filepath.Join(b.dir, "disk")) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"status": "Success", "device": "/dev/sda", "capabilities": null}`))
	f.Add([]byte(`{"status": "Not supported"}`))
	f.Add([]byte(`mount: failed`))
	f.Fuzz(func(t *testing.T, out []byte) {
		resp, err := parse("mount", out)
		if err == nil && (resp.Status != statusSuccess || resp.Capabilities == nil) {
			t.Errorf("%q was read as %+v", out, resp)
		}
	})
}
