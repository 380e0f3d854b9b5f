package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/config"
)

// referenceKubelet builds the reference kubelet.
func referenceKubelet(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the reference kubelet")
	}
	script := exec.Command("../../hack/build-tools.sh", "reference")
	script.Stderr = os.Stderr
	dir, err := script.Output()
	if err != nil {
		t.Fatalf("build the reference kubelet: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "kubelet")
}

var effective = regexp.MustCompile(`(?s)"Effective KubeletConfiguration" config=<\n(.*?)\n >`)

// effectiveReference is the configuration that the reference kubelet logs before it validates it.
// --runonce makes the validation fail, so that it does not start.
func effectiveReference(t *testing.T, kubelet string, args []string) map[string]any {
	t.Helper()
	log := referenceLog(t, kubelet, args)
	found := effective.FindStringSubmatch(log)
	if found == nil {
		t.Fatalf("the reference kubelet did not log its configuration:\n%s", log)
	}
	config := parsed(t, strings.ReplaceAll("\n"+found[1], "\n\t", "\n"))
	delete(config, "runOnce")
	return config
}

// referenceLog is what the reference kubelet logs until it refuses --runonce.
func referenceLog(t *testing.T, kubelet string, args []string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), kubelet, append(slices.Clone(args), "--runonce")...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil {
		t.Fatal("the reference kubelet accepted --runonce")
	}
	return stderr.String()
}

func effectiveOurs(t *testing.T, args []string) map[string]any {
	t.Helper()
	cfg, err := config.Load(args)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := cfg.Print(&out); err != nil {
		t.Fatal(err)
	}
	return parsed(t, out.String())
}

func parsed(t *testing.T, text string) (values map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestConfigurationEqualsReference: the same files and flags result in the same configuration.
func TestConfigurationEqualsReference(t *testing.T) {
	kubelet := referenceKubelet(t)
	const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "d", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty.yaml": header,
		"full.yaml": header + `
maxPods: 1
port: 0
failSwapOn: no
clusterDNS: [10.0.0.1, 10.0.0.2]
systemReserved: {cpu: 100m, memory: 1Gi}
featureGates: {MemoryQoS: false, EnvFiles: false, KubeletCrashLoopBackOffMax: false}
evictionPressureTransitionPeriod: 1m
nodeStatusUpdateFrequency: 7s
mergeDefaultEvictionSettings: true
evictionHard: {memory.available: 1Gi}
staticPodPath: manifests
staticPodURLHeader: {a: [b]}
maxParallelImagePulls: 4
podPidsLimit: -7
logging: {flushFrequency: 10000000000, vmodule: [{filePattern: a, verbosity: 1}]}
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
`,
		"d/10.conf": header + `
port: 1000
clusterDNS: [10.0.0.3]
systemReserved: {memory: 2Gi}
evictionHard: {nodefs.available: 3%}
authentication: {anonymous: {enabled: true}}
tracing: {samplingRatePerMillion: 5}
volumePluginDir: plugins
`,
		"d/sub/05.conf": header + `
port: 3000
evictionPressureTransitionPeriod: null
enforceNodeAllocatable: []
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
`,
		"d/readme.txt": "not a drop-in",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Without a file, set the flags whose insecure defaults differ.
	secure := " --anonymous-auth=false --authorization-mode=Webhook --read-only-port=0"
	full, dropins := " --config="+dir+"/full.yaml", " --config-dir="+dir+"/d"
	flags := " --max-pods=3 --feature-gates=EnvFiles=true --kube-reserved=cpu=1 --kube-reserved=memory=2Gi -v 3 --vmodule=x=2" +
		" --cluster-dns=1.1.1.1 --cluster-dns=2.2.2.2 --register-with-taints=a=b:NoSchedule,c=d:NoExecute --address= --reserved_cpus=0-1" +
		" --reserved-memory=0:memory=1Gi;1:memory=2Gi --eviction-hard=memory.available<5% --eviction-hard=nodefs.available<1%" +
		" --cpu-manager-policy-options=a=b,c=d --manifest-url-header=a:b,a:c --log-flush-frequency=3s"
	for name, args := range map[string]string{
		"defaults of flags":     secure,
		"flags":                 secure + flags,
		"empty file":            " --config=" + dir + "/empty.yaml",
		"file":                  full,
		"file, flags":           full + flags,
		"file, drop-ins":        full + dropins,
		"file, drop-ins, flags": full + dropins + flags,
		"drop-ins alone":        dropins + secure,
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(args)
			if diff := cmp.Diff(effectiveReference(t, kubelet, args), effectiveOurs(t, args)); diff != "" {
				t.Errorf("configuration (-reference +ours):\n%s", diff)
			}
		})
	}
}

// TestStaleFieldsLikeReference: both kubelets start with the same values in spite of unknown and
// duplicate fields, or neither starts.
func TestStaleFieldsLikeReference(t *testing.T) {
	kubelet := referenceKubelet(t)
	const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for name, tc := range map[string]struct {
		file, dropin string
		refused      bool
	}{
		"unknown fields": {file: "maxPodz: 3\nmaxpods: 4\nmemorySwap: {nope: 1}\nregisterWithTaints: [{key: a, effect: NoSchedule, nope: 1}]\n" +
			"reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}, nope: 1}]\n"},
		"duplicate fields":                      {file: "maxPods: 3\nmaxPods: 4\nevictionHard: {memory.available: 1Gi, memory.available: 2Gi}\nsystemReserved: {cpu: 1}\nsystemReserved: {memory: 1Gi}\n"},
		"unknown and duplicate field":           {file: "nope: 1\nnope: {a: 2}\n"},
		"unknown field of a drop-in":            {dropin: "nope: 1\nmemorySwap: {nope: 1}\nport: 99\n"},
		"unknown field in both":                 {file: "nope: 1\nmaxPods: 4\n", dropin: "nope: 2\nport: 99\n"},
		"duplicate field of a drop-in":          {dropin: "port: 98\nport: 99\n", refused: true},
		"invalid value beside an unknown field": {file: "nope: 1\nport: x\n", refused: true},
		"unknown version":                       {file: "apiVersion: kubelet.config.k8s.io/v1\nmaxPods: 4\n", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range map[string]string{"k.yaml": header + tc.file, "d/10.conf": header + tc.dropin} {
				path = filepath.Join(dir, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"--config=" + dir + "/k.yaml", "--config-dir=" + dir + "/d"}
			ours, err := config.LoadLenient(args)
			if tc.refused {
				if log := referenceLog(t, kubelet, args); effective.MatchString(log) || err == nil {
					t.Errorf("not refused by both: ours %v, the reference:\n%s", err, log)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var printed strings.Builder
			if err := ours.Print(&printed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(effectiveReference(t, kubelet, args), parsed(t, printed.String())); diff != "" {
				t.Errorf("configuration (-reference +ours):\n%s", diff)
			}
		})
	}
}
