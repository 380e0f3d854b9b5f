package e2e

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/network"
)

// startRegistry serves images on the box's loopback interface, to user me with password secret.
func startRegistry(t *testing.T) (host string, transport http.RoundTripper) {
	t.Helper()
	var listener net.Listener
	err := ns.WithNetNSPath(box.NetNS(), func(ns.NetNS) (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // Serve returns its error
		if err := <-done; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
	return listener.Addr().String(), inBox(listener.Addr().(*net.TCPAddr).Port)
}

// inBox connects to a port of the box, whatever the address is.
func inBox(port int) http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return network.DialInside(ctx, box.NetNS(), int32(port))
	}}
}

func TestPullWithCredentials(t *testing.T) {
	host, transport := startRegistry(t)
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"1", "2"} {
		ref, err := name.NewTag(host + "/team/app:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image, remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"}), remote.WithTransport(transport)); err != nil {
			t.Fatal(err)
		}
	}
	auth := &runtimeapi.AuthConfig{Username: "me", Password: "secret"}
	pull := func(ref string, auth *runtimeapi.AuthConfig) (string, error) {
		answer, err := shared.images.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: ref}, Auth: auth})
		return answer.GetImageRef(), err
	}
	tagged := host + "/team/app:1"
	if _, err := pull(tagged, &runtimeapi.AuthConfig{Username: "me", Password: "wrong"}); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("wrong password: %v; want an error without it", err)
	}
	if _, err := pull(host+"/team/app:absent", auth); status.Code(err) != codes.NotFound {
		t.Errorf("a tag that does not exist: %v; want NotFound", err)
	}
	byDigest := fmt.Sprintf("%s/team/app@%s", host, digest)
	var ids []string
	for _, ref := range []string{tagged, host + "/team/app:2", byDigest, host + "/team/app:1@" + digest.String()} {
		id, err := pull(ref, auth)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if len(slices.Compact(ids)) != 1 || !strings.HasPrefix(ids[0], "sha256:") {
		t.Errorf("IDs %v; want one", ids)
	}
	found, err := shared.images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: byDigest}})
	if err != nil || !slices.Equal(found.GetImage().GetRepoTags(), []string{tagged, host + "/team/app:2"}) || !slices.Equal(found.GetImage().GetRepoDigests(), []string{byDigest}) {
		t.Errorf("image %v, %v; want both tags and the digest", found.GetImage(), err)
	}
	for range 2 {
		if _, err := shared.images.RemoveImage(t.Context(), &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: ids[0]}}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err = shared.images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: tagged}}); err != nil || found.GetImage() != nil {
		t.Errorf("removed image: %v, %v; want none", found.GetImage(), err)
	}
}

// TestLoadedImages: images of archives have the names that pods use.
func TestLoadedImages(t *testing.T) {
	answer, err := shared.images.ListImages(t.Context(), &runtimeapi.ListImagesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]bool{}
	for _, image := range answer.GetImages() {
		for _, tag := range image.GetRepoTags() {
			pinned[tag] = image.GetPinned()
		}
	}
	for tag, want := range map[string]bool{"registry.k8s.io/pause:3.10": true, "docker.io/swiftlet/example:1": false, "docker.io/library/busybox:1.36": false} {
		if got, ok := pinned[tag]; !ok || got != want {
			t.Errorf("image %s: found %v, pinned %v; want pinned %v", tag, ok, got, want)
		}
	}
	found, err := shared.images.ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "docker.io/swiftlet/example:1"}})
	if err != nil || found.GetImage().GetUid().GetValue() != 65532 {
		t.Errorf("image %v, %v; want user 65532", found.GetImage(), err)
	}
}
