package kubeclient_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/kubeclient/kubeclienttest"
)

// callEach makes every request that a Resource can make, and returns what the responses were decoded to.
func callEach[T interface {
	metav1.Object
	comparable
}, L any](r kubeclient.Resource[T, L], object T) []string {
	ctx := context.Background()
	object.SetName("a")
	object.SetLabels(map[string]string{"k": "v"})
	var results []string
	add := func(result any, err error) { results = append(results, fmt.Sprint(result, err)) }
	list := metav1.ListOptions{FieldSelector: "metadata.name=a", TimeoutSeconds: ptr.To[int64](7), ResourceVersion: "0"}
	add(r.Create(ctx, object, metav1.CreateOptions{FieldManager: "m"}))
	add(r.Get(ctx, "a", metav1.GetOptions{ResourceVersion: "1"}))
	add(r.List(ctx, list))
	add(r.List(ctx, metav1.ListOptions{}))
	add(r.Update(ctx, object, metav1.UpdateOptions{}))
	add(r.Patch(ctx, "a", types.StrategicMergePatchType, []byte("{}"), metav1.PatchOptions{}, "status"))
	add(r.Patch(ctx, "a", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{}))
	add(nil, r.Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions("u")}))
	list.AllowWatchBookmarks = true
	w, err := r.Watch(ctx, list)
	if err == nil {
		w.Stop()
	}
	add(nil, err)
	return results
}

// callAll makes every request that the client can make.
func callAll(c kubeclient.Interface) []string {
	ctx := context.Background()
	results := slices.Concat(
		callEach(c.Pods("ns"), &v1.Pod{}), callEach(c.Pods(""), &v1.Pod{}), callEach(c.Nodes(), &v1.Node{}),
		callEach(c.Events("ns"), &v1.Event{}), callEach(c.ConfigMaps("ns"), &v1.ConfigMap{}), callEach(c.Secrets("ns"), &v1.Secret{}),
		callEach(c.Services("ns"), &v1.Service{}), callEach(c.ServiceAccounts("ns"), &v1.ServiceAccount{}),
		callEach(c.PersistentVolumes(), &v1.PersistentVolume{}), callEach(c.PersistentVolumeClaims("ns"), &v1.PersistentVolumeClaim{}),
		callEach(c.Leases("ns"), &coordinationv1.Lease{}), callEach(c.RuntimeClasses(), &nodev1.RuntimeClass{}),
		callEach(c.CSIDrivers(), &storagev1.CSIDriver{}), callEach(c.CSINodes(), &storagev1.CSINode{}),
		callEach(c.VolumeAttachments(), &storagev1.VolumeAttachment{}),
		callEach(c.ResourceClaims("ns"), &resourcev1.ResourceClaim{}), callEach(c.ResourceSlices(), &resourcev1.ResourceSlice{}),
		callEach(c.CertificateSigningRequests(), &certificatesv1.CertificateSigningRequest{}),
		callEach(c.PodCertificateRequests("ns"), &certificatesv1.PodCertificateRequest{}),
		callEach(c.ClusterTrustBundles(), &certificatesv1.ClusterTrustBundle{}),
	)
	token, err := c.ServiceAccounts("ns").CreateToken(ctx, "a", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"api"}}}, metav1.CreateOptions{})
	results = append(results, fmt.Sprint(token, err))
	err = c.ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.driver=d"})
	results = append(results, fmt.Sprint(err))
	review, err := c.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "t"}}, metav1.CreateOptions{})
	results = append(results, fmt.Sprint(review, err))
	access, err := c.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "u"}}, metav1.CreateOptions{})
	return append(results, fmt.Sprint(access, err))
}

// TestRequestsAreThoseOfClientGo: for every kind and operation, the requests and the results are the same
// as those of client-go's clientset.
func TestRequestsAreThoseOfClientGo(t *testing.T) {
	for name, content := range map[string]rest.ContentConfig{
		"default":  {},
		"json":     {ContentType: "application/json"},
		"protobuf": {ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				requests = append(requests, fmt.Sprintf("%s %s %v %q", r.Method, r.URL, r.Header, body))
				w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
				if r.Method == http.MethodPost || r.Method == http.MethodPut {
					w.Write(body) // an object that can be decoded
					return
				}
				w.WriteHeader(http.StatusNotFound)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, ContentConfig: content, QPS: -1, UserAgent: "test"}
			set, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			wantResults := callAll(kubeclienttest.Wrap(set))
			want := requests
			requests = nil
			transport, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubeclient.New(config, transport)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "result", callAll(client), wantResults)
			compare(t, "request", requests, want)
		})
	}
}

func compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) || len(got) < 180 {
		t.Fatalf("%d %ss, want %d", len(got), what, len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s\n%s, want\n%s", what, got[i], want[i])
		}
	}
}

func TestResponsesAreDecoded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/namespaces/ns/pods/none" {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"no such pod","code":404}`)
			return
		}
		io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`)
	}))
	defer server.Close()
	c, err := kubeclient.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if list, err := c.Pods("ns").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("list %+v, %v", list, err)
	}
	if _, err := c.Pods("ns").Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) || err.Error() != "no such pod" {
		t.Errorf("get: %v, want not found", err)
	}
}
