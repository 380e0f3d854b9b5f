package path

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume/safepath"
	"swiftlet/internal/why"
	"swiftlet/test/fakecri"
)

// whyCase is one fault of a pod. testdata/why.txt has the sentences, in which times are T.
type whyCase struct {
	name string
	// spec of the pod, in YAML.
	spec string
	// meta is metadata of the pod besides its name.
	meta string
	// before is done before the agent starts, fault before the pod is created, and then after it.
	before, fault, then func(w *testNode)
	// after is how long it takes until the sentence is read.
	after time.Duration
}

// sentences reads testdata/why.txt: a line with the name of a fault, and an indented one with the sentence.
func sentences(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/why.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, name := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		sentence, indented := strings.CutPrefix(line, "  ")
		switch {
		case indented:
			all[name] = sentence
		case !strings.HasPrefix(line, "#"):
			name = line
		}
	}
	return all
}

// failCall makes every call of a method of the runtime fail with this code.
func failCall(method string, code codes.Code, text string) func(*testNode) {
	return func(w *testNode) { w.runtime.Inject(method, fakecri.Fault{Err: status.Error(code, text)}) }
}

func hangCall(method string) func(*testNode) {
	return func(w *testNode) { w.runtime.Inject(method, fakecri.Fault{Hang: true}) }
}

func withFaults(change func(f *faults)) func(*testNode) {
	return func(w *testNode) { w.setFaults(change) }
}

func reject(reason string) func(*testNode) { return func(w *testNode) { w.rejectWith("web", reason) } }

func sick(container string) func(*testNode) {
	return func(w *testNode) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unhealthy[container] = true
	}
}

func exits(container string, code int32) func(*testNode) {
	return func(w *testNode) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exits[container] = code
	}
}

func deletePod(w *testNode) {
	if err := w.store.delete("web", -1); err != nil {
		w.t.Error(err)
	}
	w.settle()
}

const (
	plain = "containers: [{name: app, image: 'app:1'}]"
	other = "containers: [{name: app, image: 'docker.io/x:1'}]"
)

// mounting is the spec of a pod with one volume.
func mounting(volume string) string {
	return "containers: [{name: app, image: 'app:1', volumeMounts: [{name: data, mountPath: /data}]}]\n  volumes: [{name: data, " + volume + "}]"
}

func probing(kind, handler string) string {
	return fmt.Sprintf("containers: [{name: app, image: 'app:1', %s: {%s, periodSeconds: 5, failureThreshold: 3}}]", kind, handler)
}

const cephfs = "cephfs: {monitors: [m]}"

