package e2e

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestExitReasons(t *testing.T) {
	p := runPod(t, shared)
	for name, test := range map[string]struct {
		script, reason string
		code           int32
		memory         int64
	}{
		"completed": {"true", "Completed", 0, 0},
		"failed":    {"exit 7", "Error", 7, 0},
		"killed":    {"kill -9 $$; sleep 1000", "Error", 137, 0},
		"oom":       {"x=y; while true; do x=$x$x; done", "OOMKilled", 137, 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			id := p.run(name, test.script, func(c *runtimeapi.ContainerConfig) {
				c.Linux.Resources.MemoryLimitInBytes = test.memory
				if name == "killed" { // process 1 of a namespace ignores its own signals
					c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD}
				}
			})
			s := p.exited(id)
			if s.GetReason() != test.reason || s.GetExitCode() != test.code {
				t.Errorf("%s with code %d; want %s with %d", s.GetReason(), s.GetExitCode(), test.reason, test.code)
			}
			if s.GetStartedAt() < s.GetCreatedAt() || s.GetFinishedAt() < s.GetStartedAt() {
				t.Errorf("created %d, started %d, finished %d", s.GetCreatedAt(), s.GetStartedAt(), s.GetFinishedAt())
			}
		})
	}
}

func TestStartError(t *testing.T) {
	p := runPod(t, shared)
	id := p.create("c", "", func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/no-such-program"} })
	_, err := shared.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("start: %v; want an error that names the program", err)
	}
	s := p.containerStatus(id)
	if s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || s.GetReason() != "StartError" || !strings.Contains(s.GetMessage(), "no-such-program") {
		t.Errorf("status %v; want exited with StartError", s)
	}
}

func TestStopWithGrace(t *testing.T) {
	p := runPod(t, shared)
	stop := func(id string, seconds int64) time.Duration {
		began := time.Now()
		if _, err := shared.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: seconds}); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	polite := p.run("polite", "trap 'echo term; exit 3' TERM; echo ready; while true; do sleep 0.1; done")
	stubborn := p.run("stubborn", "trap '' TERM; echo ready; while true; do sleep 0.1; done")
	usr1 := p.run("usr1", "trap 'exit 4' USR1; echo ready; while true; do sleep 0.1; done", func(c *runtimeapi.ContainerConfig) {
		c.StopSignal = runtimeapi.Signal_SIGNAL_SIGUSR1
	})
	for _, name := range []string{"polite", "stubborn", "usr1"} {
		eventually(t, "signal handler", func() bool { return strings.Contains(p.output(name), "ready") })
	}
	stop(polite, 60)
	stop(usr1, 60)
	if took := stop(stubborn, 2); took < 2*time.Second {
		t.Errorf("was killed after %s; want 2 s of grace", took)
	}
	for id, code := range map[string]int32{polite: 3, stubborn: 137, usr1: 4} {
		if s := p.containerStatus(id); s.GetExitCode() != code {
			t.Errorf("%s exited with %d; want %d", s.GetMetadata().GetName(), s.GetExitCode(), code)
		}
	}
	if got := p.containerStatus(usr1).GetStopSignal(); got != runtimeapi.Signal_SIGNAL_SIGUSR1 {
		t.Errorf("stop signal %s; want SIGUSR1", got)
	}
	stop(polite, 5) // again: no error
	if _, err := shared.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: "gone"}); err != nil {
		t.Errorf("stop of a container that does not exist: %v", err)
	}
}

func TestSecurity(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000", func(c *runtimeapi.ContainerConfig) {
		s := c.Linux.SecurityContext
		s.RunAsUser, s.RunAsGroup = &runtimeapi.Int64Value{Value: 1000}, &runtimeapi.Int64Value{Value: 2000}
		s.SupplementalGroups = []int64{3000}
		s.ReadonlyRootfs, s.NoNewPrivs = true, true
		s.Capabilities = &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}
		s.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
		s.MaskedPaths, s.ReadonlyPaths = []string{"/proc/timer_list"}, []string{"/proc/sys"}
	})
	state := p.exec(id, "cat", "/proc/1/status")
	for _, want := range []string{"Uid:\t1000", "Gid:\t2000", "NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(state, want) {
			t.Errorf("status of process 1 does not have %q:\n%s", want, state)
		}
	}
	if got := p.exec(id, "id", "-G"); !strings.Contains(got, "2000") || !strings.Contains(got, "3000") {
		t.Errorf("groups %s; want 2000 and 3000", got)
	}
	if got := p.exec(id, "sh", "-c", "touch /x 2>&1 || true"); !strings.Contains(got, "Read-only") {
		t.Errorf("write to the root file system: %s", got)
	}
	if got := p.exec(id, "cat", "/proc/timer_list"); got != "" {
		t.Errorf("masked file has %q", got)
	}
	open := p.run("open", "sleep 1000", func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.Privileged = true })
	state = p.exec(open, "cat", "/proc/1/status")
	if !strings.Contains(state, "Seccomp:\t0") || strings.Contains(state, "CapEff:\t00000000a80425fb") {
		t.Errorf("a privileged container is confined:\n%s", state)
	}
}

