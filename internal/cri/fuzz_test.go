package cri

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// FuzzEvent: whatever a runtime sends, the observed state has only values that a pod's status may have.
func FuzzEvent(f *testing.F) {
	seed, err := proto.Marshal(&runtimeapi.ContainerEventResponse{
		PodSandboxStatus: &runtimeapi.PodSandboxStatus{Id: "s", Labels: map[string]string{LabelPodUID: "u"}, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"}},
		ContainersStatuses: []*runtimeapi.ContainerStatus{{Id: "c", State: runtimeapi.ContainerState_CONTAINER_EXITED, StopSignal: runtimeapi.Signal(15),
			Annotations: map[string]string{AnnotationRestartCount: "-7"},
			Resources: &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{
				CpuQuota: 1 << 62, CpuPeriod: 1, CpuShares: 1 << 62, MemoryLimitInBytes: 1 << 62}}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, message []byte) {
		var event runtimeapi.ContainerEventResponse
		if proto.Unmarshal(message, &event) != nil {
			return
		}
		var sandboxes []*runtimeapi.PodSandboxStatus
		if event.PodSandboxStatus != nil {
			sandboxes = append(sandboxes, event.PodSandboxStatus)
		}
		o := ObservedFrom(sandboxes, event.ContainersStatuses, time.Unix(0, event.CreatedAt))
		for _, c := range o.Containers {
			if c.RestartCount < 0 || c.RestartCount > 1<<31-1 {
				t.Errorf("restart count %d", c.RestartCount)
			}
			if s := c.StopSignal; s != nil && !slices.Contains(knownSignals(), *s) {
				t.Errorf("stop signal %q", *s)
			}
			if r := c.Resources; r != nil {
				if r.CPULimit != nil && r.CPULimit.Sign() < 0 || r.CPURequest != nil && r.CPURequest.Sign() < 0 || r.MemoryLimit != nil && r.MemoryLimit.Sign() < 0 {
					t.Errorf("negative resources: %+v", r)
				}
			}
		}
	})
}

// knownSignals are those that CRI has a name for.
func knownSignals() []v1.Signal {
	var all []v1.Signal
	for n := range runtimeapi.Signal_name {
		if s := signalFrom(runtimeapi.Signal(n)); s != nil {
			all = append(all, *s)
		}
	}
	return all
}
