package container

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// refused returns an error for a request that this Docker Engine cannot fulfil. Ignoring a field would run a
// container with other rights or other data than its pod asks for.
func refused(c *runtimeapi.ContainerConfig) error {
	security := c.GetLinux().GetSecurityContext()
	for _, m := range c.GetMounts() {
		switch {
		case m.GetImage().GetImage() != "":
			return unimplemented("mount %s: image volume", m.GetContainerPath())
		case len(m.GetUidMappings())+len(m.GetGidMappings()) > 0:
			return unimplemented("mount %s: ID mappings", m.GetContainerPath())
		case m.GetRecursiveReadOnly():
			return unimplemented("mount %s: recursive read-only", m.GetContainerPath())
		case len(m.GetMountOptions()) > 0:
			return unimplemented("mount %s: mount options", m.GetContainerPath())
		}
	}
	if len(c.GetCDIDevices()) > 0 {
		return unimplemented("CDI device %s", c.GetCDIDevices()[0].GetName())
	}
	if security.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Strict {
		return unimplemented("supplemental groups policy Strict")
	}
	if len(security.GetCapabilities().GetAddAmbientCapabilities()) > 0 {
		return unimplemented("ambient capabilities")
	}
	return refusedUser(security)
}

func refusedUser(security *runtimeapi.LinuxContainerSecurityContext) error {
	if OwnUsers(security.GetNamespaceOptions()) {
		return unimplemented("user namespaces of pods")
	}
	if security.GetRunAsGroup() != nil && security.GetRunAsUser() == nil && security.GetRunAsUsername() == "" {
		return status.Error(codes.InvalidArgument, "run_as_group needs run_as_user or run_as_username")
	}
	return nil
}

func unimplemented(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, "not supported with Docker Engine: "+format, args...)
}

// OwnUsers says whether a user namespace is asked for. POD is the zero value of the mode, so only options
// that are there ask for one.
func OwnUsers(o *runtimeapi.NamespaceOption) bool {
	return o.GetUsernsOptions() != nil && o.GetUsernsOptions().GetMode() == runtimeapi.NamespaceMode_POD
}
