package image

import (
	"cmp"
	"slices"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// merge adds grants for an image. Once every pod of the node may use it, individual grants are
// dropped.
func merge(have, more kubelet.ImagePullCredentials) (merged kubelet.ImagePullCredentials, changed bool) {
	switch {
	case have.NodePodsAccessible:
		return have, false
	case more.NodePodsAccessible:
		return kubelet.ImagePullCredentials{NodePodsAccessible: true}, true
	}
	merged = have
	merged.KubernetesSecrets = slices.Clone(have.KubernetesSecrets)
	for _, s := range more.KubernetesSecrets {
		i := slices.IndexFunc(merged.KubernetesSecrets, func(o kubelet.ImagePullSecret) bool { return sameSecret(o, s) })
		switch {
		case i < 0:
			merged.KubernetesSecrets = append(merged.KubernetesSecrets, s)
			changed = true
		case merged.KubernetesSecrets[i].CredentialHash != s.CredentialHash:
			merged.KubernetesSecrets[i] = s
			changed = true
		}
	}
	slices.SortFunc(merged.KubernetesSecrets, func(a, b kubelet.ImagePullSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	merged.KubernetesServiceAccounts = slices.Clone(have.KubernetesServiceAccounts)
	for _, a := range more.KubernetesServiceAccounts {
		if !slices.Contains(merged.KubernetesServiceAccounts, a) {
			merged.KubernetesServiceAccounts = append(merged.KubernetesServiceAccounts, a)
			changed = true
		}
	}
	slices.SortFunc(merged.KubernetesServiceAccounts, func(a, b kubelet.ImagePullServiceAccount) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return merged, changed
}

func sameSecret(a, b kubelet.ImagePullSecret) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name
}

// matchGranted returns the first credential that the image was pulled with before: one with the
// same content, one from the same secret, whose content may have been renewed, or one that a
// plugin issued for the same service account.
func matchGranted(granted kubelet.ImagePullCredentials, credentials []Credential) (match *Credential, ok bool) {
	for i := range credentials {
		c := &credentials[i]
		if c.ServiceAccount != nil && slices.Contains(granted.KubernetesServiceAccounts, *c.ServiceAccount) {
			return c, true
		}
		if c.Secret == nil {
			continue // a pull with node credentials grants access to every pod
		}
		for _, s := range granted.KubernetesSecrets {
			sameContent := s.CredentialHash != "" && s.CredentialHash == c.Secret.CredentialHash
			if sameContent || sameSecret(s, *c.Secret) && len(granted.KubernetesSecrets) < maxRecordedSecrets {
				return c, true
			}
		}
	}
	return nil, false
}
