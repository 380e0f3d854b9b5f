package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommands(t *testing.T) {
	valid := filepath.Join(t.TempDir(), "kubelet.yaml")
	invalid := filepath.Join(t.TempDir(), "bad.yaml")
	stale := filepath.Join(t.TempDir(), "stale.yaml")
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for file, text := range map[string]string{valid: header + "maxPods: 5\nfailCgroupV1: false\n", invalid: header + "maxPods: five\nport: -1\n", stale: header + "maxPodz: 5\nfailCgroupV1: false\n", broken: "clusters: 5\n", plugins: "kind: CredentialProviderConfig\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		args        string
		code        int
		out, errOut []string
	}{
		"no command":             {"swiftlet", 0, []string{"swiftlet up", "Available Commands"}, nil},
		"version":                {"swiftlet version", 0, []string{"in place of Kubernetes v1.37.1", "go1."}, nil},
		"kubelet --version":      {"swiftlet kubelet --version", 0, []string{"Kubernetes v1.37.1\n"}, nil},
		"called kubelet":         {"/usr/bin/kubelet --version", 0, []string{"Kubernetes v1.37.1\n"}, nil},
		"kubelet --help":         {"kubelet --help", 0, []string{"Usage:\n  swiftlet kubelet [flags]", "\nCluster:\n", "--kubeconfig", "[maxPods]"}, nil},
		"help kubelet":           {"swiftlet help kubelet", 0, []string{"--kubeconfig"}, nil},
		"check":                  {"swiftlet check --config-only --config=" + valid + " --port=99", 0, []string{"maxPods: 5  # " + valid + ":3", "port: 99  # --port"}, []string{"note: deprecated flags"}},
		"check --help":           {"swiftlet check -h", 0, []string{"starts nothing", "--live", "--kubeconfig"}, nil},
		"check, invalid file":    {"swiftlet check --config=" + invalid, 1, nil, []string{invalid + `:3: maxPods: "five" is not`, invalid + ":4: port: -1 must be between"}},
		"check, invalid plugins": {"swiftlet check --config=" + valid + " --image-credential-provider-bin-dir=/none --image-credential-provider-config=" + plugins, 1, nil, []string{plugins + ": apiVersion: must be one of"}},
		"check, unknown field":   {"swiftlet check --config=" + stale, 1, nil, []string{stale + ":3: maxPodz: is not a known field; did you mean maxPods?"}},
		"kubelet, invalid file":  {"swiftlet kubelet --config=" + invalid, 1, nil, []string{invalid + `:3: maxPods: "five" is not`}},
		// These fail before the kubelet connects to the runtime.
		"kubelet, unknown field":       {"kubelet --config=" + stale + " --container-runtime-endpoint=unix:///none/r.sock --kubeconfig=/none/kubeconfig", 1, nil, []string{stale + ":3: maxPodz: ignored, is not a known field; did you mean maxPods?", "/none/kubeconfig"}},
		"kubelet, missing kubeconfig":  {"kubelet --config=" + valid + " --container-runtime-endpoint=unix:///none/r.sock --kubeconfig=/none/kubeconfig", 1, nil, []string{"/none/kubeconfig", "no such file or directory"}},
		"kubelet, invalid kubeconfig":  {"kubelet --config=" + valid + " --container-runtime-endpoint=unix:///none/r.sock --kubeconfig=" + broken, 1, nil, []string{broken, "cannot unmarshal number"}},
		"kubelet, invalid plugins":     {"kubelet --config=" + valid + " --container-runtime-endpoint=unix:///none/r.sock --image-credential-provider-bin-dir=/none --image-credential-provider-config=" + plugins, 1, nil, []string{plugins + ": apiVersion: must be one of"}},
		"kubelet, unknown flag":        {"kubelet --max-podz=3", 1, nil, []string{"did you mean --max-pods?"}},
		"kubelet, positional argument": {"kubelet up", 1, nil, []string{`"up" is neither a flag nor a flag's value`}},
		"unknown command":              {"swiftlet dawn", 1, nil, []string{`unknown command "dawn"`}},
		"kubectl, not built":           {"swiftlet kubectl get pods", 1, nil, []string{"run kubectl: ", "api/kubectl"}},
		"down, no bundle":              {"swiftlet down", 1, nil, []string{"find bundled programs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if code := run(ctx, strings.Fields(tc.args), &out, &errOut); code != tc.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, tc.code, errOut.String())
			}
			for _, want := range tc.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("stdout has no %q:\n%s", want, out.String())
				}
			}
			for _, want := range tc.errOut {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("stderr has no %q:\n%s", want, errOut.String())
				}
			}
		})
	}
}
