package admit

import (
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/node/util/sysctl"

	"swiftlet/internal/config"
	"swiftlet/internal/pod"
)

// safeSysctls are namespaced and do not affect other pods, since the given kernel version.
var safeSysctls = []struct{ name, kernel string }{
	{"kernel.shm_rmid_forced", ""},
	{"net.ipv4.ip_local_port_range", ""},
	{"net.ipv4.tcp_syncookies", ""},
	{"net.ipv4.ping_group_range", ""},
	{"net.ipv4.ip_unprivileged_port_start", ""},
	{"net.ipv4.ip_local_reserved_ports", "3.16"},
	{"net.ipv4.tcp_keepalive_time", "4.5"},
	{"net.ipv4.tcp_fin_timeout", "4.6"},
	{"net.ipv4.tcp_keepalive_intvl", "4.5"},
	{"net.ipv4.tcp_keepalive_probes", "4.5"},
	{"net.ipv4.tcp_rmem", "4.15"},
	{"net.ipv4.tcp_wmem", "4.15"},
	{"net.ipv4.tcp_slow_start_after_idle", "4.15"},
	{"net.ipv4.tcp_notsent_lowat", "4.6"},
}

// sysctlPattern matches a name, with dots or slashes between its parts, that may end in "*".
var sysctlPattern = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$`)

const sysctlMaxLength = 253

// allowedSysctl is a name, or a prefix, that pods may set unless they use the host's namespace.
type allowedSysctl struct {
	name      string
	prefix    bool
	namespace sysctl.Namespace
}

// Sysctls rejects pods that set sysctls other than the safe ones of this kernel and the
// allowed ones, which are names, or prefixes ending in "*".
func Sysctls(kernel string, allowed []string) (Check, error) {
	list, err := parseSysctls(append(safeOn(kernel), allowed...))
	if err != nil {
		return nil, err
	}
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		if p.Spec.SecurityContext == nil {
			return nil
		}
		for _, s := range p.Spec.SecurityContext.Sysctls {
			if err := checkSysctl(list, sysctl.NormalizeName(s.Name), p); err != nil {
				return pod.Reject("SysctlForbidden", "forbidden sysctl: %v", err)
			}
		}
		return nil
	}, nil
}

// parseSysctls parses names and prefixes.
func parseSysctls(patterns []string) (list []allowedSysctl, err error) {
	const field = "allowedUnsafeSysctls"
	for _, pattern := range patterns {
		if len(pattern) > sysctlMaxLength || !sysctlPattern.MatchString(pattern) {
			return nil, config.Invalid(field, "%q is not a sysctl name or pattern", pattern)
		}
		namespace, name, prefix := sysctl.GetNamespace(pattern)
		if namespace == sysctl.UnknownNamespace {
			return nil, config.Invalid(field, "%q is not namespaced, so that it would change the whole host", name)
		}
		list = append(list, allowedSysctl{name, prefix, namespace})
	}
	return list, nil
}

// safeOn lists the sysctls that are safe with the kernel version. If it cannot be parsed, these
// are the ones that are safe with every version.
func safeOn(kernel string) []string {
	running, _ := version.ParseGeneric(kernel)
	var names []string
	for _, s := range safeSysctls {
		if s.kernel == "" || running != nil && running.AtLeast(version.MustParseGeneric(s.kernel)) {
			names = append(names, s.name)
		}
	}
	return names
}

func checkSysctl(list []allowedSysctl, name string, p *v1.Pod) error {
	host := map[sysctl.Namespace]bool{
		sysctl.IPCNamespace:  p.Spec.HostIPC,
		sysctl.NetNamespace:  p.Spec.HostNetwork,
		sysctl.UserNamespace: p.Spec.HostUsers == nil || *p.Spec.HostUsers,
	}
	for _, a := range list {
		if a.name == name || a.prefix && strings.HasPrefix(name, a.name) {
			if host[a.namespace] {
				return fmt.Errorf("%q not allowed with host %s enabled", name, a.namespace)
			}
			return nil
		}
	}
	return fmt.Errorf("%q not allowlisted", name)
}
