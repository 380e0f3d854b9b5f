package certificate

import (
	"context"
	"fmt"

	certificates "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"swiftlet/internal/kubeclient"
)

// The usages that the API server's signers allow for a key that signs and does not encrypt.
var (
	clientUsages  = []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}
	servingUsages = []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageServerAuth}
)

// createSigningRequest creates a CertificateSigningRequest, whose name the API server chooses.
func (r *Rotator) createSigningRequest(ctx context.Context, client kubeclient.Interface, request []byte) (*certificates.CertificateSigningRequest, error) {
	created, err := client.CertificateSigningRequests().Create(ctx, &certificates.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec:       certificates.CertificateSigningRequestSpec{Request: request, SignerName: r.cfg.Signer, Usages: r.cfg.Usages},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create certificate signing request: %w", err)
	}
	return created, nil
}

// waitForCertificate returns the certificate when the API server has issued it.
func waitForCertificate(ctx context.Context, client kubeclient.Interface, created *certificates.CertificateSigningRequest) ([]byte, error) {
	requests := client.CertificateSigningRequests()
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, created.Name).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return requests.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return requests.Watch(ctx, opts)
		},
	}, client)
	var issued []byte
	_, err := watchtools.UntilWithSync(ctx, source, &certificates.CertificateSigningRequest{}, nil, func(event watch.Event) (bool, error) {
		request, ok := event.Object.(*certificates.CertificateSigningRequest)
		switch {
		case event.Type == watch.Deleted:
			return false, fmt.Errorf("certificate signing request was deleted")
		case event.Type != watch.Added && event.Type != watch.Modified:
			return false, nil
		case !ok:
			return false, fmt.Errorf("watch certificate signing request: unexpected type %T", event.Object)
		case request.UID != created.UID:
			return false, fmt.Errorf("certificate signing request was replaced by another of its name")
		}
		var err error
		issued, err = issuedCertificate(request)
		return issued != nil, err
	})
	return issued, err
}

// issuedCertificate returns the certificate of a request, nil until it is approved and issued, an error
// where it never will be.
func issuedCertificate(request *certificates.CertificateSigningRequest) ([]byte, error) {
	approved := false
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificates.CertificateDenied:
			return nil, fmt.Errorf("certificate signing request is denied, reason: %s, message: %s", c.Reason, c.Message)
		case certificates.CertificateFailed:
			return nil, fmt.Errorf("certificate signing request failed, reason: %s, message: %s", c.Reason, c.Message)
		case certificates.CertificateApproved:
			approved = true
		}
	}
	if !approved || len(request.Status.Certificate) == 0 {
		return nil, nil
	}
	return request.Status.Certificate, nil
}
