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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is implemented by Client. Tests wrap client-go's fake clientset with package kubeclienttest.
type Interface interface {
	Pods(namespace string) Pods
	Nodes() Nodes
	Events(namespace string) Events
	ConfigMaps(namespace string) ConfigMaps
	Secrets(namespace string) Secrets
	Services(namespace string) Services
	ServiceAccounts(namespace string) ServiceAccounts
	PersistentVolumes() PersistentVolumes
	PersistentVolumeClaims(namespace string) PersistentVolumeClaims

	Leases(namespace string) Leases
	RuntimeClasses() RuntimeClasses

	CSIDrivers() CSIDrivers
	CSINodes() CSINodes
	VolumeAttachments() VolumeAttachments

	ResourceClaims(namespace string) ResourceClaims
	ResourceSlices() ResourceSlices

	CertificateSigningRequests() CertificateSigningRequests
	PodCertificateRequests(namespace string) PodCertificateRequests
	ClusterTrustBundles() ClusterTrustBundles

	TokenReviews() TokenReviews
	SubjectAccessReviews() SubjectAccessReviews
}

// Resource has the operations on one kind of object, in one namespace where the kind has one. T is a
// pointer to the object, L one to its list. The methods are those of client-go's typed clients.
type Resource[T, L any] interface {
	Creator[T]
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// Creator creates objects.
type Creator[T any] interface {
	Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error)
}

// ServiceAccounts also creates tokens.
type ServiceAccounts interface {
	Resource[*v1.ServiceAccount, *v1.ServiceAccountList]
	CreateToken(ctx context.Context, account string, request *authenticationv1.TokenRequest, opts metav1.CreateOptions) (*authenticationv1.TokenRequest, error)
}

// ResourceSlices can also be deleted together.
type ResourceSlices interface {
	Resource[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList]
	DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error
}

// The kinds of objects in use.
type (
	Pods                   = Resource[*v1.Pod, *v1.PodList]
	Nodes                  = Resource[*v1.Node, *v1.NodeList]
	Events                 = Resource[*v1.Event, *v1.EventList]
	ConfigMaps             = Resource[*v1.ConfigMap, *v1.ConfigMapList]
	Secrets                = Resource[*v1.Secret, *v1.SecretList]
	Services               = Resource[*v1.Service, *v1.ServiceList]
	PersistentVolumes      = Resource[*v1.PersistentVolume, *v1.PersistentVolumeList]
	PersistentVolumeClaims = Resource[*v1.PersistentVolumeClaim, *v1.PersistentVolumeClaimList]

	Leases         = Resource[*coordinationv1.Lease, *coordinationv1.LeaseList]
	RuntimeClasses = Resource[*nodev1.RuntimeClass, *nodev1.RuntimeClassList]

	CSIDrivers        = Resource[*storagev1.CSIDriver, *storagev1.CSIDriverList]
	CSINodes          = Resource[*storagev1.CSINode, *storagev1.CSINodeList]
	VolumeAttachments = Resource[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]

	ResourceClaims = Resource[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList]

	CertificateSigningRequests = Resource[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]
	PodCertificateRequests     = Resource[*certificatesv1.PodCertificateRequest, *certificatesv1.PodCertificateRequestList]
	ClusterTrustBundles        = Resource[*certificatesv1.ClusterTrustBundle, *certificatesv1.ClusterTrustBundleList]

	TokenReviews         = Creator[*authenticationv1.TokenReview]
	SubjectAccessReviews = Creator[*authorizationv1.SubjectAccessReview]
)
