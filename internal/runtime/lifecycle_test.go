package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// testPod parses the spec of a pod named p in ns.
func testPod(t *testing.T, spec string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "p", "u"
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func TestContainerFilesAreRemoved(t *testing.T) {
	b := newBench(t, nil)
	ctx := context.Background()
	p := testPod(t, `{containers: [{name: c, image: i, terminationMessagePath: /dev/termination-log}]}`)
	ref, c := pod.RefOf(p), &p.Spec.Containers[0]

	sandbox, err := b.PrepareSandbox(ctx, SandboxRequest{Pod: p, CgroupParent: "/kubepods/podu", Handler: handlerNamed("kata"), New: true})
	if err != nil {
		t.Fatal(err)
	}
	sandboxID, ips, err := b.CreateSandbox(ctx, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := b.PrepareContainer(ctx, p, c, gatherInput(Input{Pod: p, Container: c, ImageRef: "sha256:1", PodIPs: ips,
		Sandbox: sandbox, SandboxID: sandboxID, HostsIPs: ips, NoInstance: true}))
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.CreateContainer(ctx, prepared)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(b.cfg.PodLogsDir, "ns_p_u/c/0.log")
	writeFile(t, log, "")
	writeFile(t, log+".20261115-015540.gz", "")
	writeFile(t, filepath.Join(b.cfg.PodLogsDir, "ns_p_u/c/1.log"), "")
	if err := b.StartContainer(ctx, p, c, id, 0, nil); err != nil {
		t.Fatal(err)
	}
	expect(t, "calls", []string{"run p kata", "create c in sandbox", "start id-c"}, b.cri.calls)
	expect(t, "events", []string{"spec.containers{c} Normal Created Container created", "spec.containers{c} Normal Started Container started"}, b.events.all)

	link := filepath.Join(b.cfg.ContainerLogsDir, "p_ns_c-id-c.log")
	if target, err := os.Readlink(link); err != nil || target != log {
		t.Errorf("link to %q %v", target, err)
	}
	words := filepath.Join(b.cfg.RootDir, "pods/u/containers/c/00000abc")
	if info, err := os.Stat(words); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("termination log %v %v", info, err)
	}
	if hosts, err := os.ReadFile(filepath.Join(b.cfg.RootDir, "pods/u/etc-hosts")); err != nil || string(hosts) != "[10.0.0.1]" {
		t.Errorf("hosts file %q %v", hosts, err)
	}

	volume := filepath.Join(b.cfg.RootDir, "pods/u/volumes/v/file")
	writeFile(t, volume, "")
	dead := &pod.Container{ID: id, Name: "c", LogPath: log, Mounts: []pod.Mount{{HostPath: words}, {HostPath: volume}}}
	for range 2 { // again is as good
		if err := b.removeContainer(ctx, ref, dead); err != nil {
			t.Fatal(err)
		}
	}
	left := files(t, filepath.Dir(b.cfg.RootDir))
	expect(t, "files left", []string{"kubelet/pods/u/etc-hosts", "kubelet/pods/u/volumes/v/file", "pods/ns_p_u/c/1.log"}, left)

	if n, err := b.nextLogNumber(ref, "c"); n != 2 || err != nil {
		t.Errorf("next restart count %d %v, want 2", n, err)
	}
	if err := os.Symlink(filepath.Join(b.cfg.PodLogsDir, "ns_p_u/c/1.log"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/elsewhere", filepath.Join(b.cfg.ContainerLogsDir, "other.log")); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveLogs(ref); err != nil {
		t.Fatal(err)
	}
	expect(t, "files left", []string{"containers/other.log", "kubelet/pods/u/etc-hosts", "kubelet/pods/u/volumes/v/file"}, files(t, filepath.Dir(b.cfg.RootDir)))
	if n, err := b.nextLogNumber(ref, "c"); n != 0 || err != nil {
		t.Errorf("next restart count %d %v, want 0", n, err)
	}
}

// handlerNamed finds the same runtime for every pod.
func handlerNamed(name string) func(*v1.Pod) (Handler, error) {
	return func(*v1.Pod) (Handler, error) { return Handler{Name: name}, nil }
}

// gatherInput returns a gather function for PrepareContainer.
func gatherInput(in Input) func() (Input, error) { return func() (Input, error) { return in, nil } }

// files lists all files below dir, the bench's /sys aside.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if relative, _ := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			all = append(all, relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// A pod whose log directory would have too long a name never starts, and must still be removable.
func TestRemoveLogsOfPodWithTooLongName(t *testing.T) {
	b := newBench(t, nil)
	if err := os.MkdirAll(b.cfg.PodLogsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	ref := pod.Ref{Namespace: strings.Repeat("s", 63), Name: strings.Repeat("n", 253), UID: "47789b3f-7c15-4e9b-a2ef-b0724ebf9f50"}
	if err := b.RemoveLogs(ref); err != nil {
		t.Errorf("remove logs: %v", err)
	}
}

func TestRemoveLogFilesStaysInItsDirectory(t *testing.T) {
	b := newBench(t, nil)
	outside := filepath.Join(t.TempDir(), "c", "0.log")
	writeFile(t, outside, "")
	for _, path := range []string{outside, b.cfg.PodLogsDir + "/../" + filepath.Base(outside), b.cfg.PodLogsDir, ""} {
		if err := b.removeContainer(context.Background(), pod.Ref{}, &pod.Container{ID: "x", LogPath: path}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestContainerFailuresAreRecorded(t *testing.T) {
	refused := status.Error(codes.Unknown, "container id-c: no such file")
	for name, c := range map[string]struct {
		call   string
		dns    fakeDNS
		reason string
		event  string
	}{
		"CreateContainer fails":        {call: "create c in sandbox", reason: "CreateContainerError", event: "spec.containers{c} Warning Failed Error: container id-c: no such file"},
		"StartContainer fails":         {call: "start id-c", reason: "RunContainerError", event: "spec.containers{c} Warning Failed Error: container c: no such file"},
		"hosts file cannot be written": {dns: fakeDNS{hostsErr: errors.New("disk full")}, reason: "CreateContainerConfigError", event: "spec.containers{c} Warning Failed Error: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ *Config, d *Deps) { d.DNS = c.dns })
			b.cri.fail[c.call] = refused
			p := testPod(t, `{containers: [{name: c, image: i}]}`)
			sandbox, _ := b.PrepareSandbox(t.Context(), SandboxRequest{Pod: p, Handler: handlerNamed("")})
			prepared, err := b.PrepareContainer(t.Context(), p, &p.Spec.Containers[0],
				gatherInput(Input{Pod: p, Container: &p.Spec.Containers[0], PodIPs: []string{"10.0.0.1"}, Sandbox: sandbox, SandboxID: "sandbox"}))
			if err != nil {
				t.Fatal(err)
			}
			id, err := b.CreateContainer(context.Background(), prepared)
			if err == nil {
				err = b.StartContainer(context.Background(), p, &p.Spec.Containers[0], id, 0, nil)
			}
			var known *Error
			if !errors.As(err, &known) || known.Reason != c.reason || known.Waiting().Message == "" {
				t.Fatalf("error %+v, want %s", err, c.reason)
			}
			if last := b.events.all[len(b.events.all)-1]; last != c.event {
				t.Errorf("event %q, want %q", last, c.event)
			}
		})
	}
}

func TestSandboxFailureIsRecorded(t *testing.T) {
	b := newBench(t, nil)
	b.cri.fail["run p "] = status.Error(codes.Unavailable, "no network")
	p := testPod(t, `{}`)
	sandbox, _ := b.PrepareSandbox(t.Context(), SandboxRequest{Pod: p, Handler: handlerNamed(""), New: true})
	_, _, err := b.CreateSandbox(context.Background(), sandbox)
	var known *Error
	if !errors.As(err, &known) || known.Message != `Failed to create sandbox for pod "p_ns(u)": rpc error: code = Unavailable desc = no network` {
		t.Errorf("error %+v", err)
	}
	expect(t, "events", []string{" Warning FailedCreatePodSandBox Failed to create pod sandbox: rpc error: code = Unavailable desc = no network"}, b.events.all)

	b.events.all = nil
	request := SandboxRequest{Pod: p, Handler: func(*v1.Pod) (Handler, error) { return Handler{}, errors.New("no such class") }, New: true}
	if _, err := b.PrepareSandbox(t.Context(), request); !errors.As(err, &known) || known.Reason != ReasonCreateSandbox {
		t.Errorf("error %+v", err)
	}
	request.New = false
	if _, err := b.PrepareSandbox(t.Context(), request); err != nil {
		t.Errorf("a sandbox that exists needs its runtime class: %v", err)
	}
	expect(t, "events", []string{" Warning FailedCreatePodSandBox Failed to create pod sandbox: no such class"}, b.events.all)

	// Whoever deletes a pod need not hear that it did not start.
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := b.CreateSandbox(ended, sandbox); err == nil || len(b.events.all) != 1 {
		t.Errorf("%v, events %q", err, b.events.all)
	}
}

func TestPostStart(t *testing.T) {
	const spec = `{terminationGracePeriodSeconds: 7, containers: [{name: c, lifecycle: {postStart: {exec: {command: [sh, x]}}}}]}`
	t.Run("runs after the start", func(t *testing.T) {
		b := newBench(t, nil)
		p := testPod(t, spec)
		if err := b.StartContainer(context.Background(), p, &p.Spec.Containers[0], "id", 0, nil); err != nil {
			t.Fatal(err)
		}
		expect(t, "calls", []string{"start id", "exec id [sh x] 0s"}, b.cri.calls)
	})
	t.Run("stops the container when it fails", func(t *testing.T) {
		b := newBench(t, nil)
		b.cri.exec = func(context.Context, []string) (cri.ExecResult, error) {
			return cri.ExecResult{Stderr: []byte("secret"), ExitCode: 3}, nil
		}
		p := testPod(t, spec)
		err := b.StartContainer(context.Background(), p, &p.Spec.Containers[0], "id", 0, nil)
		var known *Error
		want := `Exec lifecycle hook ([sh x]) for Container "c" in Pod "p_ns(u)" failed - error: command 'sh x' exited with 3: secret, message: "secret"`
		if !errors.As(err, &known) || known.Reason != "PostStartHookError" || known.Message != want {
			t.Errorf("error %+v, want %s", err, want)
		}
		expect(t, "calls", []string{"start id", "exec id [sh x] 0s", "stop id 7s"}, b.cri.calls)
		expect(t, "events", []string{
			"spec.containers{c} Normal Started Container started",
			"spec.containers{c} Warning FailedPostStartHook PostStartHook failed",
			"spec.containers{c} Normal Killing FailedPostStartHook",
		}, b.events.all)
	})
	t.Run("leaves the container alone when the pod is to end", func(t *testing.T) {
		b := newBench(t, nil)
		ctx, cancel := context.WithCancel(context.Background())
		b.cri.exec = func(ctx context.Context, _ []string) (cri.ExecResult, error) {
			cancel()
			return cri.ExecResult{}, ctx.Err()
		}
		p := testPod(t, spec)
		if err := b.StartContainer(ctx, p, &p.Spec.Containers[0], "id", 0, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		expect(t, "calls", []string{"start id", "exec id [sh x] 0s"}, b.cri.calls)
		expect(t, "events", []string{"spec.containers{c} Normal Started Container started"}, b.events.all)
	})
}

func TestRemoveSandboxStopsItFirst(t *testing.T) {
	b := newBench(t, nil)
	if err := b.removeSandbox(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
	expect(t, "calls", []string{"stop sandbox s", "remove sandbox s"}, b.cri.calls)
	b.cri.fail["stop sandbox t"] = errors.New("busy")
	if err := b.removeSandbox(context.Background(), "t"); err == nil || len(b.cri.calls) != 3 {
		t.Errorf("a sandbox that cannot be stopped was removed: %v", err)
	}
}

func TestExec(t *testing.T) {
	b := newBench(t, nil)
	b.cri.exec = func(context.Context, []string) (cri.ExecResult, error) {
		return cri.ExecResult{Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 1}, nil
	}
	output, code, err := b.Exec(context.Background(), "id", []string{"false"}, time.Second)
	if string(output) != "outerr" || code != 1 || err != nil {
		t.Errorf("%q %d %v", output, code, err)
	}
}

func TestNewRejects(t *testing.T) {
	good := newBench(t, nil)
	for name, edit := range map[string]func(*Config, *Deps){
		"relative root directory": func(c *Config, _ *Deps) { c.RootDir = "kubelet" },
		"no memory capacity":      func(c *Config, _ *Deps) { c.MemoryCapacity = 0 },
		"no CPU period":           func(c *Config, _ *Deps) { c.CPUPeriod = 0 },
		"no runtime":              func(_ *Config, d *Deps) { d.CRI = nil },
		"no log tail":             func(_ *Config, d *Deps) { d.LogTail = nil },
	} {
		cfg, deps := good.cfg, good.deps
		edit(&cfg, &deps)
		if _, err := New(cfg, deps); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
