package pod

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// apiReference returns the kind of API object that p depends on, "" if there is none. A static pod must
// be able to start without the API server, so on a node of a cluster it may not depend on any.
func apiReference(p *v1.Pod) string {
	if p.Spec.ServiceAccountName != "" {
		return "serviceaccounts"
	}
	if len(p.Spec.ImagePullSecrets) > 0 {
		return "secrets"
	}
	for c := range Containers(p) {
		if ref := envReference(c); ref != "" {
			return ref
		}
	}
	if len(p.Spec.ResourceClaims) > 0 {
		return "resourceclaims"
	}
	for i := range p.Spec.Volumes {
		if ref := volumeReference(&p.Spec.Volumes[i]); ref != "" {
			return ref
		}
	}
	return ""
}

// CheckNoAPIReference returns an error if p depends on an API object.
func CheckNoAPIReference(p *v1.Pod) error {
	if ref := apiReference(p); ref != "" {
		return fmt.Errorf("static pods may not reference %s", ref)
	}
	return nil
}

func envReference(c *v1.Container) string {
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			return "secrets"
		case from.ConfigMapRef != nil:
			return "configmaps"
		}
	}
	for _, env := range c.Env {
		switch {
		case env.ValueFrom == nil:
		case env.ValueFrom.SecretKeyRef != nil:
			return "secrets"
		case env.ValueFrom.ConfigMapKeyRef != nil:
			return "configmaps"
		}
	}
	return ""
}

func volumeReference(v *v1.Volume) string {
	for _, k := range kindsOf(v) {
		switch {
		case k.apiReference != nil:
			if ref := k.apiReference(v); ref != "" {
				return ref
			}
		case k.secretRef != nil && k.secretRef(v) != nil:
			return "secrets"
		}
	}
	return ""
}
