package runtime

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// sandboxSecurity returns the security context of the pause process.
func (r *Runtime) sandboxSecurity(p *v1.Pod) (*runtimeapi.LinuxSandboxSecurityContext, error) {
	namespaces, err := r.namespaces(p)
	if err != nil {
		return nil, err
	}
	groups, policy, err := supplementalGroups(p)
	if err != nil {
		return nil, err
	}
	security := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces,
		Privileged:       anyPrivileged(p),
		// The pause process always runs with the default profile, whatever profile the pod's
		// containers have.
		Seccomp:                  &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
	}
	if sc := p.Spec.SecurityContext; sc != nil {
		security.RunAsUser = int64Value(sc.RunAsUser)
		security.RunAsGroup = int64Value(sc.RunAsGroup)
		security.SelinuxOptions = selinux(sc.SELinuxOptions)
	}
	return security, nil
}

func anyPrivileged(p *v1.Pod) bool {
	for c := range pod.Containers(p) {
		if c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged) {
			return true
		}
	}
	return false
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

func selinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}
