package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubeletConfig runs pods of a directory, without an API server. Only the box can reach the ports.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%s
staticPodPath: %s
cgroupDriver: cgroupfs
address: 127.0.0.1
readOnlyPort: 10255
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failSwapOn: false
failCgroupV1: false
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
`

const kubeletPod = `
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: default}
spec:
  terminationGracePeriodSeconds: 2
  initContainers:
  - {name: prepare, image: docker.io/library/busybox:1.36, command: [sh, -c, "echo ready > /work/file"], volumeMounts: [{name: work, mountPath: /work}]}
  containers:
  - name: server
    image: docker.io/library/busybox:1.36
    command: [sh, -c, "cat /work/file; exec httpd -f -p 8080 -h /work"]
    resources: {requests: {cpu: 10m}, limits: {memory: 32Mi}}
    readinessProbe: {httpGet: {path: /file, port: 8080}, periodSeconds: 1}
    livenessProbe: {exec: {command: [cat, /work/file]}, periodSeconds: 1}
    volumeMounts: [{name: work, mountPath: /work}]
  - {name: crasher, image: docker.io/library/busybox:1.36, command: [sh, -c, "[ -e /work/again ] && exec sleep 1000; touch /work/again; exit 1"], volumeMounts: [{name: work, mountPath: /work}]}
  volumes: [{name: work, emptyDir: {}}]
`

// podList is what the test reads of the kubelet's answer.
type podList struct {
	Items []struct {
		Status struct {
			Phase, PodIP      string
			ContainerStatuses []struct {
				Name, ContainerID string
				Ready             bool
				RestartCount      int
			}
		}
	}
}

// TestKubelet runs a pod with Swiftlet's kubelet on cri-docker, and kills cri-docker under it.
func TestKubelet(t *testing.T) {
	kubelet := kubeletProgram(t)
	s := ownShim(t)
	manifests := startKubelet(t, kubelet, s)
	manifest := filepath.Join(manifests, "app.yaml")
	if err := os.WriteFile(manifest, []byte(kubeletPod), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var list podList
	ready := func() bool {
		list = kubeletPods(t)
		if len(list.Items) != 1 || len(list.Items[0].Status.ContainerStatuses) != 2 {
			return false
		}
		all := true
		for _, c := range list.Items[0].Status.ContainerStatuses {
			all = all && c.Ready && strings.HasPrefix(c.ContainerID, "docker://") && (c.Name != "crasher" || c.RestartCount == 1)
		}
		return all
	}
	eventually(t, "the pod to be ready, with one restart", ready)
	t.Logf("ready after %s: %+v", time.Since(began), list)
	s.restart(t)
	before := fmt.Sprintf("%+v", list)
	eventually(t, "the kubelet to see the pod after a kill of cri-docker", ready)
	if after := fmt.Sprintf("%+v", list); after != before {
		t.Errorf("before the kill %s, after it %s", before, after)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the pod", func() bool { return len(kubeletPods(t).Items) == 0 })
	log, err := os.ReadFile(box.Path("kubelet.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "pleg") {
			t.Log(line)
		}
	}
}

// startKubelet returns the directory of its pods.
func startKubelet(t *testing.T, kubelet string, s *shim) string {
	t.Helper()
	manifests := box.Path("manifests")
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	config := box.Path("kubelet.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeletConfig, s.socket(), manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := box.Command(t.Context(), "mount", "-t", "tmpfs", "tmpfs", "/var/log").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	process, err := box.Start("kubelet.log", kubelet, "kubelet", "--config="+config, "--root-dir="+box.Path("kubelet"), "--cert-dir="+box.Path("kubelet-pki"), "--v=4")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if text, err := os.ReadFile(box.Path("kubelet.log")); err == nil && os.Getenv("SWIFTLET_KUBELET_LOG") != "" {
			_ = os.WriteFile(os.Getenv("SWIFTLET_KUBELET_LOG"), text, 0o600) // for debugging
		}
		showLog(t, "kubelet")
	})
	return manifests
}

// kubeletProgram is the one of SWIFTLET_KUBELET, or is built.
func kubeletProgram(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("SWIFTLET_KUBELET"); program != "" {
		return program
	}
	program := box.Path("kubelet-program")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-o", program, "./cmd/swiftlet")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// kubeletPods asks the kubelet. It returns nothing while it does not answer.
func kubeletPods(t *testing.T) podList {
	t.Helper()
	var list podList
	client := http.Client{Transport: inBox(10255), Timeout: 10 * time.Second}
	answer, err := client.Get("http://127.0.0.1:10255/pods")
	if err != nil {
		return list
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}
