package admit

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// AppArmor rejects pods with a profile that this machine cannot enforce. It does not check a
// pod that has started already: its profile was enforced then.
func AppArmor(enabled bool) Check {
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		if p.Status.Phase != "" && p.Status.Phase != v1.PodPending || !confined(p) {
			return nil
		}
		if !enabled {
			return pod.Reject("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
		}
		if err := checkProfileNames(p); err != nil {
			return pod.Reject("AppArmor", "Cannot enforce AppArmor: %v", err)
		}
		return nil
	}
}

// profiles returns the profiles of the pod and its containers.
func profiles(p *v1.Pod) []*v1.AppArmorProfile {
	var all []*v1.AppArmorProfile
	if sc := p.Spec.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
		all = append(all, sc.AppArmorProfile)
	}
	for c := range pod.Containers(p) {
		if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
			all = append(all, sc.AppArmorProfile)
		}
	}
	return all
}

// confined reports whether the pod has a profile other than unconfined.
func confined(p *v1.Pod) bool {
	for _, profile := range profiles(p) {
		if profile.Type != v1.AppArmorProfileTypeUnconfined {
			return true
		}
	}
	for key, value := range p.Annotations {
		if strings.HasPrefix(key, v1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix) && value != v1.DeprecatedAppArmorBetaProfileNameUnconfined {
			return true
		}
	}
	return false
}

// checkProfileNames returns an error for a localhost profile without a name.
func checkProfileNames(p *v1.Pod) error {
	for _, profile := range profiles(p) {
		if profile.Type == v1.AppArmorProfileTypeLocalhost &&
			(profile.LocalhostProfile == nil || strings.TrimSpace(*profile.LocalhostProfile) == "") {
			return fmt.Errorf("invalid empty AppArmor profile name: %q", profile)
		}
	}
	return nil
}
