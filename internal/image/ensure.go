package image

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// request is one container's request for an image.
type request struct {
	pod       *v1.Pod
	container *v1.Container
	policy    v1.PullPolicy
	spec      *runtimeapi.ImageSpec
	sandbox   *runtimeapi.PodSandboxConfig
	// credentials finds the pull credentials, once per request: plugins may be slow, and may
	// return different credentials each time.
	credentials func() ([]Credential, error)
}

// Sandbox is the sandbox that the image's container runs in.
type Sandbox interface {
	Config() *runtimeapi.PodSandboxConfig
}

// Image is an image on the node.
type Image struct {
	// Ref is the runtime's reference to the image.
	Ref string
	// Size is its size on the node in bytes, as the runtime reports it.
	Size uint64
	// UID or User is the image's configured user, if any.
	UID  *int64
	User string
}

func imageOf(ref string, i *runtimeapi.Image) Image {
	found := Image{Ref: ref, Size: i.GetSize(), User: i.GetUsername()}
	if i.GetUid() != nil {
		found.UID = &i.Uid.Value
	}
	return found
}

// Ensure returns the container's image, and pulls it first if necessary. It blocks until the
// pull is done. Every error but that of ctx is an *Error, for which Ensure has recorded events.
// sandbox may be nil.
func (p *Puller) Ensure(ctx context.Context, apiPod *v1.Pod, c *v1.Container, sandbox Sandbox) (Image, error) {
	var config *runtimeapi.PodSandboxConfig
	if sandbox != nil {
		config = sandbox.Config()
	}
	found, err := p.ensure(ctx, apiPod, c, config)
	if err == nil {
		meter.With(p.onUse, found.Ref)
		return found, nil
	}
	if ctx.Err() != nil {
		return Image{}, fmt.Errorf("ensure image %s: %w", c.Image, ctx.Err())
	}
	p.warningEvent(apiPod, c, "Failed", "Error: %s", err.Reason)
	return Image{}, err
}

func (p *Puller) ensure(ctx context.Context, apiPod *v1.Pod, c *v1.Container, sandbox *runtimeapi.PodSandboxConfig) (Image, *Error) {
	repository, name, tag, err := parseName(c.Image)
	var present, pulled *bool
	if p.meters.Ensured != nil {
		defer func() { p.meters.Ensured(policyOf(c, tag), present, pulled) }()
	}
	if err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err)
		p.warningEvent(apiPod, c, "InspectFailed", "%s", message)
		return Image{}, &Error{Reason: ReasonInvalidName, Message: message, Err: err}
	}
	r := request{
		pod: apiPod, container: c, policy: policyOf(c, tag), sandbox: sandbox,
		spec:        &runtimeapi.ImageSpec{Image: name, Annotations: apiPod.Annotations},
		credentials: sync.OnceValues(func() ([]Credential, error) { return p.credentials(ctx, apiPod, repository) }),
	}
	if r.policy != v1.PullAlways {
		found, err := p.images.ImageStatus(ctx, r.spec, false)
		if err != nil {
			message := fmt.Sprintf("Failed to inspect image %q: %s", name, cri.Text(err))
			if ctx.Err() == nil { // a canceled sync is no failure
				p.warningEvent(apiPod, c, "InspectFailed", "%s", message)
			}
			return Image{}, &Error{Reason: ReasonInspect, Message: message, Err: err}
		}
		present = new(found != nil)
		if found != nil {
			usable, err := p.mayUse(r, found)
			if err != nil {
				return Image{}, p.pullFailed(r, backoffFingerprint(nil), why.Because(why.CredentialsFailed, "", fmt.Errorf("find credentials: %w", err)))
			}
			if usable {
				pulled = new(false)
				p.event(apiPod, c, "Pulled", p.presentText, c.Image)
				return imageOf(found.Id, found), nil
			}
		}
	}
	if r.policy == v1.PullNever { // also where the image is present but the pod may not use it
		message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
		p.warningEvent(apiPod, c, "ErrImageNeverPull", "%s", message)
		return Image{}, &Error{Reason: ReasonNeverPull, Message: message}
	}
	pulled = new(true)
	return p.pull(ctx, r)
}

