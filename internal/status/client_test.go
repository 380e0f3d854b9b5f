package status

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"swiftlet/internal/kubeclient"
)

// newClient returns a client whose requests handler receives.
func newClient(t *testing.T, handler http.HandlerFunc) Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	set, err := kubeclient.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return NewClient(set.Core())
}

func refuse(err apierrors.APIStatus) http.HandlerFunc {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return func(w http.ResponseWriter, _ *http.Request) { respond(w, int(status.Code), status) }
}

func respond(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func TestPatchRequest(t *testing.T) {
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(body)}, " ")
		if want := "PATCH /api/v1/namespaces/ns/pods/a/status application/strategic-merge-patch+json {}"; got != want {
			t.Errorf("request %s, want %s", got, want)
		}
		if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			t.Errorf("Accept header %s", r.Header.Get("Accept"))
		}
		respond(w, 200, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "17"}})
	})
	version, err := client.PatchStatus(t.Context(), "ns", "a", []byte("{}"))
	if err != nil || version != "17" {
		t.Errorf("version %q, %v", version, err)
	}
}

func TestErrorClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		handler      http.HandlerFunc
		gone, outage bool
	}{
		"pod not found":           {refuse(errGone), true, false},
		"uid is immutable":        {refuse(errOther), true, false},
		"uid precondition failed": {refuse(errPrecondition), true, false},
		"other conflict":          {refuse(apierrors.NewConflict(pods, "a", io.EOF)), false, false},
		"forbidden":               {refuse(apierrors.NewForbidden(pods, "a", nil)), false, false},
		"server error": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "etcd is away", http.StatusInternalServerError)
		}, false, true},
		"proxy error":       {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, false, true},
		"connection closed": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, tc.handler)
			_, err := client.PatchStatus(t.Context(), "ns", "a", []byte("{}"))
			if err == nil || isGone(err) != tc.gone || isOutage(err) != tc.outage {
				t.Errorf("%v: gone %v, outage %v, want %v, %v", err, err != nil && isGone(err), err != nil && isOutage(err), tc.gone, tc.outage)
			}
		})
	}
}

func TestDeleteRequest(t *testing.T) {
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		var options metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
			t.Error(err)
		}
		if r.Method != "DELETE" || r.URL.Path != "/api/v1/namespaces/ns/pods/a" || *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != "u" {
			t.Errorf("request %s %s with %+v", r.Method, r.URL.Path, options)
		}
		respond(w, 200, v1.Pod{})
	})
	if err := client.DeletePod(t.Context(), "ns", "a", "u"); err != nil {
		t.Error(err)
	}
}
