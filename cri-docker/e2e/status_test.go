package e2e

import (
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestStatus: what a kubelet asks before it starts pods.
func TestStatus(t *testing.T) {
	version, err := shared.Version(t.Context(), &runtimeapi.VersionRequest{})
	if err != nil || version.GetRuntimeName() != "docker" || version.GetRuntimeApiVersion() != "v1" || !strings.HasPrefix(version.GetRuntimeVersion(), "2") {
		t.Errorf("version %v, %v", version, err)
	}
	answer, err := shared.Status(t.Context(), &runtimeapi.StatusRequest{Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.GetStatus().GetConditions() {
		if !c.GetStatus() {
			t.Errorf("condition %v; want true", c)
		}
	}
	var handlers []string
	for _, h := range answer.GetRuntimeHandlers() {
		handlers = append(handlers, h.GetName())
	}
	if !slices.Contains(handlers, "") || !slices.Contains(handlers, "runc") {
		t.Errorf("runtime handlers %q; want the default and runc", handlers)
	}
	if !strings.Contains(answer.GetInfo()["config"], `"cgroupDriver":"cgroupfs"`) {
		t.Errorf("info %v", answer.GetInfo())
	}
	config, err := shared.RuntimeConfig(t.Context(), &runtimeapi.RuntimeConfigRequest{})
	if err != nil || config.GetLinux().GetCgroupDriver() != runtimeapi.CgroupDriver_CGROUPFS {
		t.Errorf("configuration %v, %v; want the cgroup driver of the engine", config, err)
	}
	p := runPod(t, shared)
	handled, err := shared.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig(t), RuntimeHandler: "no-such-handler"})
	if err == nil {
		t.Errorf("a runtime handler that does not exist: %v", handled)
	}
	if p.status().GetState() != runtimeapi.PodSandboxState_SANDBOX_READY {
		t.Error("a request for the same attempt has ended the sandbox")
	}
}

// TestNetworkNotReady: the reason is in the condition.
func TestNetworkNotReady(t *testing.T) {
	s := ownShim(t, "--cni-conf-dir="+t.TempDir())
	answer, err := s.Status(t.Context(), &runtimeapi.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.GetStatus().GetConditions() {
		if want := c.GetType() == runtimeapi.RuntimeReady; c.GetStatus() != want {
			t.Errorf("condition %v; want %v", c, want)
		}
		if c.GetType() == runtimeapi.NetworkReady && !strings.Contains(c.GetMessage(), "no CNI configuration in") {
			t.Errorf("message %q", c.GetMessage())
		}
	}
}
