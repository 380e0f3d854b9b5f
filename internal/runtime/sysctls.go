package runtime

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
)

// ipcSysctls are the sysctls of an IPC namespace, except those of fs.mqueue.
var ipcSysctls = []string{
	"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
	"kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
}

// sysctls returns the sysctls of the pod's sandbox: the node's defaults for namespaces that the
// pod does not share with the host, overridden by the pod's own.
func (r *Runtime) sysctls(p *v1.Pod) map[string]string {
	all := map[string]string{}
	for name, value := range r.cfg.DefaultSysctls {
		if name = sysctl.NormalizeName(name); ownSysctl(p, name) {
			all[name] = value
		}
	}
	if p.Spec.SecurityContext != nil {
		for _, s := range p.Spec.SecurityContext.Sysctls {
			all[s.Name] = s.Value
		}
	}
	return all
}

// ownSysctl reports whether the sysctl belongs to a namespace that the pod does not share with
// the host.
func ownSysctl(p *v1.Pod, name string) bool {
	switch {
	case slices.Contains(ipcSysctls, name), strings.HasPrefix(name, "fs.mqueue."):
		return !p.Spec.HostIPC
	case strings.HasPrefix(name, "net."), name == "kernel.domainname":
		return !p.Spec.HostNetwork
	case strings.HasPrefix(name, "user."):
		return p.Spec.HostUsers != nil && !*p.Spec.HostUsers
	}
	return false
}
