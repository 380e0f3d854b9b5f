package image

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/test/images"
	"swiftlet/test/realcri"
)

// TestRealRuntime compares events with those recorded from the reference kubelet, for a present
// image, one that must not be pulled, and one whose registry is unreachable.
func TestRealRuntime(t *testing.T) {
	runtime := realcri.Start(t)
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const refused = `failed to pull and unpack image "127.0.0.1:1/none:1": failed to resolve image: ` +
		`failed to do request: Head "https://127.0.0.1:1/v2/none/manifests/1": dial tcp 127.0.0.1:1: connect: connection refused`
	const at = "spec.containers{c} "
	var seen events
	p, err := New(Config{Verify: Verification{Dir: t.TempDir(), Policy: kubelet.NeverVerifyPreloadedImages}}, Deps{Images: client, Events: &seen, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		image           string
		policy          v1.PullPolicy
		reason, message string
		events          []string
	}{
		{images.Busybox, v1.PullIfNotPresent, "", "", []string{
			at + `Normal Pulled Container image "docker.io/library/busybox:1.36" already present on machine and can be accessed by the pod`,
		}},
		{"registry.invalid/none:1", v1.PullNever, "ErrImageNeverPull", `Container image "registry.invalid/none:1" is not present with pull policy of Never`, []string{
			at + `Warning ErrImageNeverPull Container image "registry.invalid/none:1" is not present with pull policy of Never`,
			at + `Warning Failed Error: ErrImageNeverPull`,
		}},
		{"127.0.0.1:1/none:1", v1.PullIfNotPresent, "ErrImagePull", refused, []string{
			at + `Normal Pulling Pulling image "127.0.0.1:1/none:1"`,
			at + `Warning Failed Failed to pull image "127.0.0.1:1/none:1": ` + refused,
			at + `Warning Failed Error: ErrImagePull`,
		}},
		{"127.0.0.1:1/none:1", v1.PullIfNotPresent, "ImagePullBackOff", `Back-off pulling image "127.0.0.1:1/none:1": ErrImagePull: ` + refused, []string{
			at + `Normal BackOff Back-off pulling image "127.0.0.1:1/none:1"`,
			at + `Warning Failed Error: ImagePullBackOff`,
		}},
	} {
		seen.seen = nil
		of := testPod("u", test.image, test.policy)
		found, err := p.Ensure(t.Context(), of, &of.Spec.Containers[0], sandbox{runtime.Pod("p", "u")})
		var failed *Error
		switch {
		case test.reason == "" && (err != nil || found.Ref == ""):
			t.Errorf("%s: %q, %v", test.image, found.Ref, err)
		case test.reason != "" && (!errors.As(err, &failed) || failed.Reason != test.reason || failed.Message != test.message):
			t.Errorf("%s: %v", test.image, err)
		}
		if diff := cmp.Diff(test.events, seen.seen); diff != "" {
			t.Errorf("%s: events -want +got\n%s", test.image, diff)
		}
	}
}

type sandbox struct{ config *runtimeapi.PodSandboxConfig }

func (s sandbox) Config() *runtimeapi.PodSandboxConfig { return s.config }
