package runtime

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var (
	runtimeDefault = runtimeapi.SecurityProfile_RuntimeDefault
	unconfined     = runtimeapi.SecurityProfile_Unconfined
	localhost      = runtimeapi.SecurityProfile_Localhost
)

// seccomp returns a container's seccomp profile.
func (r *Runtime) seccomp(of *v1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	switch {
	case of == nil && r.cfg.SeccompDefault, of != nil && of.Type == v1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeDefault}, nil
	case of != nil && of.Type == v1.SeccompProfileTypeLocalhost:
		if of.LocalhostProfile == nil || *of.LocalhostProfile == "" {
			return nil, errors.New("localhostProfile must be set if seccompProfile type is Localhost")
		}
		return &runtimeapi.SecurityProfile{ProfileType: localhost, LocalhostRef: filepath.Join(r.cfg.SeccompRoot, *of.LocalhostProfile)}, nil
	}
	return &runtimeapi.SecurityProfile{ProfileType: unconfined}, nil
}

// appArmor returns a container's AppArmor profile, in the current form and in the one that
// older runtimes read. With none the runtime chooses.
func appArmor(p *v1.Pod, c *v1.Container) (*runtimeapi.SecurityProfile, string, error) {
	of := appArmorProfile(p, c)
	if of == nil {
		return nil, "", nil
	}
	switch of.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeDefault}, v1.DeprecatedAppArmorBetaProfileRuntimeDefault, nil
	case v1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: unconfined}, v1.DeprecatedAppArmorBetaProfileNameUnconfined, nil
	case v1.AppArmorProfileTypeLocalhost:
		if of.LocalhostProfile == nil || *of.LocalhostProfile == "" {
			return nil, "", errors.New("missing localhost apparmor profile name")
		}
		name := *of.LocalhostProfile
		return &runtimeapi.SecurityProfile{ProfileType: localhost, LocalhostRef: name}, v1.DeprecatedAppArmorBetaProfileNamePrefix + name, nil
	}
	return nil, "", fmt.Errorf("unknown apparmor profile type: %q", of.Type)
}

// appArmorProfile returns the container's profile, else that of the deprecated annotation,
// which no API server has converted in a static pod, else the pod's.
func appArmorProfile(p *v1.Pod, c *v1.Container) *v1.AppArmorProfile {
	if c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
		return c.SecurityContext.AppArmorProfile
	}
	annotated := p.Annotations[v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name]
	switch name, local := strings.CutPrefix(annotated, v1.DeprecatedAppArmorBetaProfileNamePrefix); {
	case local && name != "":
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	case annotated == v1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
	case annotated == v1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
	}
	if p.Spec.SecurityContext != nil {
		return p.Spec.SecurityContext.AppArmorProfile
	}
	return nil
}
