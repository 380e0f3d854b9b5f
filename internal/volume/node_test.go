package volume

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/kubeclient/kubeclienttest"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
)

const testTimeout = 10 * time.Second

// node is a Volumes with the real kernel and disk, real object and token caches, and a fake API
// server.
type node struct {
	*Volumes
	t       testing.TB
	root    string
	client  *fake.Clientset
	objects *kubeapi.Objects
	clock   clock.WithTicker
	events  *events
	issued  *int
	kinds   []plugin.Plugin // in addition to the built-in ones
	// attachments is nil if no controller attaches volumes.
	attachments  Attachments
	inUseChanged func() // may be nil
	// quotas returns the quotas of each agent; nil for none.
	quotas func() Quotas
	stop   func()
}

// events collects the events.
type events struct {
	mu       sync.Mutex
	recorded []string
}

func (e *events) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, reason+": "+fmt.Sprintf(format, args...))
}

func (e *events) has(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Contains(strings.Join(e.recorded, "\n"), text)
}

func newNode(t testing.TB) *node { return newNodeAt(t, t.TempDir()) }

// newNodeAt is a node with the root directory, which may have volumes of an earlier one.
func newNodeAt(t testing.TB, root string) *node {
	n := &node{t: t, root: root, client: fake.NewClientset(objects()...), clock: clock.RealClock{}, issued: new(int)}
	n.client.PrependReactor("create", "serviceaccounts/token", func(a ktesting.Action) (bool, runtime.Object, error) {
		*n.issued++
		tr := a.(ktesting.CreateAction).GetObject().(*authv1.TokenRequest).DeepCopy()
		now := time.Now()
		expires := now.Add(time.Duration(*tr.Spec.ExpirationSeconds) * time.Second)
		tr.Status = authv1.TokenRequestStatus{ExpirationTimestamp: metav1.NewTime(expires), Token: fakeToken(tr, *n.issued, now, expires)}
		return true, tr, nil
	})
	n.start()
	t.Cleanup(func() {
		n.stop()
		_ = (&mounts.Kernel{}).UnmountBeneath(root)
	})
	return n
}

// start starts an agent on the node.
func (n *node) start() {
	n.t.Helper()
	log := slog.New(slog.DiscardHandler)
	objects, err := kubeapi.NewObjects(kubeapi.ObjectsConfig{}, kubeapi.ObjectsDeps{Client: kubeclienttest.Wrap(n.client), Clock: clock.RealClock{}, Log: log})
	if err != nil {
		n.t.Fatal(err)
	}
	tokens, err := kubeapi.NewTokens(kubeapi.TokensDeps{Client: kubeclienttest.Wrap(n.client), Clock: n.clock, Log: log})
	if err != nil {
		n.t.Fatal(err)
	}
	claims, err := kubeapi.NewClaims(kubeclienttest.Wrap(n.client))
	if err != nil {
		n.t.Fatal(err)
	}
	trust, err := kubeapi.NewTrustBundles(kubeclienttest.Wrap(n.client))
	if err != nil {
		n.t.Fatal(err)
	}
	n.events = &events{}
	here := func() (*v1.Node, error) {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "here", UID: "node-uid", Labels: map[string]string{v1.LabelHostname: "here"}}}, nil
	}
	certificates, err := kubeapi.NewPodCertificates("here", kubeapi.PodCertificatesDeps{
		Client: kubeclienttest.Wrap(n.client), Node: here, Events: n.events, Clock: n.clock, Jitter: func() float64 { return 0 },
	})
	if err != nil {
		n.t.Fatal(err)
	}
	var quotas Quotas
	if n.quotas != nil {
		quotas = n.quotas()
	}
	v, err := New(Config{RootDir: n.root, NodeName: "here", FlexVolumeDir: filepath.Join(n.root, "drivers"),
		SysDir: filepath.Join(n.root, "sys"), DevDir: filepath.Join(n.root, "dev")}, Deps{
		Objects: objects, Tokens: tokens, Events: n.events, Clock: n.clock, Log: log,
		Claims: claims, Trust: trust, Certificates: certificates, Node: here, Plugins: n.kinds, Attachments: n.attachments, Changed: Changed{InUse: n.inUseChanged}, Quotas: quotas,
		Allocatable: func() v1.ResourceList {
			return v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi"), v1.ResourceCPU: resource.MustParse("2")}
		},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.Volumes, n.objects = v, objects
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = objects.Run(ctx) })
	running.Go(func() { _ = trust.Run(ctx) })
	running.Go(func() { _ = certificates.Run(ctx) })
	running.Go(func() { _ = v.Run(ctx) })
	n.stop = func() { cancel(); running.Wait() }
}

// restart replaces the agent with a new one without state.
func (n *node) restart() {
	n.stop()
	n.start()
}

func objects() []runtime.Object {
	meta := metav1.ObjectMeta{Name: "obj", Namespace: "ns", ResourceVersion: "1"}
	return []runtime.Object{
		&v1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": "value", "other": "x"}, BinaryData: map[string][]byte{"bin": {0, 1}}},
		&v1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("s3cret")}},
	}
}

// pod is a pod with one volume "vol" that its container mounts.
func (n *node) pod(source v1.VolumeSource) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1", Labels: map[string]string{"app": "web"}},
		Spec: v1.PodSpec{
			ServiceAccountName: "default",
			Volumes:            []v1.Volume{{Name: "vol", VolumeSource: source}},
			Containers:         []v1.Container{{Name: "c", VolumeMounts: []v1.VolumeMount{{Name: "vol", MountPath: "/vol"}}}},
		},
	}
	n.objects.Register(p)
	return p
}

// mount mounts the pod and returns the path of its volume.
func (n *node) mount(p *v1.Pod) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	got, err := n.Mount(ctx, p)
	if err != nil {
		n.t.Fatalf("mount: %v", err)
	}
	return got["vol"].HostPath
}

func readFile(t testing.TB, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// readsWhere reports whether a file has content that matches. It may be missing for a moment to a reader that
// has found the directory which a volume then replaces.
func readsWhere(match func(content string) bool, path ...string) func() bool {
	return func() bool { got, err := os.ReadFile(filepath.Join(path...)); return err == nil && match(string(got)) }
}

func reads(want string, path ...string) func() bool {
	return readsWhere(func(content string) bool { return content == want }, path...)
}

func readsOther(than string, path ...string) func() bool {
	return readsWhere(func(content string) bool { return content != than }, path...)
}

// tree lists everything below dir with inode, times, mode and owner.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all = append(all, fmt.Sprintf("%s %v %v %+v", path, info.Mode(), info.ModTime(), identity(info)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func mode(n int32) *int32 { return ptr.To(n) }
