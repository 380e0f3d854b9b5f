package labels

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func sandbox() Sandbox {
	return Sandbox{Handler: "runc", CreatedAt: 12345678901, Config: &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u-1", Attempt: 3},
		Labels:       map[string]string{"io.kubernetes.pod.name": "web"},
		Annotations:  map[string]string{"a": "b\n\"c\""},
		LogDirectory: "/var/log/pods/x",
		PortMappings: []*runtimeapi.PortMapping{{ContainerPort: 80, HostPort: 8080}},
	}}
}

func TestSandboxSurvivesLabels(t *testing.T) {
	want := sandbox()
	all, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSandbox("/"+SandboxName(want.Config), all)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got.Config, want.Config) || got.Handler != want.Handler || got.CreatedAt != want.CreatedAt {
		t.Errorf("got %v; want %v", got, want)
	}
	if all["io.kubernetes.pod.name"] != "web" {
		t.Errorf("labels %v do not have those of the request", all)
	}
}

func TestContainerLabelsHaveNoSecrets(t *testing.T) {
	want := Container{SandboxID: "s1", LogPath: "/l", Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c", Attempt: 1},
		Envs:     []*runtimeapi.KeyValue{{Key: "TOKEN", Value: []byte("secret")}},
		Args:     []string{"--password=secret"},
	}}
	all, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range all {
		if strings.Contains(value, "secret") {
			t.Errorf("label %s has the environment or the command: %s", key, value)
		}
	}
	got, err := DecodeContainer(ContainerName("s1", want.Config), all)
	if err != nil || got.SandboxID != "s1" || got.LogPath != "/l" || got.Config.GetMetadata().GetAttempt() != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestForeignContainers: an image can bring any label, but not the container's name.
func TestForeignContainers(t *testing.T) {
	all, err := sandbox().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeSandbox("/friendly_einstein", all); !errors.Is(err, ErrForeign) {
		t.Errorf("a container with forged labels: %v; want %v", err, ErrForeign)
	}
	if _, err := DecodeSandbox("/"+SandboxName(sandbox().Config), nil); !errors.Is(err, ErrForeign) {
		t.Errorf("a container with a forged name: %v; want %v", err, ErrForeign)
	}
	if _, err := DecodeContainer("/x", all); !errors.Is(err, ErrForeign) {
		t.Errorf("a sandbox as a container: %v; want %v", err, ErrForeign)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("n", 300)
	seen := map[string]string{}
	for _, parts := range [][]string{
		{"k8s", "POD", "a", "b", "c", "0"}, {"k8s", "POD", "a_b", "c", "d", "0"}, {"k8s", "POD", "a", "b_c", "d", "0"},
		{"k8s", "POD", "a/b", "c"}, {"k8s", "POD", "a-b", "c"}, {"k8s", long}, {"k8s", long + "n"}, {"k8s", "POD", "ü", "0"},
	} {
		name := join(parts...)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %s have the same name %s", parts, other, name)
		}
		seen[name] = strings.Join(parts, "|")
		if len(name) > maxName+20 || forbidden.MatchString(strings.ReplaceAll(name, "_", "")) {
			t.Errorf("%q: Docker rejects the name %q", parts, name)
		}
	}
}
