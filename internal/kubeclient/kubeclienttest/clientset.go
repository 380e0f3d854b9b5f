// Package kubeclienttest lets tests use client-go's clientsets, the fake one above all, where a kubelet uses
// package kubeclient.
package kubeclienttest

import (
	"k8s.io/client-go/kubernetes"

	"swiftlet/internal/kubeclient"
)

// Wrap returns set as a kubeclient.Interface.
func Wrap(set kubernetes.Interface) Clientset { return Clientset{set} }

// Clientset is a clientset of client-go.
type Clientset struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported reports to client-go's Reflector that the fake clientset cannot stream
// lists.
func (c Clientset) IsWatchListSemanticsUnSupported() bool {
	fake, ok := c.Interface.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && fake.IsWatchListSemanticsUnSupported()
}

func (c Clientset) Pods(namespace string) kubeclient.Pods { return c.CoreV1().Pods(namespace) }

func (c Clientset) Nodes() kubeclient.Nodes { return c.CoreV1().Nodes() }

func (c Clientset) Events(namespace string) kubeclient.Events { return c.CoreV1().Events(namespace) }

func (c Clientset) ConfigMaps(namespace string) kubeclient.ConfigMaps {
	return c.CoreV1().ConfigMaps(namespace)
}

func (c Clientset) Secrets(namespace string) kubeclient.Secrets { return c.CoreV1().Secrets(namespace) }

func (c Clientset) Services(namespace string) kubeclient.Services {
	return c.CoreV1().Services(namespace)
}

func (c Clientset) PersistentVolumes() kubeclient.PersistentVolumes {
	return c.CoreV1().PersistentVolumes()
}

func (c Clientset) PersistentVolumeClaims(namespace string) kubeclient.PersistentVolumeClaims {
	return c.CoreV1().PersistentVolumeClaims(namespace)
}

func (c Clientset) Leases(namespace string) kubeclient.Leases {
	return c.CoordinationV1().Leases(namespace)
}

func (c Clientset) RuntimeClasses() kubeclient.RuntimeClasses { return c.NodeV1().RuntimeClasses() }

func (c Clientset) CSIDrivers() kubeclient.CSIDrivers { return c.StorageV1().CSIDrivers() }

func (c Clientset) CSINodes() kubeclient.CSINodes { return c.StorageV1().CSINodes() }

func (c Clientset) VolumeAttachments() kubeclient.VolumeAttachments {
	return c.StorageV1().VolumeAttachments()
}

func (c Clientset) ResourceClaims(namespace string) kubeclient.ResourceClaims {
	return c.ResourceV1().ResourceClaims(namespace)
}

func (c Clientset) ResourceSlices() kubeclient.ResourceSlices { return c.ResourceV1().ResourceSlices() }

func (c Clientset) CertificateSigningRequests() kubeclient.CertificateSigningRequests {
	return c.CertificatesV1().CertificateSigningRequests()
}

func (c Clientset) PodCertificateRequests(namespace string) kubeclient.PodCertificateRequests {
	return c.CertificatesV1().PodCertificateRequests(namespace)
}

func (c Clientset) ClusterTrustBundles() kubeclient.ClusterTrustBundles {
	return c.CertificatesV1().ClusterTrustBundles()
}

func (c Clientset) ServiceAccounts(namespace string) kubeclient.ServiceAccounts {
	return c.CoreV1().ServiceAccounts(namespace)
}

func (c Clientset) TokenReviews() kubeclient.TokenReviews { return c.AuthenticationV1().TokenReviews() }

func (c Clientset) SubjectAccessReviews() kubeclient.SubjectAccessReviews {
	return c.AuthorizationV1().SubjectAccessReviews()
}

var _ kubeclient.Interface = Clientset{}
