package limits

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// kubeletConfig is the configuration of all nodes.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://` + nodeDir + `/containerd.sock
cgroupDriver: cgroupfs
staticPodPath: ` + nodeDir + `/manifests
podLogsDir: ` + nodeDir + `/logs
volumePluginDir: ` + nodeDir + `/volume-plugins
address: 127.0.0.1
readOnlyPort: 10255
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
authorization: {mode: AlwaysAllow}
failSwapOn: false
failCgroupV1: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: 10Mi, nodefs.available: 1%, imagefs.available: 1%}
`

// node is a running kubelet.
type node struct {
	t       *testing.T
	kubelet *program
}

// nodeName is the name of the node.
const nodeName = "node"

// startNode starts a kubelet without an API server, with kubeletConfig and config. It is stopped
// with the test, and so are its pods.
func startNode(t *testing.T, config string) *node {
	t.Helper()
	skipUnlessOnMachine(t, false)
	return startKubelet(t, config)
}

func startKubelet(t *testing.T, config string, flags ...string) *node {
	t.Helper()
	manifests := nodeDir + "/manifests"
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nodeDir+"/kubelet.yaml", []byte(kubeletConfig+config), 0o600); err != nil {
		t.Fatal(err)
	}
	kubelet, err := start("kubelet", append([]string{os.Getenv(envKubelet), "--config=" + nodeDir + "/kubelet.yaml",
		"--root-dir=/var/lib/kubelet", "--cert-dir=" + nodeDir + "/pki", "--hostname-override=" + nodeName, "--v=2"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, kubelet: kubelet}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the kubelet's log:\n%s", kubelet.logTail())
		}
		files, _ := filepath.Glob(manifests + "/*")
		for _, file := range files {
			_ = os.Remove(file)
		}
		if err := kubelet.await(noPods); err != nil {
			t.Error(err)
		}
		if err := kubelet.stop(); err != nil {
			t.Error(err)
		}
	})
	n.await(0, running) // until the kubelet answers
	return n
}

// run creates pods and returns them once the check passes for all.
func (n *node) run(manifests map[string]string, check func(*v1.Pod) error) []v1.Pod {
	n.t.Helper()
	for name, manifest := range manifests {
		n.add(name, manifest)
	}
	return n.await(len(manifests), check)
}

// add creates a pod. It writes the manifest elsewhere and renames it, so that the kubelet never
// reads an incomplete one.
func (n *node) add(name, manifest string) {
	n.t.Helper()
	temporary := filepath.Join(nodeDir, name)
	if err := os.WriteFile(temporary, []byte(manifest), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(nodeDir, "manifests", name+".yaml")); err != nil {
		n.t.Fatal(err)
	}
}

// await waits until there are count pods and the check passes for all.
func (n *node) await(count int, check func(*v1.Pod) error) (pods []v1.Pod) {
	n.t.Helper()
	err := n.kubelet.await(func() (err error) {
		if pods, err = readPods(); err != nil {
			return err
		}
		if len(pods) != count {
			return fmt.Errorf("there are %d pods, want %d", len(pods), count)
		}
		for i := range pods {
			if err := check(&pods[i]); err != nil {
				return fmt.Errorf("pod %s: %w", pods[i].Name, err)
			}
		}
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return pods
}

func readPods() ([]v1.Pod, error) {
	answer, err := http.Get("http://127.0.0.1:10255/pods")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var list v1.PodList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, body)
	}
	for i := range list.Items {
		list.Items[i].Name = strings.TrimSuffix(list.Items[i].Name, "-node")
	}
	return list.Items, nil
}

// running checks that all containers of the pod run.
func running(p *v1.Pod) error {
	if len(p.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("has no status yet")
	}
	for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
		if s.State.Running == nil {
			return fmt.Errorf("container %s: %v", s.Name, s.State)
		}
	}
	return nil
}

// noPods checks that all pod cgroups are removed.
func noPods() error {
	left, err := filepath.Glob(filepath.Join(hierarchy.Dir("memory", "/kubepods"), "pod*"))
	for _, class := range []string{"burstable", "besteffort"} {
		more, _ := filepath.Glob(filepath.Join(hierarchy.Dir("memory", "/kubepods"), class, "pod*"))
		left = append(left, more...)
	}
	if len(left) > 0 {
		return fmt.Errorf("pod cgroups left: %v", left)
	}
	return err
}