func TestMountsAndDevices(t *testing.T) {
	p := runPod(t, shared)
	dir := box.Path("mounted:with-colon-" + p.id[:8])
	id := p.run("c", "sleep 1000", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{
			{HostPath: dir, ContainerPath: "/data"},
			{HostPath: dir, ContainerPath: "/readonly", Readonly: true, Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER},
			{HostPath: dir, ContainerPath: "/shared", Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL},
		}
		c.Devices = []*runtimeapi.Device{{HostPath: "/dev/null", ContainerPath: "/dev/nothing", Permissions: "rw"}}
	})
	p.exec(id, "sh", "-c", "echo hello > /data/file; echo x > /dev/nothing")
	if text, err := os.ReadFile(dir + "/file"); err != nil || string(text) != "hello\n" {
		t.Errorf("file on the host: %q, %v", text, err)
	}
	if got := p.exec(id, "sh", "-c", "touch /readonly/x 2>&1 || true"); !strings.Contains(got, "Read-only") {
		t.Errorf("write to read-only mount: %s", got)
	}
	mounts := p.exec(id, "cat", "/proc/self/mountinfo")
	for path, want := range map[string]string{"/data": "", "/readonly": "master:", "/shared": "shared:"} {
		for line := range strings.Lines(mounts) {
			fields := strings.Fields(line)
			if fields[4] == path && want != "" && !strings.Contains(line, want) {
				t.Errorf("mount %s; want %s", line, want)
			}
		}
	}
	if got := p.containerStatus(id).GetMounts(); len(got) != 3 || got[2].GetPropagation() != runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL {
		t.Errorf("mounts in status: %v", got)
	}
}

func TestUpdateResources(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000", func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{CpuShares: 512, CpuPeriod: 100000, CpuQuota: 50000, MemoryLimitInBytes: 64 << 20, OomScoreAdj: 500,
			Unified: map[string]string{"pids.max": "77"}}
	})
	read := func() string {
		return strings.Join(strings.Fields(p.exec(id, "sh", "-c",
			"cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /proc/1/oom_score_adj")), " ")
	}
	if got, want := read(), "512 50000 67108864 77 500"; got != want {
		t.Errorf("limits %s; want %s", got, want)
	}
	for _, memory := range []int64{128 << 20, 32 << 20} {
		_, err := shared.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id,
			Linux: &runtimeapi.LinuxContainerResources{CpuShares: 1024, CpuPeriod: 100000, CpuQuota: 80000, MemoryLimitInBytes: memory, Unified: map[string]string{"pids.max": "88"}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := read(), "1024 80000 33554432 88 500"; got != want {
		t.Errorf("limits %s; want %s", got, want)
	}
	if r := p.containerStatus(id).GetResources().GetLinux(); r.GetCpuShares() != 1024 || r.GetMemoryLimitInBytes() != 32<<20 {
		t.Errorf("limits in status: %v", r)
	}
}

func TestExecSync(t *testing.T) {
	p := runPod(t, shared)
	id := p.run("c", "sleep 1000")
	answer, err := shared.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", "echo out; echo err >&2; exit 5"}})
	if err != nil || string(answer.GetStdout()) != "out\n" || string(answer.GetStderr()) != "err\n" || answer.GetExitCode() != 5 {
		t.Errorf("%v, %v", answer, err)
	}
	_, err = shared.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", "sleep 12345; true"}, Timeout: 1})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a command that hangs: %v; want DeadlineExceeded", err)
	}
	eventually(t, "end of the command", func() bool { return !strings.Contains(p.exec(id, "ps"), "sleep 12345") })
	answer, err = shared.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: []string{"sh", "-c", "yes | head -c 20000000"}})
	if err != nil || len(answer.GetStdout()) != 16<<20 || !bytes.HasPrefix(answer.GetStdout(), []byte("y\ny\n")) {
		t.Errorf("long output: %d bytes, %v; want 16 MiB", len(answer.GetStdout()), err)
	}
	if _, err := shared.ExecSync(t.Context(), &runtimeapi.ExecSyncRequest{ContainerId: "gone", Cmd: []string{"true"}}); status.Code(err) != codes.NotFound {
		t.Errorf("exec in a container that does not exist: %v; want NotFound", err)
	}
}

func TestRefusedRequests(t *testing.T) {
	p := runPod(t, shared)
	for name, change := range map[string]func(*runtimeapi.ContainerConfig){
		"image volume": func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/x", Image: &runtimeapi.ImageSpec{Image: "x"}}}
		},
		"CDI device": func(c *runtimeapi.ContainerConfig) {
			c.CDIDevices = []*runtimeapi.CDIDevice{{Name: "vendor.com/gpu=0"}}
		},
		"user namespaces": func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD}}
		},
	} {
		config := containerConfig("c", "true")
		change(config)
		_, err := shared.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: config, SandboxConfig: p.config})
		if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want Unimplemented with its name", name, err)
		}
	}
	if _, err := shared.CheckpointContainer(t.Context(), &runtimeapi.CheckpointContainerRequest{}); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "CheckpointContainer") {
		t.Errorf("checkpoint: %v; want Unimplemented", err)
	}
}
