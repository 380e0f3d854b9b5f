package container

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	dockercontainer "github.com/moby/moby/api/types/container"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/host"
)

// Abilities are what Docker and the kernel offer for security.
type Abilities struct {
	AppArmor bool
	Limits   *host.Limits
}

// user is Docker's form USER[:GROUP].
func user(s *runtimeapi.LinuxContainerSecurityContext) string {
	name := s.GetRunAsUsername()
	if s.GetRunAsUser() != nil {
		name = strconv.FormatInt(s.GetRunAsUser().GetValue(), 10)
	}
	if s.GetRunAsGroup() != nil {
		name += ":" + strconv.FormatInt(s.GetRunAsGroup().GetValue(), 10)
	}
	return name
}

// applySecurity sets what limits a container's rights.
func applySecurity(h *dockercontainer.HostConfig, s *runtimeapi.LinuxContainerSecurityContext, a Abilities) error {
	h.ReadonlyRootfs = s.GetReadonlyRootfs()
	for _, group := range s.GetSupplementalGroups() {
		h.GroupAdd = append(h.GroupAdd, strconv.FormatInt(group, 10))
	}
	if s.GetPrivileged() {
		privileged(h, a)
	} else if err := confined(h, s, a); err != nil {
		return err
	}
	h.SecurityOpt = append(h.SecurityOpt, SELinux(s.GetSelinuxOptions())...)
	if s.GetNoNewPrivs() {
		h.SecurityOpt = append(h.SecurityOpt, "no-new-privileges")
	}
	return nil
}

// privileged gives all rights that exist here.
func privileged(h *dockercontainer.HostConfig, a Abilities) {
	h.CgroupnsMode = dockercontainer.CgroupnsModeHost
	if a.Limits.Complete() {
		h.Privileged = true
		return
	}
	// Docker's own privileged mode asks the kernel for every capability, and fails.
	h.CapDrop, h.CapAdd = []string{"ALL"}, a.Limits.Capabilities
	h.SecurityOpt = append(h.SecurityOpt, "seccomp=unconfined", "label=disable")
	if a.AppArmor {
		h.SecurityOpt = append(h.SecurityOpt, "apparmor=unconfined")
	}
	h.MaskedPaths, h.ReadonlyPaths = []string{}, []string{}
	h.DeviceCgroupRules = []string{"a *:* rwm"}
	h.Devices = append(h.Devices, dockercontainer.DeviceMapping{PathOnHost: "/dev", PathInContainer: "/dev", CgroupPermissions: "rwm"})
}

func confined(h *dockercontainer.HostConfig, s *runtimeapi.LinuxContainerSecurityContext, a Abilities) error {
	h.CapAdd, h.CapDrop = capabilities(s.GetCapabilities().GetAddCapabilities(), a), s.GetCapabilities().GetDropCapabilities()
	// Docker takes nil for its defaults. The kubelet sends the default paths, or none for procMount Unmasked.
	h.MaskedPaths = append([]string{}, s.GetMaskedPaths()...)
	h.ReadonlyPaths = append([]string{}, s.GetReadonlyPaths()...)
	//lint:ignore SA1019 old kubelets send it
	seccomp, err := Seccomp(s.GetSeccomp(), s.GetSeccompProfilePath())
	if err != nil {
		return err
	}
	//lint:ignore SA1019 old kubelets send it
	apparmor, err := appArmor(s.GetApparmor(), s.GetApparmorProfile(), a.AppArmor)
	if err != nil {
		return err
	}
	h.SecurityOpt = append(append(h.SecurityOpt, seccomp...), apparmor...)
	return nil
}

// capabilities replaces ALL by those that exist here, if some do not.
func capabilities(add []string, a Abilities) []string {
	var all []string
	for _, name := range add {
		if strings.EqualFold(name, "ALL") && !a.Limits.Complete() {
			all = append(all, a.Limits.Capabilities...)
			continue
		}
		all = append(all, name)
	}
	return all
}

// Seccomp translates a profile. Docker wants the profile itself, not its path. Without a profile a container
// is unconfined, as with other CRI servers.
func Seccomp(p *runtimeapi.SecurityProfile, path string) ([]string, error) {
	if p == nil {
		p = oldProfile(path)
	}
	switch p.GetProfileType() {
	case runtimeapi.SecurityProfile_RuntimeDefault:
		return nil, nil
	case runtimeapi.SecurityProfile_Unconfined:
		return []string{"seccomp=unconfined"}, nil
	case runtimeapi.SecurityProfile_Localhost:
		text, err := os.ReadFile(strings.TrimPrefix(p.GetLocalhostRef(), "localhost/"))
		if err != nil {
			return nil, fmt.Errorf("read seccomp profile: %w", err)
		}
		return []string{"seccomp=" + string(text)}, nil
	}
	return nil, status.Errorf(codes.InvalidArgument, "unknown type %d of seccomp profile", p.GetProfileType())
}

// oldProfile is a profile in the form that kubelets sent before v1.25.
func oldProfile(path string) *runtimeapi.SecurityProfile {
	switch {
	case path == "runtime/default" || path == "docker/default":
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case strings.HasPrefix(path, "localhost/"):
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: path}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

func appArmor(p *runtimeapi.SecurityProfile, path string, enabled bool) ([]string, error) {
	if p == nil && path == "" {
		return nil, nil // Docker's default
	}
	if p == nil {
		p = oldProfile(path)
	}
	if p.GetProfileType() == runtimeapi.SecurityProfile_RuntimeDefault {
		return nil, nil
	}
	if !enabled {
		if p.GetProfileType() == runtimeapi.SecurityProfile_Unconfined {
			return nil, nil
		}
		return nil, status.Errorf(codes.InvalidArgument, "AppArmor profile %s: AppArmor is not enabled on this machine", p.GetLocalhostRef())
	}
	if p.GetProfileType() == runtimeapi.SecurityProfile_Unconfined {
		return []string{"apparmor=unconfined"}, nil
	}
	return []string{"apparmor=" + strings.TrimPrefix(p.GetLocalhostRef(), "localhost/")}, nil
}

// SELinux translates a label.
func SELinux(o *runtimeapi.SELinuxOption) []string {
	var all []string
	for _, part := range []struct{ key, value string }{
		{"user", o.GetUser()}, {"role", o.GetRole()}, {"type", o.GetType()}, {"level", o.GetLevel()},
	} {
		if part.value != "" {
			all = append(all, "label="+part.key+":"+part.value)
		}
	}
	return all
}