var timeOfDay = regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d`)

// TestWhy is the table of faults: for each of them the sentence names the step that blocks, the object to change
// and the next attempt.
func TestWhy(t *testing.T) {
	want := sentences(t)
	if len(whyCases) < 40 || len(want) != len(whyCases) {
		t.Errorf("%d faults and %d sentences, want as many, and at least 40", len(whyCases), len(want))
	}
	for _, c := range whyCases {
		t.Run(c.name, func(t *testing.T) {
			do := func(w *testNode, f func(*testNode)) {
				if f != nil {
					f(w)
				}
			}
			onTestNodeIn(t, t.TempDir(), c.before, func(w *testNode) {
				do(w, c.fault)
				w.apply([]byte("metadata: {name: web" + c.meta + "}\nspec:\n  " + c.spec + "\n"))
				w.settle()
				do(w, c.then)
				w.pass(c.after)
				if got := timeOfDay.ReplaceAllString(w.why("web"), "T"); got != want[c.name] {
					t.Errorf("sentence\n  %s\nwant\n  %s", got, want[c.name])
				}
				w.release()
			})
		})
	}
}

// TestWhyPodWaitsForPredecessor: a static pod does not start before the one that it replaces has stopped.
func TestWhyPodWaitsForPredecessor(t *testing.T) {
	onTestNode(t, func(w *testNode) {
		for _, label := range []string{"a", "b"} {
			if err := w.store.setStatic([]byte("metadata: {name: web, labels: {v: " + label + "}}\nspec:\n  " + plain + "\n")); err != nil {
				t.Fatal(err)
			}
			w.settle()
			hangCall("StopContainer")(w)
		}
		const want = "pod: waits until an older pod of its name, or the pods that it preempts, have stopped, since T; fix what keeps those from ending"
		if got := timeOfDay.ReplaceAllString(w.why("web"), "T"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		w.release()
	})
}

// why is the sentence about a pod.
func (w *testNode) why(name string) string {
	uid, found := w.agent.why.Find("default", name)
	if !found {
		return "not found"
	}
	var of *v1.PodStatus
	if s, known := w.agent.status.Get(uid); known {
		of = &s
	}
	report, _ := w.agent.why.Report(uid, of, time.Now())
	return report.Sentence
}

// release ends everything that hangs.
func (w *testNode) release() {
	w.setFaults(func(f *faults) { *f = faults{} })
	for _, method := range []string{"StopContainer", "StopPodSandbox", "RunPodSandbox", "CreateContainer", "StartContainer", "PullImage", "ExecSync", "PodSandboxStatus"} {
		w.runtime.ClearFault(method)
	}
}

var whyCases = []whyCase{
	// Images.
	{name: "image does not exist", spec: other, fault: failCall("PullImage", codes.NotFound, "no such manifest"), after: time.Second},
	{name: "image tried again", spec: other, fault: failCall("PullImage", codes.NotFound, "no such manifest"), after: 25 * time.Second},
	{name: "no right to pull", spec: other, fault: failCall("PullImage", codes.PermissionDenied, "403 Forbidden"), after: time.Second},
	{name: "no credential", spec: other, fault: failCall("PullImage", codes.Unauthenticated, "401 Unauthorized"), after: time.Second},
	{name: "registry down", spec: other, fault: failCall("PullImage", codes.Unavailable, "connection refused"), after: time.Second},
	{name: "registry of unknown error", spec: other, fault: failCall("PullImage", codes.Unknown, "unexpected status 418"), after: time.Second},
	{name: "registry slow", spec: other, fault: hangCall("PullImage"), after: 40 * time.Second},
	{name: "registry timeout", spec: other, fault: failCall("PullImage", codes.DeadlineExceeded, "i/o timeout"), after: time.Second},
	{name: "registry unavailable, as the runtime says", spec: other, fault: failCall("PullImage", codes.Unknown, "RegistryUnavailable: down"), after: time.Second},
	{name: "signature refused", spec: other, fault: failCall("PullImage", codes.Unknown, "SignatureValidationFailed: no signature"), after: time.Second},
	{name: "image name invalid", spec: "containers: [{name: app, image: 'Not A Name'}]"},
	{name: "image never pulled", spec: "containers: [{name: app, image: 'docker.io/x:1', imagePullPolicy: Never}]"},
	{name: "credentials unreadable", spec: other, fault: withFaults(func(f *faults) { f.credentials = errTest })},
	{name: "image of init container", spec: "initContainers: [{name: init, image: 'docker.io/x:1'}]\n  " + plain, fault: failCall("PullImage", codes.NotFound, "no such manifest")},

	// Objects.
	{name: "secret volume missing", spec: mounting("secret: {secretName: key}")},
	{name: "configmap volume missing", spec: mounting("configMap: {name: conf}")},
	{name: "key of volume missing", spec: mounting("configMap: {name: conf, items: [{key: a, path: a}]}"), before: func(w *testNode) {
		w.faults.configMaps = []*v1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "conf"}}}
	}},
	{name: "secret of variable missing", spec: "containers: [{name: app, image: 'app:1', env: [{name: A, valueFrom: {secretKeyRef: {name: key, key: a}}}]}]"},
	{name: "key of variable missing", spec: "containers: [{name: app, image: 'app:1', env: [{name: A, valueFrom: {secretKeyRef: {name: key, key: a}}}]}]", before: func(w *testNode) {
		w.faults.secrets = []*v1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}}}
	}},
	{name: "configmap of envFrom missing", spec: "containers: [{name: app, image: 'app:1', envFrom: [{configMapRef: {name: conf}}]}]"},
	{name: "field of variable unknown", spec: "containers: [{name: app, image: 'app:1', env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.none}}}]}]"},

	// Volumes.
	{name: "hostPath of other type", spec: mounting("hostPath: {path: /proc/self/status, type: Directory}")},
	{name: "subPath leaves its volume", before: makeVolume, spec: "containers: [{name: app, image: 'app:1', volumeMounts: [{name: data, mountPath: /data, subPath: link}]}]\n  volumes: [{name: data, " + cephfs + "}]"},
	{name: "volume unmountable", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = failWith(errTest) }), after: 3 * time.Second},
	{name: "volume hung", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = hang }), after: 40 * time.Second},
	{name: "volume full", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = failWith(&os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}) })},
	{name: "volume busy", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = failWith(fmt.Errorf("mount: %w", syscall.EBUSY)) })},
	{name: "volume's server does not answer", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = failWith(context.DeadlineExceeded) })},
	{name: "volume's driver gone", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.volume = failWith(status.Error(codes.Unavailable, "no such socket")) })},
	{name: "program of volume missing", spec: mounting(cephfs), fault: withFaults(func(f *faults) {
		f.volume = failWith(fmt.Errorf("mount: %w", &exec.Error{Name: "mount.ceph", Err: exec.ErrNotFound}))
	})},
	{name: "volume of no plugin", spec: mounting("rbd: {monitors: [m], image: i}")},
	{name: "CSI driver absent", spec: mounting(cephfs), fault: withFaults(func(f *faults) {
		f.volume = failWith(why.Because(why.DriverNotRegistered, "csi.test", errTest)) // package csi tests that this is its error
	})},
	{name: "volume of another claim", spec: mounting("persistentVolumeClaim: {claimName: claim}"), before: boundTo(v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}, "other")},
	{name: "volume of another node", spec: mounting("persistentVolumeClaim: {claimName: claim}"), before: func(w *testNode) {
		boundTo(v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}, "c")(w)
		w.faults.persistentVolume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}},
		}}}}
	}},
	{name: "claim unbound", spec: mounting("persistentVolumeClaim: {claimName: claim}"), before: func(w *testNode) {
		w.faults.claim = &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}}
	}},
	{name: "claim missing", spec: mounting("persistentVolumeClaim: {claimName: other}"), before: func(w *testNode) { w.faults.claim = &v1.PersistentVolumeClaim{} }},
	{name: "API server down", spec: mounting("persistentVolumeClaim: {claimName: claim}"), before: func(w *testNode) {
		w.faults.claimError = apierrors.NewServiceUnavailable("etcd is down")
	}},
	{name: "claim forbidden", spec: mounting("persistentVolumeClaim: {claimName: claim}"), before: func(w *testNode) {
		w.faults.claimError = apierrors.NewForbidden(v1.Resource("persistentvolumeclaims"), "claim", errors.New("no relation to the node"))
	}},

	// The sandbox and the runtime.
	{name: "CNI failing", spec: plain, fault: failCall("RunPodSandbox", codes.Unknown, "plugin type=\"bridge\" failed (add): no such bridge"), after: time.Second},
	{name: "no address left", spec: plain, fault: failCall("RunPodSandbox", codes.Unknown, "no IP addresses available in range set"), after: time.Second},
	{name: "network not ready", spec: plain, fault: withFaults(func(f *faults) { f.network = errTest }), after: time.Second},
	{name: "sandbox hangs", spec: plain, fault: hangCall("RunPodSandbox"), after: 40 * time.Second},
	{name: "runtime class missing", spec: "runtimeClassName: none\n  " + plain, after: time.Second},
	{name: "runtime down", spec: plain, fault: func(w *testNode) {
		for _, method := range []string{"RunPodSandbox", "ListPodSandbox", "ListContainers", "PullImage", "ImageStatus"} {
			failCall(method, codes.Unavailable, "connection refused")(w)
		}
	}, after: time.Second},
	{name: "cgroup not writable", spec: plain, fault: withFaults(func(f *faults) { f.cgroup = errTest }), after: time.Second},

	// Containers.
	{name: "root forbidden", spec: "containers: [{name: app, image: 'app:1', securityContext: {runAsNonRoot: true}}]"},
	{name: "user unknown to the image", spec: plain, fault: failCall("CreateContainer", codes.Unknown, "unable to find user nobody2"), after: time.Second},
	{name: "creation hangs", spec: plain, fault: hangCall("CreateContainer"), after: 30 * time.Second},
	{name: "command not found", spec: "containers: [{name: app, image: 'app:1', command: [none]}]", fault: failCall("StartContainer", codes.Unknown, "exec: \"none\": executable file not found in $PATH"), after: time.Second},
	{name: "crash loop", spec: plain, fault: exits("app", 3), after: 25 * time.Second},
	{name: "killed by a signal", spec: plain, fault: exits("app", 139), after: 25 * time.Second},
	{name: "completes and is restarted", spec: plain, fault: exits("app", 0), after: 25 * time.Second},
	{name: "fails without restart", spec: "restartPolicy: Never\n  " + plain, fault: exits("app", 3), after: time.Second},
	{name: "init container fails", spec: "initContainers: [{name: init, image: 'app:1'}]\n  " + plain, fault: exits("init", 4), after: 25 * time.Second},
	{name: "init container runs", spec: "initContainers: [{name: init, image: 'app:1'}]\n  " + plain, after: 25 * time.Second},
	{name: "postStart hook fails", spec: "containers: [{name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [x]}}}}]", fault: sick("app"), after: time.Second},
	{name: "postStart hook hangs", spec: "containers: [{name: app, image: 'app:1', lifecycle: {postStart: {exec: {command: [x]}}}}]", fault: hangCall("ExecSync"), after: 30 * time.Second},

	// Probes.
	{name: "startup never done", spec: "containers: [{name: app, image: 'app:1', startupProbe: {exec: {command: [x]}, periodSeconds: 5, failureThreshold: 100}}]", fault: sick("app"), after: 30 * time.Second},
	{name: "killed by startup probe", spec: probing("startupProbe", "exec: {command: [x]}"), fault: sick("app"), after: 100 * time.Second},
	{name: "killed by liveness probe", spec: probing("livenessProbe", "exec: {command: [x]}"), fault: sick("app"), after: 100 * time.Second},
	{name: "not ready: command", spec: probing("readinessProbe", "exec: {command: [x]}"), fault: sick("app"), after: 30 * time.Second},
	{name: "not ready: probe errors", spec: probing("readinessProbe", "exec: {command: [x]}"), fault: failCall("ExecSync", codes.Unknown, "no such process"), after: 30 * time.Second},
	{name: "not ready: command too slow", spec: probing("readinessProbe", "exec: {command: [x]}"), fault: failCall("ExecSync", codes.DeadlineExceeded, "timed out"), after: 30 * time.Second},
	{name: "not ready: not yet", spec: "containers: [{name: app, image: 'app:1', readinessProbe: {exec: {command: [x]}, initialDelaySeconds: 60}}]"},
	{name: "readiness gate", spec: "readinessGates: [{conditionType: example.com/lb}]\n  " + plain},

	// Admission.
	{name: "not enough CPU", spec: plain, fault: reject("OutOfcpu")},
	{name: "not enough memory", spec: plain, fault: reject("OutOfmemory")},
	{name: "taint", spec: plain, fault: reject("TaintToleration")},
	{name: "affinity", spec: plain, fault: reject("NodeAffinity")},
	{name: "host port taken", spec: plain, fault: reject("NodePorts")},
	{name: "sysctl refused", spec: plain, fault: reject("SysctlForbidden")},
	{name: "AppArmor", spec: plain, fault: reject("AppArmor")},
	{name: "CPU set impossible", spec: plain, fault: reject("TopologyAffinityError")},
	{name: "CPUs not whole cores", spec: plain, fault: reject("SMTAlignmentError")},
	{name: "node shutting down", spec: plain, fault: reject("NodeShutdown")},
	{name: "device lost", spec: plain, fault: withFaults(func(f *faults) { f.resources = pod.RejectAllocation(errTest) }), after: time.Second},
	{name: "device awaited", spec: plain, fault: func(w *testNode) { w.awaited["web"] = "gpu" }, after: time.Second},
	{name: "claim of devices not prepared", spec: plain, fault: withFaults(func(f *faults) { f.resources = errTest }), after: time.Second},
	{name: "disk pressure", spec: plain, then: func(w *testNode) {
		w.agent.workers.Evict("web-uid", pod.Failure{Reason: "Evicted", Signal: "nodefs.available", Message: "The node was low on resource: ephemeral-storage."}, nil)
	}, after: time.Second},
	{name: "node shut down under it", spec: plain, then: func(w *testNode) {
		w.agent.workers.Evict("web-uid", pod.Failure{Reason: "Terminated", Message: "Pod was terminated in response to imminent node shutdown."}, nil)
	}, after: time.Second},
	{name: "preempted", spec: plain, then: func(w *testNode) {
		w.agent.workers.Evict("web-uid", pod.Failure{Reason: "Preempting", Message: "Preempted in order to admit critical pod"}, nil)
	}, after: time.Second},
	{name: "deadline", spec: "activeDeadlineSeconds: 10\n  " + plain, after: 30 * time.Second},

	// The end.
	{name: "preStop hook hangs", spec: "containers: [{name: app, image: 'app:1', lifecycle: {preStop: {exec: {command: [x]}}}}]", fault: hangCall("ExecSync"), then: deletePod, after: 10 * time.Second},
	{name: "does not end in time", spec: plain, fault: hangCall("StopContainer"), then: deletePod, after: 10 * time.Second},
	{name: "unkillable process", spec: plain, fault: hangCall("StopContainer"), then: deletePod, after: 40 * time.Second},
	{name: "stop fails", spec: plain, fault: failCall("StopContainer", codes.Unknown, "kill: operation not permitted"), then: deletePod, after: time.Second},
	{name: "sandbox does not stop", spec: plain, fault: failCall("StopPodSandbox", codes.Unknown, "plugin type=\"bridge\" failed (delete)"), then: deletePod, after: time.Second},
	{name: "unmount busy", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.unmount = failWith(fmt.Errorf("unmount /x: %w", syscall.EBUSY)) }), then: deletePod, after: time.Second},
	{name: "mounted again", spec: mounting(cephfs), fault: withFaults(func(f *faults) {
		f.unmount = failWith(fmt.Errorf("remove volumes: %w", &safepath.MountPointError{Path: "/x"}))
	}), then: deletePod, after: time.Second},
	{name: "unmount hung", spec: mounting(cephfs), fault: withFaults(func(f *faults) { f.unmount = hang }), then: deletePod, after: 40 * time.Second},
	{name: "cgroup busy", spec: plain, fault: withFaults(func(f *faults) { f.removeCgroup = syscall.EBUSY }), then: deletePod, after: time.Second},
	{name: "finalizer", spec: plain, meta: ", finalizers: [example.com/wait]", then: deletePod, after: time.Second},

	// What is well.
	{name: "ready", spec: plain, after: time.Second},
	{name: "ready after restarts", spec: plain, fault: exits("app", 3), then: func(w *testNode) {
		w.mu.Lock()
		delete(w.exits, "app")
		w.mu.Unlock()
	}, after: 60 * time.Second},
	{name: "succeeded", spec: "restartPolicy: Never\n  " + plain, fault: exits("app", 0), after: time.Second},
}

// makeVolume makes the directory of faulty volumes, with a link that leaves it.
func makeVolume(w *testNode) {
	dir := filepath.Join(w.root, "faulty")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink("/etc", filepath.Join(dir, "link"))); err != nil {
		w.t.Fatal(err)
	}
}

// boundTo makes a claim, and the volume that it is bound to, which belongs to the claim with this UID.
func boundTo(source v1.PersistentVolumeSource, claim types.UID) func(*testNode) {
	return func(w *testNode) {
		w.faults.claim = &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: "c"},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
		}
		w.faults.persistentVolume = &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec:       v1.PersistentVolumeSpec{PersistentVolumeSource: source, ClaimRef: &v1.ObjectReference{UID: claim}},
		}
	}
}
