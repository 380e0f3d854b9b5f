package kubeclient

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newOf[T any]() *T { return new(T) }

func (c *Client) Pods(namespace string) Pods {
	return &resource[*v1.Pod, *v1.PodList]{c.core, namespace, "pods", newOf[v1.Pod], newOf[v1.PodList]}
}

func (c *Client) Nodes() Nodes {
	return &resource[*v1.Node, *v1.NodeList]{c.core, "", "nodes", newOf[v1.Node], newOf[v1.NodeList]}
}

func (c *Client) Events(namespace string) Events {
	return &resource[*v1.Event, *v1.EventList]{c.core, namespace, "events", newOf[v1.Event], newOf[v1.EventList]}
}

func (c *Client) ConfigMaps(namespace string) ConfigMaps {
	return &resource[*v1.ConfigMap, *v1.ConfigMapList]{c.core, namespace, "configmaps", newOf[v1.ConfigMap], newOf[v1.ConfigMapList]}
}

func (c *Client) Secrets(namespace string) Secrets {
	return &resource[*v1.Secret, *v1.SecretList]{c.core, namespace, "secrets", newOf[v1.Secret], newOf[v1.SecretList]}
}

func (c *Client) Services(namespace string) Services {
	return &resource[*v1.Service, *v1.ServiceList]{c.core, namespace, "services", newOf[v1.Service], newOf[v1.ServiceList]}
}

func (c *Client) PersistentVolumes() PersistentVolumes {
	return &resource[*v1.PersistentVolume, *v1.PersistentVolumeList]{c.core, "", "persistentvolumes", newOf[v1.PersistentVolume], newOf[v1.PersistentVolumeList]}
}

func (c *Client) PersistentVolumeClaims(namespace string) PersistentVolumeClaims {
	return &resource[*v1.PersistentVolumeClaim, *v1.PersistentVolumeClaimList]{c.core, namespace, "persistentvolumeclaims", newOf[v1.PersistentVolumeClaim], newOf[v1.PersistentVolumeClaimList]}
}

func (c *Client) Leases(namespace string) Leases {
	return &resource[*coordinationv1.Lease, *coordinationv1.LeaseList]{c.coordination, namespace, "leases", newOf[coordinationv1.Lease], newOf[coordinationv1.LeaseList]}
}

func (c *Client) RuntimeClasses() RuntimeClasses {
	return &resource[*nodev1.RuntimeClass, *nodev1.RuntimeClassList]{c.node, "", "runtimeclasses", newOf[nodev1.RuntimeClass], newOf[nodev1.RuntimeClassList]}
}

func (c *Client) CSIDrivers() CSIDrivers {
	return &resource[*storagev1.CSIDriver, *storagev1.CSIDriverList]{c.storage, "", "csidrivers", newOf[storagev1.CSIDriver], newOf[storagev1.CSIDriverList]}
}

func (c *Client) CSINodes() CSINodes {
	return &resource[*storagev1.CSINode, *storagev1.CSINodeList]{c.storage, "", "csinodes", newOf[storagev1.CSINode], newOf[storagev1.CSINodeList]}
}

func (c *Client) VolumeAttachments() VolumeAttachments {
	return &resource[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]{c.storage, "", "volumeattachments", newOf[storagev1.VolumeAttachment], newOf[storagev1.VolumeAttachmentList]}
}

func (c *Client) ResourceClaims(namespace string) ResourceClaims {
	return &resource[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList]{c.resource, namespace, "resourceclaims", newOf[resourcev1.ResourceClaim], newOf[resourcev1.ResourceClaimList]}
}

func (c *Client) ResourceSlices() ResourceSlices {
	return &resource[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList]{c.resource, "", "resourceslices", newOf[resourcev1.ResourceSlice], newOf[resourcev1.ResourceSliceList]}
}

func (c *Client) CertificateSigningRequests() CertificateSigningRequests {
	return &resource[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]{c.certificates, "", "certificatesigningrequests", newOf[certificatesv1.CertificateSigningRequest], func() *certificatesv1.CertificateSigningRequestList {
		return &certificatesv1.CertificateSigningRequestList{}
	}}
}

func (c *Client) PodCertificateRequests(namespace string) PodCertificateRequests {
	return &resource[*certificatesv1.PodCertificateRequest, *certificatesv1.PodCertificateRequestList]{c.certificates, namespace, "podcertificaterequests", newOf[certificatesv1.PodCertificateRequest], newOf[certificatesv1.PodCertificateRequestList]}
}

func (c *Client) ClusterTrustBundles() ClusterTrustBundles {
	return &resource[*certificatesv1.ClusterTrustBundle, *certificatesv1.ClusterTrustBundleList]{c.certificates, "", "clustertrustbundles", newOf[certificatesv1.ClusterTrustBundle], newOf[certificatesv1.ClusterTrustBundleList]}
}

func (c *Client) ServiceAccounts(namespace string) ServiceAccounts {
	return serviceAccounts{&resource[*v1.ServiceAccount, *v1.ServiceAccountList]{c.core, namespace, "serviceaccounts",
		newOf[v1.ServiceAccount], newOf[v1.ServiceAccountList]}}
}

type serviceAccounts struct {
	*resource[*v1.ServiceAccount, *v1.ServiceAccountList]
}

func (a serviceAccounts) CreateToken(ctx context.Context, account string, request *authenticationv1.TokenRequest, opts metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := &authenticationv1.TokenRequest{}
	err := a.request(a.rest.Post()).Name(account).SubResource("token").VersionedParams(&opts, parameterCodec).Body(request).Do(ctx).Into(got)
	return got, err
}

// Reviews are not stored, so there is no list of them. The list type is never used.

func (c *Client) TokenReviews() TokenReviews {
	return &resource[*authenticationv1.TokenReview, *v1.List]{rest: c.authentication, name: "tokenreviews",
		newObject: newOf[authenticationv1.TokenReview]}
}

func (c *Client) SubjectAccessReviews() SubjectAccessReviews {
	return &resource[*authorizationv1.SubjectAccessReview, *v1.List]{rest: c.authorization, name: "subjectaccessreviews",
		newObject: newOf[authorizationv1.SubjectAccessReview]}
}
