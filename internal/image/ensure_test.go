package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/cri"
	"swiftlet/test/fakecri"
)

type events struct {
	mu   sync.Mutex
	seen []string
}

func (e *events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, fmt.Sprintf("%s %s %s %s", object.(*v1.ObjectReference).FieldPath, kind, reason, fmt.Sprintf(format, args...)))
}

// fixture is a puller on a fake runtime.
type fixture struct {
	*Puller
	runtime *fakecri.Server
	events  events
	clock   *clocktesting.FakeClock
}

func newFixture(t *testing.T, cfg Config, credentials ...Credential) *fixture {
	t.Helper()
	if cfg.Verify.Policy == "" {
		cfg.Verify = Verification{Dir: t.TempDir(), Policy: kubelet.NeverVerifyPreloadedImages}
	}
	b := &fixture{runtime: fakecri.Start(t), clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: b.runtime.Endpoint(), RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	b.Puller, err = New(cfg, Deps{
		Images: client, Events: &b.events, Clock: b.clock, Log: slog.New(slog.DiscardHandler),
		Credentials: func(context.Context, *v1.Pod, string) ([]Credential, error) { return credentials, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testPod returns a pod with one container c of the image.
func testPod(uid, image string, policy v1.PullPolicy) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: types.UID(uid)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image, ImagePullPolicy: policy}}},
	}
}

func (b *fixture) ensure(p *v1.Pod) (string, error) {
	found, err := b.Ensure(context.Background(), p, &p.Spec.Containers[0], nil)
	return found.Ref, err
}

func TestPullPolicies(t *testing.T) {
	const name = "registry.example.com/app:1"
	const at = "spec.containers{c} "
	present := at + `Normal Pulled Container image "registry.example.com/app:1" already present on machine and can be accessed by the pod`
	pulled := []string{
		at + `Normal Pulling Pulling image "registry.example.com/app:1"`,
		at + `Normal Pulled Successfully pulled image "registry.example.com/app:1" in 0s (0s including waiting). Image size: 42 bytes.`,
	}
	for _, test := range []struct {
		name      string
		policy    v1.PullPolicy
		present   bool
		published bool
		reason    string
		events    []string
		statuses  int
		pulls     int
	}{
		{name: "present, if not present", policy: v1.PullIfNotPresent, present: true, events: []string{present}, statuses: 1},
		{name: "present, never", policy: v1.PullNever, present: true, events: []string{present}, statuses: 1},
		{name: "present, always", policy: v1.PullAlways, present: true, published: true, events: pulled, statuses: 1, pulls: 1},
		{name: "absent, if not present", policy: v1.PullIfNotPresent, published: true, events: pulled, statuses: 2, pulls: 1},
		{name: "absent, default policy", published: true, events: pulled, statuses: 2, pulls: 1},
		{name: "absent, never", policy: v1.PullNever, published: true, reason: ReasonNeverPull, statuses: 1, events: []string{
			at + `Warning ErrImageNeverPull Container image "registry.example.com/app:1" is not present with pull policy of Never`,
			at + `Warning Failed Error: ErrImageNeverPull`,
		}},
		{name: "absent and not in the registry", policy: v1.PullIfNotPresent, reason: ReasonPull, statuses: 1, pulls: 1, events: []string{
			at + `Normal Pulling Pulling image "registry.example.com/app:1"`,
			at + `Warning Failed Failed to pull image "registry.example.com/app:1": rpc error: code = NotFound desc = failed to pull and unpack image "registry.example.com/app:1": failed to resolve image: registry.example.com/app:1: not found`,
			at + `Warning Failed Error: ErrImagePull`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newFixture(t, Config{})
			if test.present {
				b.runtime.AddImage(name, 42)
			}
			if test.published {
				b.runtime.Publish(name, 42)
			}
			ref, err := b.ensure(testPod("u", name, test.policy))
			if test.reason == "" && (err != nil || ref != fakecri.ImageID(name)) {
				t.Errorf("%q, %v", ref, err)
			}
			var failed *Error
			if test.reason != "" && (!errors.As(err, &failed) || failed.Reason != test.reason) {
				t.Errorf("error %v, want %s", err, test.reason)
			}
			if diff := cmp.Diff(test.events, b.events.seen); diff != "" {
				t.Errorf("events: -want +got\n%s", diff)
			}
			if s, p := b.runtime.Count("ImageStatus"), b.runtime.Count("PullImage"); s != test.statuses || p != test.pulls {
				t.Errorf("%d status calls and %d pulls, want %d and %d", s, p, test.statuses, test.pulls)
			}
		})
	}
}

func TestPullFailureReasons(t *testing.T) {
	for answer, want := range map[string]Error{
		"connection refused":                 {Reason: "ErrImagePull", Message: "connection refused"},
		"RegistryUnavailable: no route":      {Reason: "RegistryUnavailable", Message: "image pull failed for app:1 because the registry is unavailable: no route"},
		"SignatureValidationFailed: bad key": {Reason: "SignatureValidationFailed", Message: "image pull failed for app:1 because the signature validation failed: bad key"},
	} {
		b := newFixture(t, Config{})
		b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, answer)})
		_, err := b.ensure(testPod("u", "app:1", v1.PullAlways))
		var got *Error
		if !errors.As(err, &got) || got.Reason != want.Reason || got.Message != want.Message {
			t.Errorf("%q: %v, want %v", answer, err, &want)
		}
	}
}

