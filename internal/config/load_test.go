package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// writeFiles writes files to a new directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustLoad(t *testing.T, args ...string) *Config {
	t.Helper()
	c, err := Load(args)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConfigzEqualsReference compares with a recording of the reference kubelet.
func TestConfigzEqualsReference(t *testing.T) {
	dir := writeFiles(t, map[string]string{"kubelet.yaml": header + `
staticPodPath: /etc/kubernetes/manifests
tlsCertFile: /etc/kubernetes/pki/node.crt
tlsPrivateKeyFile: /etc/kubernetes/pki/node.key
authentication:
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
maxPods: 250
evictionHard:
  imagefs.available: 1%
  memory.available: 100Mi
  nodefs.available: 1%
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix:///run/criproxy.sock
`})
	c := mustLoad(t, "--config="+dir+"/kubelet.yaml", "-v=2")
	text, err := Configz(&c.Kubelet)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile("testdata/configz.json")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(recorded, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configz differs from the reference (-reference +ours):\n%s", diff)
	}
}

func TestPrecedence(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"kubelet.yaml": header + "maxPods: 1\npodsPerCore: 1\nclusterDNS: [10.0.0.1, 10.0.0.2]\n" +
			"systemReserved: {cpu: 100m, memory: 1Gi}\nfeatureGates: {MemoryQoS: false, EnvFiles: false}\n" +
			"evictionPressureTransitionPeriod: 1m\nstaticPodPath: manifests\n",
		"d/10-a.conf":     header + "podsPerCore: 2\nport: 1000\nclusterDNS: [10.0.0.3]\nsystemReserved: {memory: 2Gi}\n",
		"d/20-b.conf":     header + "port: 2000\nevictionPressureTransitionPeriod: null\n",
		"d/sub/05-c.conf": header + "port: 3000\n", // ordered by path, so after 20-b.conf
		"d/ignored.yaml":  "not even: [yaml",
	})
	file, dropins := dir+"/kubelet.yaml", dir+"/d"
	c := mustLoad(t, "--config", file, "--config-dir", dropins, "--max-pods=3", "--feature-gates=EnvFiles=true", "--kube-reserved=cpu=1")
	kc := c.Kubelet
	type result struct {
		MaxPods, PodsPerCore, Port  int32
		DNS                         []string
		SystemReserved              map[string]string
		KubeReserved                map[string]string
		Gates                       map[string]bool
		Transition                  time.Duration
		StaticPodPath               string
		EvictionHard                int
		ImagePullsSerialised, Token bool
	}
	got := result{kc.MaxPods, kc.PodsPerCore, kc.Port, kc.ClusterDNS, kc.SystemReserved, kc.KubeReserved, kc.FeatureGates,
		kc.EvictionPressureTransitionPeriod.Duration, kc.StaticPodPath, len(kc.EvictionHard), *kc.SerializeImagePulls, *kc.Authentication.Webhook.Enabled}
	want := result{
		MaxPods: 3, PodsPerCore: 2, Port: 3000,
		DNS:            []string{"10.0.0.3"},
		SystemReserved: map[string]string{"cpu": "100m", "memory": "2Gi"},
		KubeReserved:   map[string]string{"cpu": "1"},
		Gates:          map[string]bool{"MemoryQoS": false, "EnvFiles": true},
		Transition:     5 * time.Minute, StaticPodPath: dir + "/manifests",
		EvictionHard: 5, ImagePullsSerialised: true, Token: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged configuration (-want +got):\n%s", diff)
	}
	if c.Features.MemoryQoS || !c.Gate("EnvFiles") || !c.Features.PodLevelResources {
		t.Errorf("features = %+v", c.Features)
	}
	wantOrigins := Origins{
		"maxPods":                {Flag: "max-pods"},
		"podsPerCore":            {File: dropins + "/10-a.conf", Line: 3},
		"clusterDNS":             {File: dropins + "/10-a.conf", Line: 5},
		"port":                   {File: dropins + "/sub/05-c.conf", Line: 3},
		"systemReserved.cpu":     {File: file, Line: 6},
		"systemReserved.memory":  {File: dropins + "/10-a.conf", Line: 6},
		"kubeReserved":           {Flag: "kube-reserved"},
		"featureGates.MemoryQoS": {File: file, Line: 7},
		"featureGates.EnvFiles":  {Flag: "feature-gates"},
		"staticPodPath":          {File: file, Line: 9},
	}
	if diff := cmp.Diff(wantOrigins, c.Origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}

