package bed

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"
)

// loopbackBed is a bed that needs no root and can only start a registry.
func loopbackBed(t *testing.T) *Bed {
	t.Helper()
	ca, err := newAuthority(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	return &Bed{slot: &slot{subnet: "127.0.0"}, ControlPlane: &ControlPlane{ca: ca}}
}

func TestRegistryRequiresPassword(t *testing.T) {
	cases := []struct {
		name           string
		user, password string // of the registry
		asUser, asPass string // of the caller
		want           int
	}{
		{"registry without password", "", "", "", "", http.StatusOK},
		{"right password", "ann", "secret", "ann", "secret", http.StatusOK},
		{"no password", "ann", "secret", "", "", http.StatusUnauthorized},
		{"wrong password", "ann", "secret", "ann", "guess", http.StatusUnauthorized},
		{"wrong user", "ann", "secret", "bob", "secret", http.StatusUnauthorized},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := loopbackBed(t).StartRegistry(c.user, c.password)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}()
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.Host+"/v2/", nil)
			if c.asUser != "" {
				request.SetBasicAuth(c.asUser, c.asPass)
			}
			client, err := r.ca.httpClient()
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			answer, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != c.want {
				t.Errorf("status %d, want %d", answer.StatusCode, c.want)
			}
		})
	}
}

func TestPushReturnsFullName(t *testing.T) {
	r, err := loopbackBed(t).StartRegistry("ann", "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	image, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	name, err := r.Push(t.Context(), "team/app:1", image)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Host + "/team/app:1"; name != want {
		t.Errorf("name %q, want %q", name, want)
	}
}
