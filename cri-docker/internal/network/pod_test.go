package network

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestRuntimeConf(t *testing.T) {
	p := Pod{ID: "abc", Config: &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u"},
		Annotations: map[string]string{"kubernetes.io/ingress-bandwidth": "10M"},
		PortMappings: []*runtimeapi.PortMapping{
			{ContainerPort: 80}, // not on the host
			{ContainerPort: 53, HostPort: 5353, Protocol: runtimeapi.Protocol_UDP, HostIp: "127.0.0.1"},
		},
	}}
	conf, err := p.runtimeConf("/proc/1/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(conf.CapabilityArgs)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"bandwidth":{"ingressRate":10000000,"ingressBurst":4294967295},"portMappings":[{"hostPort":5353,"containerPort":53,"protocol":"udp","hostIP":"127.0.0.1"}]}`
	if string(got) != want {
		t.Errorf("capabilities %s; want %s", got, want)
	}
	p.Config.Annotations["kubernetes.io/egress-bandwidth"] = "fast"
	if _, err := p.runtimeConf(""); err == nil || !strings.Contains(err.Error(), `egress-bandwidth: "fast" is not a bandwidth`) {
		t.Errorf("wrong bandwidth: %v", err)
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"none":       {"readme.txt", "", "no CNI configuration in "},
		"not_json":   {"10-x.conflist", "{", "10-x.conflist"},
		"no_plugins": {"10-x.conflist", `{"cniVersion":"1.0.0","name":"x","plugins":[]}`, "10-x.conflist"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			n := New(Config{ConfDir: dir, CacheDir: t.TempDir()})
			if err := n.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
}

func TestAttached(t *testing.T) {
	dir := t.TempDir()
	n := New(Config{ConfDir: dir, CacheDir: dir})
	if attached, err := n.Attached(); err != nil || attached("abc") {
		t.Errorf("without a cache: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "results"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "results", "my-pod-net-abc-eth0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	attached, err := n.Attached()
	if err != nil || !attached("abc") || attached("net") {
		t.Errorf("abc %v, net %v, %v; want true, false", attached("abc"), attached("net"), err)
	}
}
