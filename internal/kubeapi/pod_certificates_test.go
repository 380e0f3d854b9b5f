package kubeapi

import (
	"fmt"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/kubeclient/kubeclienttest"
)

// The node's clock is ahead, so that a certificate is due for renewal when it is issued. Every change of a
// request is a reason to call Get for all pods.
func TestPodCertificateThatIsDueAtOnce(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	client := fake.NewClientset(&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "default"}})
	created := 0
	var request *certificatesv1.PodCertificateRequest
	client.PrependReactor("create", "podcertificaterequests", func(a ktesting.Action) (bool, runtime.Object, error) {
		created++
		request = a.(ktesting.CreateAction).GetObject().(*certificatesv1.PodCertificateRequest).DeepCopy()
		request.Name = fmt.Sprint("req-", created)
		issued := metav1.NewTime(clock.Now().Add(-2 * time.Hour))
		request.Status = certificatesv1.PodCertificateRequestStatus{
			Conditions:     []metav1.Condition{{Type: certificatesv1.PodCertificateRequestConditionTypeIssued}},
			BeginRefreshAt: &issued, NotAfter: &issued,
		}
		return true, request, nil
	})
	client.PrependReactor("get", "podcertificaterequests", func(ktesting.Action) (bool, runtime.Object, error) { return true, request, nil })
	certificates, err := NewPodCertificates("n", PodCertificatesDeps{
		Client: kubeclienttest.Wrap(client), Node: func() (*v1.Node, error) { return &v1.Node{}, nil },
		Events: record.NewFakeRecorder(100), Clock: clock, Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}, Spec: v1.PodSpec{ServiceAccountName: "default"}}
	get := func() {
		for range 10 {
			_, _ = certificates.Get(t.Context(), p, "v", 0, &v1.PodCertificateProjection{KeyType: "ED25519"})
		}
	}
	get()
	if created != 1 {
		t.Errorf("%d requests at once, want 1", created)
	}
	clock.SetTime(clock.Now().Add(certificatePoll))
	get()
	if created != 2 {
		t.Errorf("%d requests after %v, want 2", created, certificatePoll)
	}
}