// TestFlagsAlone: without a file the defaults of flags apply, apart from insecure ones.
func TestFlagsAlone(t *testing.T) {
	c := mustLoad(t)
	kc := c.Kubelet
	if *kc.Authentication.Anonymous.Enabled || kc.Authorization.Mode != "Webhook" || kc.ReadOnlyPort != 0 {
		t.Errorf("insecure by default: anonymous %t, authorization %s, read-only port %d",
			*kc.Authentication.Anonymous.Enabled, kc.Authorization.Mode, kc.ReadOnlyPort)
	}
	if *kc.Authentication.Webhook.Enabled || kc.EvictionHard != nil {
		t.Errorf("token webhook %t, evictionHard %v: want the reference's flag defaults", *kc.Authentication.Webhook.Enabled, kc.EvictionHard)
	}
	c = mustLoad(t, "--anonymous_auth", "--authorization-mode=AlwaysAllow", "--read-only-port=10255")
	kc = c.Kubelet
	if !*kc.Authentication.Anonymous.Enabled || kc.Authorization.Mode != "AlwaysAllow" || kc.ReadOnlyPort != 10255 {
		t.Error("insecure flags are not applied")
	}
	if notices := strings.Join(c.Notices, "\n"); !strings.Contains(notices, "port 10250 may do anything") || !strings.Contains(notices, "port 10255 may read") {
		t.Errorf("no notice of insecure ports in:\n%s", notices)
	}
}

func TestEvictionDefaultsAreMergedOnRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want map[string]string
	}{
		"not set":             {"", defaultEvictionHard},
		"set without merging": {"evictionHard: {memory.available: 1Gi}", map[string]string{"memory.available": "1Gi"}},
		"set and merged":      {"evictionHard: {memory.available: 1Gi, imagefs.available: 1%}\nmergeDefaultEvictionSettings: true", map[string]string{"memory.available": "1Gi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "1%", "imagefs.inodesFree": "5%"}},
		"set to empty":        {"evictionHard: {}", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{"k": header + tc.file})
			if diff := cmp.Diff(tc.want, mustLoad(t, "--config="+dir+"/k").Kubelet.EvictionHard); diff != "" {
				t.Errorf("evictionHard (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotices(t *testing.T) {
	c := mustLoad(t, "--cpu-manager-reconcile-period=1s", "--housekeeping-interval=1s", "--max-pods=5", "--port=1000", "--feature-gates=GitRepoVolumeDriver=false", "--maximum-dead-containers=3")
	want := []string{
		"--cpu-manager-reconcile-period has no effect: CPU assignments are applied as soon as they change",
		"--housekeeping-interval has no effect: usage is read from the kernel on request, not collected periodically",
		"--maximum-dead-containers is deprecated: eviction thresholds replace it",
		"deprecated flags, better set in the file given by --config: --feature-gates --max-pods --port",
		"feature gate GitRepoVolumeDriver=false: the gate is DEPRECATED and will be removed in a future release",
	}
	if diff := cmp.Diff(want, c.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestAction(t *testing.T) {
	for arg, want := range map[string]Action{"-h": Help, "--help": Help, "--version": Version, "--version=raw": VersionRaw, "--version=false": Run} {
		if c := mustLoad(t, arg); c.Action != want {
			t.Errorf("%s: action %d, want %d", arg, c.Action, want)
		}
	}
}

func TestPrintedConfigurationLoads(t *testing.T) {
	dir := writeFiles(t, map[string]string{"k.yaml": header + "maxPods: 7\nevictionHard:\n  memory.available: 1Gi\nregisterWithTaints: [{key: a, effect: NoSchedule}]\n"})
	c := mustLoad(t, "--config="+dir+"/k.yaml", "--port=1234")
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"maxPods: 7  # " + dir + "/k.yaml:3",
		"  memory.available: 1Gi  # " + dir + "/k.yaml:5",
		"registerWithTaints:  # " + dir + "/k.yaml:6",
		"port: 1234  # --port",
		"healthzPort: 10248\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in:\n%s", line, out.String())
		}
	}
	again := writeFiles(t, map[string]string{"k.yaml": out.String()})
	if diff := cmp.Diff(c.Kubelet, mustLoad(t, "--config="+again+"/k.yaml").Kubelet); diff != "" {
		t.Errorf("loaded again (-first +second):\n%s", diff)
	}
}

func TestHeadersAreMasked(t *testing.T) {
	c := mustLoad(t, "--manifest-url-header=Authorization:secret")
	text, err := Configz(&c.Kubelet)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), printed.String()} {
		if strings.Contains(shown, "secret") || !strings.Contains(shown, "masked") {
			t.Errorf("the header is not masked in %s", shown)
		}
	}
	if c.Kubelet.StaticPodURLHeader["Authorization"][0] != "secret" {
		t.Error("the loaded header is masked")
	}
}
