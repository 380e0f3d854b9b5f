package runtime

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// effectiveSecurity returns a container's security context; fields that it does not set are
// those of the pod.
func effectiveSecurity(p *v1.Pod, c *v1.Container) *v1.SecurityContext {
	sc := &v1.SecurityContext{}
	if c.SecurityContext != nil {
		sc = c.SecurityContext.DeepCopy()
	}
	if of := p.Spec.SecurityContext; of != nil {
		sc.SELinuxOptions = firstSet(sc.SELinuxOptions, of.SELinuxOptions)
		sc.RunAsUser = firstSet(sc.RunAsUser, of.RunAsUser)
		sc.RunAsGroup = firstSet(sc.RunAsGroup, of.RunAsGroup)
		sc.RunAsNonRoot = firstSet(sc.RunAsNonRoot, of.RunAsNonRoot)
		sc.SeccompProfile = firstSet(sc.SeccompProfile, of.SeccompProfile)
	}
	return sc
}

func firstSet[T any](own, pods *T) *T {
	if own != nil {
		return own
	}
	return pods
}

// containerSecurity returns the CRI security context of a container.
func (r *Runtime) containerSecurity(in Input) (*runtimeapi.LinuxContainerSecurityContext, error) {
	sc := effectiveSecurity(in.Pod, in.Container)
	namespaces, err := r.namespaces(in.Pod)
	if err != nil {
		return nil, err
	}
	if in.TargetID != "" && namespaces.Pid == runtimeapi.NamespaceMode_CONTAINER {
		namespaces.Pid, namespaces.TargetId = runtimeapi.NamespaceMode_TARGET, in.TargetID
	}
	seccomp, err := r.seccomp(sc.SeccompProfile)
	if err != nil {
		return nil, err
	}
	appArmor, appArmorName, err := appArmor(in.Pod, in.Container)
	if err != nil {
		return nil, err
	}
	groups, policy, err := supplementalGroups(in.Pod)
	if err != nil {
		return nil, err
	}
	security := &runtimeapi.LinuxContainerSecurityContext{
		Capabilities:             capabilities(sc.Capabilities),
		Privileged:               isTrue(sc.Privileged),
		NamespaceOptions:         namespaces,
		SelinuxOptions:           selinux(sc.SELinuxOptions),
		RunAsUser:                int64Value(sc.RunAsUser),
		RunAsGroup:               int64Value(sc.RunAsGroup),
		ReadonlyRootfs:           isTrue(sc.ReadOnlyRootFilesystem),
		SupplementalGroups:       append(groups, in.VolumeGroups...),
		SupplementalGroupsPolicy: policy,
		NoNewPrivs:               sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		Seccomp:                  seccomp,
		Apparmor:                 appArmor,
		//lint:ignore SA1019 older runtimes read only this form
		ApparmorProfile: appArmorName,
	}
	if sc.RunAsUser == nil {
		security.RunAsUser, security.RunAsUsername = in.ImageUser.asUser()
	}
	security.MaskedPaths, security.ReadonlyPaths = r.procPaths(sc.ProcMount)
	return security, nil
}

// supplementalGroups returns the groups of all processes of a pod.
func supplementalGroups(p *v1.Pod) ([]int64, runtimeapi.SupplementalGroupsPolicy, error) {
	sc := p.Spec.SecurityContext
	if sc == nil {
		return nil, 0, nil
	}
	var groups []int64
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	groups = append(groups, sc.SupplementalGroups...)
	if sc.SupplementalGroupsPolicy == nil {
		return groups, 0, nil
	}
	policy, ok := runtimeapi.SupplementalGroupsPolicy_value[string(*sc.SupplementalGroupsPolicy)]
	if !ok {
		return nil, 0, fmt.Errorf("unsupported supplementalGroupsPolicy: %s", *sc.SupplementalGroupsPolicy)
	}
	return groups, runtimeapi.SupplementalGroupsPolicy(policy), nil
}

func capabilities(of *v1.Capabilities) *runtimeapi.Capability {
	if of == nil {
		return nil
	}
	c := &runtimeapi.Capability{}
	for _, name := range of.Add {
		c.AddCapabilities = append(c.AddCapabilities, string(name))
	}
	for _, name := range of.Drop {
		c.DropCapabilities = append(c.DropCapabilities, string(name))
	}
	return c
}
