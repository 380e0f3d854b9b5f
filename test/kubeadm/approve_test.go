package kubeadm

import (
	"context"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// approveServing approves the requests for serving certificates until the test ends. Kubernetes
// leaves that to the administrator.
func (c *cluster) approveServing(t *testing.T) {
	t.Helper()
	ctx, done := t.Context(), make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := c.approvePending(ctx); err != nil && ctx.Err() == nil {
				t.Log(err) // the API server may restart
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
}

func (c *cluster) approvePending(ctx context.Context) error {
	requests := c.client.CertificatesV1().CertificateSigningRequests()
	list, err := requests.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, request := range list.Items {
		if request.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		}}
		if _, err := requests.UpdateApproval(ctx, request.Name, &request, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
