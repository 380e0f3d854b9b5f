package runtime

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
)

// testdata/calls.jsonl has the CRI calls that the reference kubelet made for the pods of
// testdata/pods.yaml. The same pods must lead to the same calls.

type goldenCall struct {
	Method string
	Pod    string
	Config json.RawMessage
}

func goldenPods(t *testing.T) map[string]*v1.Pod {
	t.Helper()
	text, err := os.ReadFile("testdata/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*v1.Pod{}
	for _, doc := range bytes.Split(text, []byte("---\n")) {
		p := &v1.Pod{}
		if err := yaml.UnmarshalStrict(doc, p); err != nil {
			t.Fatal(err)
		}
		pods[p.Name] = p
	}
	return pods
}

func goldenCalls(t *testing.T, method string) []goldenCall {
	t.Helper()
	f, err := os.Open("testdata/calls.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var calls []goldenCall
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c goldenCall
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Method == method {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		t.Fatalf("no %s was recorded", method)
	}
	return calls
}

// cgroupParents are the reference kubelet's cgroups of pods, by QoS class.
var cgroupParents = map[v1.PodQOSClass]string{
	v1.PodQOSGuaranteed: "/kubepods/pod",
	v1.PodQOSBurstable:  "/kubepods/burstable/pod",
	v1.PodQOSBestEffort: "/kubepods/besteffort/pod",
}

func TestSandboxConfigMatchesRecording(t *testing.T) {
	pods := goldenPods(t)
	r := newGolden(t)
	for _, call := range goldenCalls(t, "RunPodSandbox") {
		want := &runtimeapi.PodSandboxConfig{}
		if err := protojson.Unmarshal(call.Config, want); err != nil {
			t.Fatal(err)
		}
		t.Run(want.Metadata.Name, func(t *testing.T) {
			p := pods[want.Metadata.Name]
			got, err := r.sandboxConfig(p, 0, cgroupParents[pod.QOS(p)]+string(p.UID))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-recorded +ours)\n%s", diff)
			}
		})
	}
}

func TestContainerConfigMatchesRecording(t *testing.T) {
	pods := goldenPods(t)
	r := newGolden(t)
	for _, call := range goldenCalls(t, "CreateContainer") {
		want := &runtimeapi.ContainerConfig{}
		if err := protojson.Unmarshal(call.Config, want); err != nil {
			t.Fatal(err)
		}
		t.Run(call.Pod+"/"+want.Metadata.Name, func(t *testing.T) {
			p := pods[call.Pod]
			c := pod.FindContainer(p, want.Metadata.Name)
			envs, err := Environment(context.Background(), EnvInput{
				Pod: p, Container: c, PodIPs: podIPs(p), HostIPs: []string{p.Status.HostIP},
				Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("24580016Ki")},
			}, goldenSources())
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.containerConfig(Input{
				Pod: p, Container: c, RestartCount: int(want.Metadata.Attempt), ImageRef: want.Image.Image, Envs: envs,
				PodIPs: podIPs(p), Mounts: volumesOf(want), TargetID: want.Linux.SecurityContext.NamespaceOptions.TargetId,
			})
			if err != nil {
				t.Fatal(err)
			}
			// The recording's order of variables is a map's, and the file's name is random.
			sortEnvs(want)
			sortEnvs(got)
			nameTerminationLog(want)
			nameTerminationLog(got)
			if diff := gocmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("(-recorded +ours)\n%s", diff)
			}
		})
	}
}

func podIPs(p *v1.Pod) (ips []string) {
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

// volumesOf returns the mounts of volumes, which other packages compute.
func volumesOf(config *runtimeapi.ContainerConfig) (volumes []*runtimeapi.Mount) {
	for _, m := range config.Mounts {
		if m.ContainerPath != "/etc/hosts" && m.ContainerPath != "/dev/termination-log" {
			volumes = append(volumes, m)
		}
	}
	return volumes
}

func sortEnvs(config *runtimeapi.ContainerConfig) {
	slices.SortFunc(config.Envs, func(a, b *runtimeapi.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
}

func nameTerminationLog(config *runtimeapi.ContainerConfig) {
	for _, m := range config.Mounts {
		if dir, name := filepath.Split(m.HostPath); m.ContainerPath == "/dev/termination-log" && len(name) == 8 {
			m.HostPath = dir + strings.Repeat("x", 8)
		}
	}
}

func goldenSources() Sources {
	service := func(namespace, name, ip, port string, number int32) *v1.Service {
		s := &v1.Service{}
		s.Namespace, s.Name, s.Spec.ClusterIP = namespace, name, ip
		s.Spec.Ports = []v1.ServicePort{{Name: port, Port: number, Protocol: v1.ProtocolTCP}}
		return s
	}
	return &fakeSources{
		configMaps: map[string]map[string]string{"golden/cm": {"key": "value", "file.txt": "hello\n"}},
		secrets:    map[string]map[string]string{"golden/sec": {"password": "s3cret"}},
		services: []*v1.Service{
			service("golden", "web", "10.96.14.208", "http", 80),
			service("default", "kubernetes", "10.96.0.1", "https", 443),
		},
		synced: true,
	}
}

func TestContainerHashMatchesRecording(t *testing.T) {
	for name, want := range map[string]string{
		"c": "c0d793c2", "init": "5fa63512", "sidecar": "b52b55f2", "main": "e3b3a006", "debugger-bp9b5": "538f89cc",
	} {
		if got := ContainerHash(&v1.Container{Name: name, Image: "docker.io/library/busybox:1.36"}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
