package container

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/host"
	"swiftlet/cri-docker/internal/labels"
)

func abilities(t *testing.T) Abilities {
	t.Helper()
	limits, err := host.ReadLimits(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return Abilities{Limits: limits}
}

func translated(t *testing.T, change func(*runtimeapi.ContainerConfig)) (*dockercontainer.Config, *dockercontainer.HostConfig, error) {
	t.Helper()
	c := &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "i"},
		Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{}, SecurityContext: &runtimeapi.LinuxContainerSecurityContext{}}}
	change(c)
	return request{config: c, sandboxID: "pause", image: "sha256:i", cgroupParent: "/pod", abilities: abilities(t)}.translate()
}

func TestTranslateProcess(t *testing.T) {
	c, h, err := translated(t, func(c *runtimeapi.ContainerConfig) {
		c.Command, c.Args, c.WorkingDir = []string{"sh"}, []string{"-c", "x"}, "/w"
		c.Envs = []*runtimeapi.KeyValue{{Key: "A", Value: []byte("b=c")}}
		c.Tty, c.Stdin = true, true
		c.StopSignal = runtimeapi.Signal_SIGNAL_SIGUSR1
		s := c.Linux.SecurityContext
		s.RunAsUser, s.RunAsGroup = &runtimeapi.Int64Value{Value: 5}, &runtimeapi.Int64Value{Value: 6}
		s.SupplementalGroups = []int64{7, 8}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Entrypoint, []string{"sh"}) || !reflect.DeepEqual(c.Cmd, []string{"-c", "x"}) || c.WorkingDir != "/w" ||
		!reflect.DeepEqual(c.Env, []string{"A=b=c"}) || !c.Tty || !c.OpenStdin || c.StopSignal != "SIGUSR1" || c.User != "5:6" {
		t.Errorf("process %+v", c)
	}
	if !reflect.DeepEqual(h.GroupAdd, []string{"7", "8"}) || h.CgroupParent != "/pod" || h.LogConfig.Type != "json-file" {
		t.Errorf("host configuration %+v", h)
	}
	if c.Healthcheck.Test[0] != "NONE" {
		t.Errorf("health check of the image is not disabled: %v", c.Healthcheck)
	}
}

func TestNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		options *runtimeapi.NamespaceOption
		want    string // network, IPC, PID, UTS
	}{
		"pod":       {&runtimeapi.NamespaceOption{}, "container:pause container:pause container:pause "},
		"default":   {&runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}, "container:pause container:pause  "},
		"node":      {&runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Ipc: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_NODE}, "container:pause host host host"},
		"of_target": {&runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: "t"}, "container:pause container:pause container:t "},
	} {
		t.Run(name, func(t *testing.T) {
			_, h, err := translated(t, func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.NamespaceOptions = test.options })
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join([]string{string(h.NetworkMode), string(h.IpcMode), string(h.PidMode), string(h.UTSMode)}, " "); got != test.want {
				t.Errorf("%q; want %q", got, test.want)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	binds, others, err := mounts([]*runtimeapi.Mount{
		{HostPath: "/a:b", ContainerPath: "/c", Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL},
		{HostPath: "/d", ContainerPath: "/e", Readonly: true, SelinuxRelabel: true},
	})
	want := []mount.Mount{{Type: mount.TypeBind, Source: "/a:b", Target: "/c", BindOptions: &mount.BindOptions{Propagation: "rshared"}}}
	if err != nil || !reflect.DeepEqual(others, want) || !reflect.DeepEqual(binds, []string{"/d:/e:rprivate,Z,ro"}) {
		t.Errorf("binds %v, mounts %+v, %v", binds, others, err)
	}
	for name, m := range map[string]*runtimeapi.Mount{
		"propagation": {HostPath: "/a", ContainerPath: "/b", Propagation: 9},
		"colon":       {HostPath: "/a:b", ContainerPath: "/b", SelinuxRelabel: true},
	} {
		if _, _, err := mounts([]*runtimeapi.Mount{m}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v; want InvalidArgument", name, err)
		}
	}
}

func TestSeccompAndAppArmor(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "p.json")
	if err := os.WriteFile(profile, []byte(`{"x":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	local := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: profile}
	byDefault := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	for name, test := range map[string]struct {
		profile *runtimeapi.SecurityProfile
		path    string
		want    []string
	}{
		"default": {byDefault, "", nil}, "none": {nil, "", []string{"seccomp=unconfined"}},
		"local": {local, "", []string{`seccomp={"x":1}`}}, "old_default": {nil, "runtime/default", nil},
		"old_local": {nil, "localhost/" + profile, []string{`seccomp={"x":1}`}},
	} {
		if got, err := Seccomp(test.profile, test.path); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("seccomp %s: %v, %v; want %v", name, got, err, test.want)
		}
	}
	missing := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "/absent"}
	if _, err := Seccomp(missing, ""); err == nil || !strings.Contains(err.Error(), "/absent") {
		t.Errorf("missing profile: %v", err)
	}
	if _, err := appArmor(local, "", false); status.Code(err) != codes.InvalidArgument {
		t.Errorf("AppArmor profile without AppArmor: %v; want InvalidArgument", err)
	}
	if got, err := appArmor(local, "", true); err != nil || !reflect.DeepEqual(got, []string{"apparmor=" + profile}) {
		t.Errorf("AppArmor: %v, %v", got, err)
	}
	if got, err := appArmor(byDefault, "", false); err != nil || got != nil {
		t.Errorf("AppArmor default: %v, %v", got, err)
	}
}

// TestPathsAreSentAlways: Docker masks its own paths if it gets none.
func TestPathsAreSentAlways(t *testing.T) {
	_, h, err := translated(t, func(*runtimeapi.ContainerConfig) {})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil || !strings.Contains(string(text), `"MaskedPaths":[],"ReadonlyPaths":[]`) {
		t.Errorf("%s, %v; want empty lists", text, err)
	}
}

func TestResources(t *testing.T) {
	for name, test := range map[string]struct {
		asked        *runtimeapi.LinuxContainerResources
		memory, swap int64
	}{
		"no_swap":    {&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 100}, 100, 100},
		"swap":       {&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 100, MemorySwapLimitInBytes: 150}, 100, 150},
		"no_limit":   {&runtimeapi.LinuxContainerResources{}, 0, 0},
		"limit_gone": {&runtimeapi.LinuxContainerResources{MemoryLimitInBytes: -1}, -1, -1},
	} {
		if got := resources(test.asked); got.Memory != test.memory || got.MemorySwap != test.swap {
			t.Errorf("%s: memory %d, swap %d; want %d, %d", name, got.Memory, got.MemorySwap, test.memory, test.swap)
		}
	}
}

func TestCgroupParent(t *testing.T) {
	for _, test := range []struct{ parent, driver, want string }{
		{"/kubepods/burstable/podx", "cgroupfs", "/kubepods/burstable/podx"},
		{"/kubepods.slice/kubepods-podx.slice", "systemd", "kubepods-podx.slice"},
		{"", "systemd", ""},
	} {
		if got := CgroupParent(test.parent, test.driver); got != test.want {
			t.Errorf("%s with %s: %s; want %s", test.parent, test.driver, got, test.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	const started, finished = "2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z"
	for name, test := range map[string]struct {
		state  dockercontainer.State
		want   runtimeapi.ContainerState
		reason string
		code   int32
	}{
		"created":    {dockercontainer.State{Status: "created", StartedAt: "0001-01-01T00:00:00Z"}, runtimeapi.ContainerState_CONTAINER_CREATED, "", 0},
		"running":    {dockercontainer.State{Status: "running", StartedAt: started}, runtimeapi.ContainerState_CONTAINER_RUNNING, "", 0},
		"paused":     {dockercontainer.State{Status: "paused", StartedAt: started}, runtimeapi.ContainerState_CONTAINER_RUNNING, "", 0},
		"completed":  {dockercontainer.State{Status: "exited", StartedAt: started, FinishedAt: finished}, runtimeapi.ContainerState_CONTAINER_EXITED, "Completed", 0},
		"failed":     {dockercontainer.State{Status: "exited", ExitCode: 2, StartedAt: started, FinishedAt: finished}, runtimeapi.ContainerState_CONTAINER_EXITED, "Error", 2},
		"oom":        {dockercontainer.State{Status: "exited", ExitCode: 137, OOMKilled: true, StartedAt: started, FinishedAt: finished}, runtimeapi.ContainerState_CONTAINER_EXITED, "OOMKilled", 137},
		"dead":       {dockercontainer.State{Status: "dead", ExitCode: 1}, runtimeapi.ContainerState_CONTAINER_EXITED, "Error", 1},
		"start_fail": {dockercontainer.State{Status: "created", ExitCode: 127, Error: "no program"}, runtimeapi.ContainerState_CONTAINER_EXITED, "StartError", 127},
	} {
		t.Run(name, func(t *testing.T) {
			s := Describe(dockercontainer.InspectResponse{ID: "x", State: &test.state, Config: &dockercontainer.Config{StopSignal: "SIGQUIT"}},
				labels.Container{Config: &runtimeapi.ContainerConfig{}, CreatedAt: 1}, nil)
			if s.GetState() != test.want || s.GetReason() != test.reason || s.GetExitCode() != test.code {
				t.Errorf("%s, reason %q, code %d", s.GetState(), s.GetReason(), s.GetExitCode())
			}
			if s.GetFinishedAt() != 0 && s.GetFinishedAt() < s.GetStartedAt() {
				t.Errorf("finished at %d, before the start at %d", s.GetFinishedAt(), s.GetStartedAt())
			}
			if s.GetStopSignal() != runtimeapi.Signal_SIGNAL_SIGQUIT {
				t.Errorf("stop signal %s", s.GetStopSignal())
			}
		})
	}
}
