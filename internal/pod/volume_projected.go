package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// What the sources of a projected volume need and show.

func projectedConfigMaps(v *v1.Volume) (names []string) {
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			names = append(names, s.ConfigMap.Name)
		}
	}
	return names
}

func projectedSecrets(v *v1.Volume) (names []string) {
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			names = append(names, s.Secret.Name)
		}
	}
	return names
}

func projectedReference(v *v1.Volume) string {
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			return "configmaps (via projected volumes)"
		case s.Secret != nil:
			return "secrets (via projected volumes)"
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)"
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles"
		case s.PodCertificate != nil:
			return "podcertificates"
		}
	}
	return ""
}

func projectedUsers(v *v1.Volume) []**int64 {
	users := []**int64{&v.Projected.DefaultUser}
	for i := range v.Projected.Sources {
		switch s := &v.Projected.Sources[i]; {
		case s.Secret != nil:
			users = append(users, keyUsers(s.Secret.Items)...)
		case s.ConfigMap != nil:
			users = append(users, keyUsers(s.ConfigMap.Items)...)
		case s.DownwardAPI != nil:
			users = append(users, downwardUsers(s.DownwardAPI.Items)...)
		case s.ServiceAccountToken != nil:
			users = append(users, &s.ServiceAccountToken.User)
		case s.ClusterTrustBundle != nil:
			users = append(users, &s.ClusterTrustBundle.User)
		case s.PodCertificate != nil:
			users = append(users, &s.PodCertificate.User)
		}
	}
	return users
}

func projectsPod(v *v1.Volume) bool {
	return slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool { return s.DownwardAPI != nil })
}

// keyUsers are the fields that name the owners of files made from keys.
func keyUsers(items []v1.KeyToPath) (users []**int64) {
	for i := range items {
		users = append(users, &items[i].User)
	}
	return users
}

// downwardUsers are the fields that name the owners of files made from the pod.
func downwardUsers(items []v1.DownwardAPIVolumeFile) (users []**int64) {
	for i := range items {
		users = append(users, &items[i].User)
	}
	return users
}
