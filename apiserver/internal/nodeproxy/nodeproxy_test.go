package nodeproxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // encodes errors
)

// kubelet answers with the address of the request.
type kubelet struct{ err error }

func (k kubelet) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.Method + " " + r.URL.String())), Request: r}, nil
}

func TestProxy(t *testing.T) {
	const nodes = "/api/v1/nodes/"
	down := errors.New("connection refused")
	for _, row := range []struct {
		method, path string
		err          error
		want         string
	}{
		{"GET", nodes + "lone/proxy/pods", nil, "GET https://lone:10250/pods"},
		{"GET", nodes + "lone/proxy/pods?limit=1", nil, "GET https://lone:10250/pods?limit=1"},
		{"POST", nodes + "lone:10250/proxy/exec/ns/pod", nil, "POST https://lone:10250/exec/ns/pod"},
		{"GET", nodes + "https:lone:10250/proxy/proxy/proxy", nil, "GET https://lone:10250/proxy/proxy"},
		{"GET", nodes + "lone/proxy/", nil, "GET https://lone:10250/"},
		{"GET", nodes + "lone/proxy/pods", down, "503 error trying to reach service: connection refused"},
		{"GET", nodes + "lone:9999/proxy/pods", nil, "next"},
		{"GET", nodes + "other/proxy/pods", nil, "next"},
		{"GET", nodes + "lone", nil, "next"},
		{"GET", nodes + "lone/status", nil, "next"},
		{"GET", "/api/v1/namespaces/ns/pods/lone/proxy/x", nil, "next"},
		{"GET", "/healthz", nil, "next"},
	} {
		t.Run(row.method+row.path, func(t *testing.T) {
			if got := answer(t, row.method, row.path, row.err); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// answer is the body that a request gets, or the code and the message of an error.
func answer(t *testing.T, method, path string, err error) string {
	t.Helper()
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, name := range []string{"lone", "other"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
		if err := known.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	handler := Wrap(Config{Node: "lone", Nodes: corelisters.NewNodeLister(known), Transport: kubelet{err}, Errors: legacyscheme.Codecs},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "next") }))
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	info, infoErr := (&request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}).NewRequestInfo(r)
	if infoErr != nil {
		t.Fatal(infoErr)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	if w.Code == http.StatusOK {
		return w.Body.String()
	}
	_, message, _ := strings.Cut(w.Body.String(), `"message":"`)
	message, _, _ = strings.Cut(message, `"`)
	return fmt.Sprint(w.Code, " ", message)
}
