package cri

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

func labels(more map[string]string) map[string]string {
	all := map[string]string{LabelPodName: "full", LabelPodNamespace: "golden", LabelPodUID: "feff0df6"}
	for k, v := range more {
		all[k] = v
	}
	return all
}

func TestObservedFrom(t *testing.T) {
	at := time.Unix(100, 0)
	got := ObservedFrom(
		[]*runtimeapi.PodSandboxStatus{
			{Id: "old", Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 0}, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY, CreatedAt: 1, Labels: labels(nil)},
			{
				Id: "new", Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 1}, CreatedAt: 2, Labels: labels(nil),
				Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.88.0.9", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::9"}}},
				Linux:   &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}},
			},
		},
		[]*runtimeapi.ContainerStatus{
			{
				Id: "c0", State: runtimeapi.ContainerState_CONTAINER_EXITED, CreatedAt: 3, StartedAt: 4, FinishedAt: 5, ExitCode: 3,
				Reason: "Error", Message: "word", Labels: labels(map[string]string{LabelContainerName: "main"}),
				Annotations: map[string]string{AnnotationRestartCount: "0", AnnotationContainerHash: "e3b3a006"},
			},
			{
				Id: "c1", State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: 6, StartedAt: 7, ExitCode: 9, Reason: "stale",
				Labels:      labels(map[string]string{LabelContainerName: "main"}),
				Annotations: map[string]string{AnnotationRestartCount: "1", AnnotationContainerHash: "e3b3a006"},
				Image:       &runtimeapi.ImageSpec{Image: "docker.io/library/busybox:1.36"},
				ImageRef:    "docker.io/library/busybox@sha256:aa", ImageId: "sha256:bb", LogPath: "/var/log/pods/x/main/1.log",
				User:       &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: 1, Gid: 2, SupplementalGroups: []int64{2, 3}}},
				StopSignal: runtimeapi.Signal_SIGNAL_SIGRTMINPLUS1,
				Resources:  &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 102, MemoryLimitInBytes: 64 << 20}},
				Mounts:     []*runtimeapi.Mount{{HostPath: "/h", ContainerPath: "/c", Readonly: true}},
			},
		}, at)
	signal := v1.Signal("SIGRTMIN+1")
	half, tenth, memory := resource.MustParse("500m"), resource.MustParse("100m"), resource.MustParse("64Mi")
	want := pod.Observed{
		Ref: pod.Ref{Namespace: "golden", Name: "full", UID: "feff0df6"}, At: at,
		Sandboxes: []pod.Sandbox{
			{ID: "new", Attempt: 1, CreatedAt: time.Unix(0, 2), Ready: true, IPs: []string{"10.88.0.9", "fd00::9"}},
			{ID: "old", CreatedAt: time.Unix(0, 1)},
		},
		Containers: []pod.Container{
			{
				ID: "c1", Name: "main", RestartCount: 1, State: pod.Running, CreatedAt: time.Unix(0, 6), StartedAt: time.Unix(0, 7),
				Image: "docker.io/library/busybox:1.36", ImageID: "docker.io/library/busybox@sha256:aa",
				Hash: "e3b3a006", LogPath: "/var/log/pods/x/main/1.log",
				Annotations: map[string]string{AnnotationRestartCount: "1", AnnotationContainerHash: "e3b3a006"},
				User:        &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1, GID: 2, SupplementalGroups: []int64{2, 3}}},
				StopSignal:  &signal,
				Resources:   &pod.ContainerResources{CPULimit: &half, CPURequest: &tenth, MemoryLimit: &memory},
				Mounts:      []pod.Mount{{HostPath: "/h", ContainerPath: "/c", ReadOnly: true}},
			},
			{
				ID: "c0", Name: "main", State: pod.Exited, CreatedAt: time.Unix(0, 3), StartedAt: time.Unix(0, 4), FinishedAt: time.Unix(0, 5),
				ExitCode: 3, Reason: "Error", Message: "word", Hash: "e3b3a006",
				Annotations: map[string]string{AnnotationRestartCount: "0", AnnotationContainerHash: "e3b3a006"},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		network *runtimeapi.PodSandboxNetworkStatus
		want    int
	}{
		"no network status":      {nil, 0},
		"host network":           {&runtimeapi.PodSandboxNetworkStatus{}, 0},
		"one":                    {&runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"}, 1},
		"two":                    {&runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}}}, 2},
		"one address is invalid": {&runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::x"}}}, 0},
	} {
		if got := ipsOf(test.network); len(got) != test.want {
			t.Errorf("%s: %v, want %d", name, got, test.want)
		}
	}
}

func TestHostNetwork(t *testing.T) {
	for mode, want := range map[runtimeapi.NamespaceMode]bool{runtimeapi.NamespaceMode_NODE: true, runtimeapi.NamespaceMode_POD: false} {
		got := SandboxFrom(&runtimeapi.PodSandboxStatus{Linux: &runtimeapi.LinuxPodSandboxStatus{
			Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{Network: mode}},
		}})
		if got.HostNetwork != want {
			t.Errorf("mode %v: host network %v", mode, got.HostNetwork)
		}
	}
}
