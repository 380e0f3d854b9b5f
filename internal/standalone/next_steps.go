package standalone

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// nextSteps suggests three commands that work when pasted into another terminal. They are made
// from the running pods; the text is empty until a pod has a host port, or none is pending.
func nextSteps(cfg Config, pods []shownPod) string {
	p := hintPod(pods)
	if p == nil {
		return ""
	}
	if cfg.API != nil {
		return kubectlSteps(cfg, p)
	}
	request := fmt.Sprintf("curl http://127.0.0.1:%d/", hostPort(p))
	if hostPort(p) == 0 {
		request = fmt.Sprintf("curl --cacert %s --cert %s --key %s https://127.0.0.1:%d/pods",
			quote(cfg.Paths.pki("ca.crt")), quote(cfg.Paths.pki("admin.crt")), quote(cfg.Paths.pki("admin.key")), cfg.Port)
	}
	follow := "tail -F " + quote(filepath.Join(cfg.Paths.PodLogs(), pod.RefOf(p).LogDirName(), p.Spec.Containers[0].Name, "0.log"))
	more := `echo '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"more"},"spec":{"restartPolicy":"Never","containers":[{"name":"primes","image":"docker.io/swiftlet/example:1","args":["primes","1000"]}]}}' > ` +
		quote(filepath.Join(cfg.Manifests, "more.json"))
	return "Try next, in another terminal:\n" +
		"  call a pod       " + request + "\n" +
		"  follow its log   " + follow + "\n" +
		"  add a pod        " + more + "\n" +
		"Change or remove a file in " + cfg.Manifests + " and the pods follow. Ctrl-C stops everything.\n"
}

// kubectlSteps are nextSteps with an API server.
func kubectlSteps(cfg Config, p *v1.Pod) string {
	pod := "-n " + p.Namespace + " " + p.Name
	return "Try next, in another terminal:\n" +
		"  use kubectl      export KUBECONFIG=" + quote(cfg.Paths.Kubeconfig()) + " PATH=" + quote(cfg.API.Programs) + ":$PATH\n" +
		"  follow its log   kubectl logs -f " + pod + "\n" +
		"  look into a pod  kubectl describe pod " + pod + "\n" +
		"  add a pod        kubectl run more --image=docker.io/swiftlet/example:1 --restart=Never -- primes 1000\n" +
		"Change or remove a file in " + cfg.Manifests + " and its objects follow. Ctrl-C stops everything; objects stay for the next `swiftlet up --api`.\n"
}

// hintPod returns a running pod with a host port, or, once no pod is pending other than for a device,
// any running pod.
func hintPod(pods []shownPod) *v1.Pod {
	var running *v1.Pod
	pending := false
	for _, s := range pods {
		p := s.Pod
		pending = pending || (p.Status.Phase == v1.PodPending || p.Status.Phase == "") && awaitedDevice(p) == ""
		if p.Status.Phase != v1.PodRunning || len(p.Spec.Containers) == 0 {
			continue
		}
		if hostPort(p) != 0 {
			return p
		}
		running = p
	}
	if pending {
		return nil
	}
	return running
}

func hostPort(p *v1.Pod) int32 {
	for c := range pod.Containers(p) {
		for _, port := range c.Ports {
			if port.HostPort != 0 && port.Protocol != v1.ProtocolUDP && port.Protocol != v1.ProtocolSCTP {
				return port.HostPort
			}
		}
	}
	return 0
}

// quote quotes a path for a shell.
func quote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$&;|<>()*?[]#~`!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
