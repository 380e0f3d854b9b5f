package image

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/moby/moby/api/pkg/authconfig"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"

func TestPullName(t *testing.T) {
	for text, want := range map[string]string{
		"busybox":                        "docker.io/library/busybox:latest",
		"busybox:1.36":                   "docker.io/library/busybox:1.36",
		"registry.k8s.io/a/b:c":          "registry.k8s.io/a/b:c",
		"registry.k8s.io/a:c@" + digest:  "registry.k8s.io/a@" + digest,
		"localhost:5000/a":               "localhost:5000/a:latest",
		"Not A Name":                     "InvalidArgument",
		"":                               "InvalidArgument",
		"registry.k8s.io/a@sha256:short": "InvalidArgument",
	} {
		got, err := pullName(text)
		if err != nil {
			got = status.Code(err).String()
		}
		if got != want {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
}

func TestNamesAreComplete(t *testing.T) {
	got := names("sha256:x", []string{"busybox:1.36", "<none>:<none>"}, []string{"busybox@" + digest, "<none>@<none>"})
	if want := []string{"docker.io/library/busybox:1.36"}; !reflect.DeepEqual(got.RepoTags, want) {
		t.Errorf("tags %v; want %v", got.RepoTags, want)
	}
	if want := []string{"docker.io/library/busybox@" + digest}; !reflect.DeepEqual(got.RepoDigests, want) {
		t.Errorf("digests %v; want %v", got.RepoDigests, want)
	}
}

func TestUser(t *testing.T) {
	for text, want := range map[string]string{"": "<nil> ", "0": "0 ", "1000:5": "1000 ", "www": "<nil> www", "www:5": "<nil> www"} {
		uid, name := user(text)
		got := "<nil> " + name
		if uid != nil {
			got = fmt.Sprint(uid.GetValue(), " ", name)
		}
		if got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	text, err := encode(&runtimeapi.AuthConfig{Auth: base64.StdEncoding.EncodeToString([]byte("me:pa:ss"))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := authconfig.Decode(text)
	if err != nil || got.Username != "me" || got.Password != "pa:ss" {
		t.Errorf("%+v, %v; want user me with password pa:ss", got, err)
	}
	if _, err := encode(&runtimeapi.AuthConfig{Auth: "***"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("wrong credentials: %v", err)
	}
	if text, err := encode(nil); text != "" || err != nil {
		t.Errorf("no credentials: %q, %v", text, err)
	}
}

func TestPullErrorsHaveCodes(t *testing.T) {
	for text, want := range map[string]codes.Code{
		"manifest for x:1 not found: manifest unknown: manifest unknown":      codes.NotFound,
		"Head https://r/v2/x/manifests/1: no basic auth credentials":          codes.Unauthenticated,
		"pull access denied for x, repository does not exist or may require":  codes.PermissionDenied,
		"Get https://r/v2/: dial tcp: lookup r: Temporary failure in name re": codes.Unknown,
	} {
		if got := status.Code(pullError(errors.New(text))); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