// key identifies the request in the back-off.
func (r request) key() string { return string(r.pod.UID) + "_" + r.container.Image }

// pull pulls the image unless its back-off still runs.
func (p *Puller) pull(ctx context.Context, r request) (Image, *Error) {
	key := r.key()
	credentials, credentialsErr := r.credentials()
	fingerprint := backoffFingerprint(credentials)
	if remaining, lastFailure := p.backoff.remaining(key, fingerprint); remaining > 0 {
		message := fmt.Sprintf("Back-off pulling image %q", r.container.Image)
		p.event(r.pod, r.container, "BackOff", "%s", message)
		return Image{}, &Error{Reason: ReasonBackOff, Message: message + ": " + lastFailure, RetryAfter: remaining}
	}
	if credentialsErr != nil {
		return Image{}, p.pullFailed(r, fingerprint, why.Because(why.CredentialsFailed, "", fmt.Errorf("find credentials: %w", credentialsErr)))
	}
	started := p.clock.Now()
	if p.meters.PullStarted != nil {
		defer p.meters.PullStarted(r.pod.UID)()
	}
	got, err := p.pullRecorded(r, credentials, func() (result, error) {
		p.event(r.pod, r.container, "Pulling", "Pulling image %q", r.container.Image)
		return p.share(ctx, r, credentials)
	})
	if err != nil {
		if ctx.Err() != nil { // a canceled sync starts no back-off
			return Image{}, &Error{Reason: ReasonPull, Message: ctx.Err().Error(), Err: ctx.Err()}
		}
		return Image{}, p.pullFailed(r, fingerprint, err)
	}
	p.backoff.reset(key)
	p.event(r.pod, r.container, "Pulled", "Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		r.container.Image, got.took.Truncate(time.Millisecond), p.clock.Since(started).Truncate(time.Millisecond), got.size)
	return got.image, nil
}

// pullRecorded pulls an image and records the credential it was pulled with, so that mayUse can
// verify later requests.
func (p *Puller) pullRecorded(r request, credentials []Credential, pull func() (result, error)) (result, error) {
	if p.records == nil {
		return pull()
	}
	if err := p.records.begin(r.container.Image); err != nil {
		return result{}, err
	}
	got, err := pull()
	if err == nil {
		var credential *Credential // nil after an anonymous pull
		if got.credential < len(credentials) {
			credential = &credentials[got.credential]
		}
		p.recordAccess(r, got.image.Ref, credential)
	}
	if err := p.records.end(r.container.Image); err != nil {
		p.log.Warn("pull image: cannot delete pull intent", "image", r.container.Image, "err", err)
	}
	return got, err
}

// pullFailed classifies a failed pull, records an event and starts the back-off.
func (p *Puller) pullFailed(r request, fingerprint string, cause error) *Error {
	text := cri.PullText(cause)
	p.warningEvent(r.pod, r.container, "Failed", "Failed to pull image %q: %s", r.container.Image, text)
	failed := &Error{Reason: ReasonPull, Message: text, Err: cause}
	// Runtimes classify an error by the prefix of its message alone.
	if rest, ok := strings.CutPrefix(text, ReasonRegistryUnavailable); ok {
		failed.Reason = ReasonRegistryUnavailable
		failed.Message = fmt.Sprintf("image pull failed for %s because the registry is unavailable%s", r.container.Image, rest)
	} else if rest, ok := strings.CutPrefix(text, ReasonSignature); ok {
		failed.Reason = ReasonSignature
		failed.Message = fmt.Sprintf("image pull failed for %s because the signature validation failed%s", r.container.Image, rest)
	}
	failed.RetryAfter = p.backoff.recordFailure(r.key(), fingerprint, failed.Error())
	return failed
}

func (p *Puller) event(apiPod *v1.Pod, c *v1.Container, reason, format string, args ...any) {
	p.events.Eventf(pod.EventRef(apiPod, c.Name), v1.EventTypeNormal, reason, format, args...)
}

func (p *Puller) warningEvent(apiPod *v1.Pod, c *v1.Container, reason, format string, args ...any) {
	p.events.Eventf(pod.EventRef(apiPod, c.Name), v1.EventTypeWarning, reason, format, args...)
}