func TestFailuresBeforePull(t *testing.T) {
	b := newFixture(t, Config{})
	var got *Error
	if _, err := b.ensure(testPod("u", "Not A Name", "")); !errors.As(err, &got) || got.Reason != ReasonInvalidName {
		t.Errorf("bad name: %v", err)
	}
	b.runtime.Inject("ImageStatus", fakecri.Fault{Err: status.Error(codes.Internal, "broken")})
	if _, err := b.ensure(testPod("u", "app:1", "")); !errors.As(err, &got) || got.Reason != ReasonInspect {
		t.Errorf("broken runtime: %v", err)
	}
}

// The end of a pod cancels its syncs. That is no failure of the image.
func TestCanceledInspectionRecordsNoEvent(t *testing.T) {
	b := newFixture(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := testPod("u", "app:1", "")
	if _, err := b.Ensure(ctx, p, &p.Spec.Containers[0], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if len(b.events.seen) > 0 {
		t.Errorf("events: %q", b.events.seen)
	}
}

func TestBackOffGrowsPerPodAndImage(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, "refused")})
	p := testPod("u", "app:1", v1.PullAlways)
	var failed *Error
	for _, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		wait *= time.Second
		if _, err := b.ensure(p); !errors.As(err, &failed) || failed.Reason != ReasonPull || failed.RetryAfter != wait {
			t.Fatalf("pull: %+v, want a failure with back-off %v", err, wait)
		}
		b.clock.SetTime(b.clock.Now().Add(wait - time.Second))
		_, err := b.ensure(p)
		want := Error{Reason: ReasonBackOff, Message: `Back-off pulling image "app:1": ErrImagePull: refused`, RetryAfter: time.Second}
		if !errors.As(err, &failed) || *failed != want {
			t.Fatalf("during back-off: %v, want %v", err, &want)
		}
		b.clock.SetTime(b.clock.Now().Add(time.Second))
	}
	before := b.runtime.Count("PullImage")
	_, _ = b.ensure(testPod("other", "app:1", v1.PullAlways))
	if b.runtime.Count("PullImage") != before+1 {
		t.Error("another pod is in back-off too")
	}
	b.runtime.ClearFault("PullImage")
	b.runtime.Publish("app:1", 1)
	if _, err := b.ensure(p); err != nil {
		t.Errorf("after recovery: %v", err)
	}
	b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, "refused")})
	if _, err := b.ensure(p); !errors.As(err, &failed) || failed.RetryAfter != initialBackoff {
		t.Errorf("after a success the back-off is %v", failed.RetryAfter)
	}
}

// Back-off does not delay a pull with credentials that were not tried yet.
func TestBackOffEndsWithOtherCredentials(t *testing.T) {
	b := newFixture(t, Config{})
	b.runtime.Publish("app:1", 1)
	password := "wrong"
	b.Puller.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) {
		return []Credential{login{username: "ann", password: password}.credential()}, nil
	}
	b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, "401"), Match: func(r any) bool {
		return r.(*runtimeapi.PullImageRequest).Auth.GetPassword() != "right"
	}})
	p := testPod("u", "app:1", v1.PullAlways)
	var failed *Error
	for _, attempt := range []struct{ password, reason string }{
		{"wrong", ReasonPull}, {"wrong", ReasonBackOff}, {"as wrong", ReasonPull}, {"as wrong", ReasonBackOff}, {"right", ""},
	} {
		password = attempt.password
		_, err := b.ensure(p)
		if got := errors.As(err, &failed); got != (attempt.reason != "") || got && failed.Reason != attempt.reason {
			t.Errorf("%s: %v, want %q", attempt.password, err, attempt.reason)
		}
		if attempt.reason == ReasonPull && failed.RetryAfter != initialBackoff {
			t.Errorf("%s: retry after %v", attempt.password, failed.RetryAfter)
		}
	}
}

// A plugin that issues a new password for each request does not end the back-off.
func TestBackOffIgnoresPluginPasswords(t *testing.T) {
	b := newFixture(t, Config{})
	made := 0
	b.Puller.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) {
		made++
		return []Credential{login{username: "ann", password: fmt.Sprint(made), fromPlugin: true}.credential()}, nil
	}
	p := testPod("u", "app:1", v1.PullAlways)
	var failed *Error
	for _, try := range []struct {
		after  time.Duration
		reason string
		delay  time.Duration
	}{
		{0, ReasonPull, 10 * time.Second}, {time.Second, ReasonBackOff, 9 * time.Second},
		{9 * time.Second, ReasonPull, 20 * time.Second}, {20 * time.Second, ReasonPull, 40 * time.Second},
	} {
		b.clock.SetTime(b.clock.Now().Add(try.after))
		if _, err := b.ensure(p); !errors.As(err, &failed) || failed.Reason != try.reason || failed.RetryAfter != try.delay {
			t.Errorf("after %v: %v, again in %v", try.after, err, failed.RetryAfter)
		}
	}
	if made != 4 { // one per attempt
		t.Errorf("%d calls for credentials", made)
	}
}

func TestEachCredentialIsTried(t *testing.T) {
	b := newFixture(t, Config{}, login{username: "old"}.credential(), login{username: "new"}.credential())
	b.runtime.Publish("app:1", 1)
	b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, "401"), Match: func(r any) bool {
		return r.(*runtimeapi.PullImageRequest).Auth.GetUsername() == "old"
	}})
	if _, err := b.ensure(testPod("u", "app:1", "")); err != nil {
		t.Error(err)
	}
	b.runtime.Inject("PullImage", fakecri.Fault{Err: status.Error(codes.Unknown, "401")})
	_, err := b.ensure(testPod("u", "other:1", ""))
	var failed *Error
	if !errors.As(err, &failed) || failed.Message != "401" { // equal messages are merged
		t.Errorf("all refused: %v", err)
	}
}
