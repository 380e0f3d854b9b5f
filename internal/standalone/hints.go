package standalone

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// hints are three things to try next. Each works when pasted into another terminal, so
// they are made from the pods that run; there are none until a pod can be asked, or no
// pod is on its way any more.
func hints(cfg Config, pods []*v1.Pod) string {
	p := worthAsking(pods)
	if p == nil {
		return ""
	}
	request := fmt.Sprintf("curl http://127.0.0.1:%d/", hostPort(p))
	if hostPort(p) == 0 {
		request = fmt.Sprintf("curl --cacert %s --cert %s --key %s https://127.0.0.1:%d/pods",
			quote(cfg.Places.pki("ca.crt")), quote(cfg.Places.pki("admin.crt")), quote(cfg.Places.pki("admin.key")), cfg.Port)
	}
	follow := "tail -F " + quote(filepath.Join(cfg.Places.PodLogs(), pod.RefOf(p).LogDirName(), p.Spec.Containers[0].Name, "0.log"))
	more := `echo '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"more"},"spec":{"restartPolicy":"Never","containers":[{"name":"primes","image":"docker.io/swiftlet/example:1","args":["primes","1000"]}]}}' > ` +
		quote(filepath.Join(cfg.Manifests, "more.json"))
	return "Try next, in another terminal:\n" +
		"  ask a pod        " + request + "\n" +
		"  follow its log   " + follow + "\n" +
		"  add a pod        " + more + "\n" +
		"Change or remove a file in " + cfg.Manifests + " and the pods follow. Ctrl-C stops everything.\n"
}

// worthAsking is a running pod with a port of the host, or any that runs once no other is
// on its way.
func worthAsking(pods []*v1.Pod) *v1.Pod {
	var any *v1.Pod
	pending := false
	for _, p := range pods {
		pending = pending || p.Status.Phase == v1.PodPending || p.Status.Phase == ""
		if p.Status.Phase != v1.PodRunning || len(p.Spec.Containers) == 0 {
			continue
		}
		if hostPort(p) != 0 {
			return p
		}
		any = p
	}
	if pending {
		return nil
	}
	return any
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

// quote makes a path one word for a shell.
func quote(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$&;|<>()*?[]#~`!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
